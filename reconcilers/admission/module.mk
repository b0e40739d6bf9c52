# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/admission,lib/base lib/json reconcilers/core reconcilers/sriov reconcilers/spider reconcilers/ipam,jansson))
