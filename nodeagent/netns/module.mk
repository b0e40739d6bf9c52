$(eval $(call library,nodeagent/netns,lib/base lib/json nodeagent/model nodeagent/host nodeagent/attach,libnl-3.0 jansson))
