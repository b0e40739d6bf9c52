$(eval $(call library,nodeagent/hostd,lib/base lib/json lib/loop nodeagent/host,libcap-ng jansson))
