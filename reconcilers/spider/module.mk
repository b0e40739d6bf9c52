# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/spider,lib/base lib/json reconcilers/core reconcilers/ipam nodeagent/cni/plan,jansson))
