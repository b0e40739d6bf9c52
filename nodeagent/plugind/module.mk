$(eval $(call library,nodeagent/plugind,lib/base lib/json lib/loop nodeagent/kubelet,jansson))
