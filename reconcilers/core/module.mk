# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,reconcilers/core,lib/base lib/json,jansson))
