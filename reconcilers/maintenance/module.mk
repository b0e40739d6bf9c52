# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/maintenance,lib/base lib/json reconcilers/core reconcilers/sriov,jansson))
