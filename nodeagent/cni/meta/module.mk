# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/cni/meta,lib/base lib/json reconcilers/core nodeagent/model nodeagent/cni/plan,jansson))
