$(eval $(call library,nodeagent/host,lib/base lib/json,libnl-3.0 jansson))
