$(eval $(call library,lib/kube,lib/base lib/json lib/loop,libcurl libuv jansson))
