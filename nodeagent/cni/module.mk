# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni,lib/base lib/json lib/loop lib/kube nodeagent/cni/plugin nodeagent/model nodeagent/host nodeagent/attach nodeagent/netns nodeagent/meta nodeagent/kubeletd nodeagent/hostd,jansson))
