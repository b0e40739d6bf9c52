$(eval $(call library,nodeagent/meter,lib/base lib/json nodeagent/model reconcilers/core,jansson))
