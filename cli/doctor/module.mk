# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/doctor,lib/base lib/json reconcilers/core reconcilers/sriov,jansson))
