# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/addresses,lib/base lib/json lib/loop lib/kube lib/kube/auth reconcilers/core reconcilers/ipam reconcilers/ipam/allocate,jansson))
