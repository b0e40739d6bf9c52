# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,cli/simulate/host,lib/base lib/json nodeagent/host nodeagent/netlink nodeagent/model,libnl-3.0 jansson))
# The NICs are in it.
$(OUT)/cli/simulate/host/vendor_nics.o: $(wildcard cli/simulate/host/nics/*.json)
