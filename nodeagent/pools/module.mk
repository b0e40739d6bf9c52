# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/pools,lib/base lib/json nodeagent/model,jansson))
