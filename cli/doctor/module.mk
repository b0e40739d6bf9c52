# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/doctor,lib/base lib/json cli/verbs reconcilers/core reconcilers/sriov,jansson))
