# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/pod_networks,lib/base lib/json lib/loop lib/kube lib/kube/auth nodeagent/cni/plan nodeagent/process reconcilers/core reconcilers/ipam reconcilers/ipam/allocate,jansson))
