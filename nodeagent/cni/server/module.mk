# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/server,lib/base lib/json lib/loop nodeagent/cni/plugin nodeagent/host nodeagent/cni/plan nodeagent/process nodeagent/cni/state nodeagent/cni/worker,jansson))
