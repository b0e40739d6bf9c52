# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/ipam/allocate,lib/base lib/json reconcilers/core reconcilers/ipam,jansson))
