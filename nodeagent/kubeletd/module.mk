$(eval $(call library,nodeagent/kubeletd,lib/base lib/json lib/loop nodeagent/plugins,jansson))
