$(eval $(call library,cli/explain,lib/base lib/json cli/doctor $(RECONCILERS),jansson))
