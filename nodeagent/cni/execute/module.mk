# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/execute,lib/base lib/json nodeagent/model nodeagent/host nodeagent/netlink nodeagent/cni/plan,libnl-3.0 jansson))
