# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/sriov,lib/base lib/json reconcilers/core nodeagent/cni/plan nodeagent/model,jansson))
