$(eval $(call library,reconcilers,lib/base lib/json,jansson))
