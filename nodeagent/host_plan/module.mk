# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/host_plan,lib/base lib/json nodeagent/model,jansson))
