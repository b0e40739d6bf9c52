# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/state,lib/base lib/json nodeagent/cni/plugin nodeagent/model nodeagent/cni/plan,jansson))
