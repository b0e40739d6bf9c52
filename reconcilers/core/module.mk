$(eval $(call library,reconcilers/core,lib/base lib/json,jansson))
