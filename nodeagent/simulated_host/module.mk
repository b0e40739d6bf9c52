# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/simulated_host,lib/base lib/json nodeagent/host nodeagent/netlink nodeagent/model,libnl-3.0 jansson))
# The NICs are in it.
$(OUT)/nodeagent/simulated_host/vendor_nics.o: $(wildcard nodeagent/simulated_host/nics/*.json)
