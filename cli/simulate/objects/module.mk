$(eval $(call library,cli/simulate/objects,lib/base lib/json reconcilers/core,jansson))
