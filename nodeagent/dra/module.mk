$(eval $(call library,nodeagent/dra,lib/base lib/json nodeagent/model nodeagent/pools,jansson))
