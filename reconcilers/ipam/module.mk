# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/ipam,lib/base lib/json reconcilers/core,jansson))
