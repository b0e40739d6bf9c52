$(eval $(call library,nodeagent/host,lib/base lib/json nodeagent/model nodeagent/dra,libnl-3.0 jansson))
