$(eval $(call library,cli/pathtest,lib/base lib/json cli/explain reconcilers/core,jansson))
