$(eval $(call library,nodeagent/meta,lib/base lib/json reconcilers/core nodeagent/model nodeagent/attach,jansson))
