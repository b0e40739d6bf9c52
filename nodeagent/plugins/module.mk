# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/plugins,lib/base lib/json lib/loop lib/grpc nodeagent/model nodeagent/pools nodeagent/dra,libuv libprotobuf-c jansson))
