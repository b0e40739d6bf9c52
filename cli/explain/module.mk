$(eval $(call library,cli/explain,lib/base lib/json $(RECONCILERS),jansson))
