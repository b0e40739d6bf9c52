$(eval $(call library,nodeagent/host,lib/base lib/json nodeagent/model,libnl-3.0 jansson))
