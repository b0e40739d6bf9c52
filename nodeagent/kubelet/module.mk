$(eval $(call library,nodeagent/kubelet,lib/base lib/json lib/loop lib/grpc,libuv libprotobuf-c jansson))
