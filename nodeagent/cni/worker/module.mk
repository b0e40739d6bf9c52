# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/worker,lib/base lib/json nodeagent/cni/plugin nodeagent/model nodeagent/host nodeagent/cni/plan nodeagent/cni/execute nodeagent/cni/state nodeagent/process reconcilers/core,jansson))
