$(eval $(call library,lib/json,lib/base,jansson yaml-0.1))
