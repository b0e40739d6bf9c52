# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/doctor,lib/base lib/json cli/verbs nodeagent/model reconcilers/core reconcilers/sriov,jansson))
