# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/kubelet,lib/base lib/json lib/loop lib/grpc nodeagent/pools nodeagent/process nodeagent/model nodeagent/dra,jansson libprotobuf-c))
