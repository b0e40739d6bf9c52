$(eval $(call library,nodeagent/pools,lib/base lib/json nodeagent/model,jansson))
