# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/netlink,lib/base lib/json nodeagent/model,libnl-3.0 jansson))
