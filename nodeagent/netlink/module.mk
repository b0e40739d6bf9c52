# SPDX-License-Identifier: Apache-2.0
$(eval $(call library,nodeagent/netlink,lib/base,libnl-3.0))
