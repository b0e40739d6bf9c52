# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/plan,lib/base lib/json nodeagent/model reconcilers/core,jansson))
