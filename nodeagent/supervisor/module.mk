# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/supervisor,lib/base lib/json nodeagent/cni/plugin nodeagent/devices nodeagent/process nodeagent/kubelet nodeagent/cni/server nodeagent/cni/meta nodeagent/device_metrics,jansson))
