# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/agent,lib/base lib/json lib/loop lib/kube lib/kube/auth lib/http nodeagent/model nodeagent/host_plan nodeagent/devices nodeagent/cni/plan nodeagent/host nodeagent/process nodeagent/kubelet nodeagent/cni/plugin nodeagent/pod_networks,jansson))
