$(eval $(call library,nodeagent/attachments,lib/base lib/json lib/loop lib/kube nodeagent/addresses nodeagent/networks nodeagent/cni nodeagent/kubeletd reconcilers/core reconcilers/ipam,jansson))
