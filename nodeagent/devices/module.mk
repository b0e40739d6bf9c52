# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/devices,lib/base lib/json nodeagent/model reconcilers/core,jansson))
