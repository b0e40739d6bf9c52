# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/host,lib/base lib/json nodeagent/model nodeagent/netlink,libnl-3.0 jansson))
