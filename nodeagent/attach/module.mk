# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/attach,lib/base lib/json nodeagent/model reconcilers/core,jansson))
