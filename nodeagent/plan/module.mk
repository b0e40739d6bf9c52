$(eval $(call library,nodeagent/plan,lib/base lib/json nodeagent/model,jansson))
