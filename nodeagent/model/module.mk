# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/model,lib/base lib/json,jansson))
