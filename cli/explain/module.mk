# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/explain,lib/base lib/json cli/doctor nodeagent/model nodeagent/cni/plan $(RECONCILERS),jansson))
