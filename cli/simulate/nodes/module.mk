# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/simulate/nodes,lib/base lib/json lib/loop lib/kube lib/kube/auth reconcilers/core reconcilers/ipam nodeagent/model nodeagent/worker nodeagent/process nodeagent/host_plan nodeagent/devices nodeagent/agent nodeagent/cni/plan nodeagent/pod_networks nodeagent/cni/worker cli/simulate/host cli/simulate/decide,jansson))
