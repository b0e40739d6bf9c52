# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/kubelet,lib/base lib/json lib/loop lib/grpc nodeagent/devices nodeagent/process nodeagent/model,jansson libprotobuf-c))
