# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,lib/json,lib/base,jansson yaml-0.1))
