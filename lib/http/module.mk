$(eval $(call library,lib/http,lib/base lib/json lib/loop,openssl))
