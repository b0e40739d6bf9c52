# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/simulate/decide,lib/base lib/json nodeagent/model nodeagent/devices nodeagent/cni/plan reconcilers/ipam reconcilers/ipam/allocate reconcilers/core,jansson))
