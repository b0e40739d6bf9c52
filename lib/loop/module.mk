$(eval $(call library,lib/loop,lib/base,libuv))
