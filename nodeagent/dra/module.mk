# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/dra,lib/base lib/json nodeagent/model nodeagent/pools,jansson))
