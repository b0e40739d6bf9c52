$(eval $(call library,nodeagent/model,lib/base lib/json,jansson))
