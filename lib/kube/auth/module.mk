$(eval $(call library,lib/kube/auth,lib/base lib/json lib/loop,libuv jansson))
