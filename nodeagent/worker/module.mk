# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/worker,lib/base lib/json lib/loop nodeagent/model nodeagent/host nodeagent/netlink nodeagent/kubelet nodeagent/process,jansson))
