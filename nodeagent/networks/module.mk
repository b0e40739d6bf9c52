# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/networks,lib/base lib/json lib/loop lib/kube reconcilers/core nodeagent/cni/meta,jansson))
