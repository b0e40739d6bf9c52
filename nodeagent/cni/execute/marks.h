// SPDX-License-Identifier: Apache-2.0
/*
 * Packet marks, so that what came in by one device is answered by it: a table of nf_tables in the
 * namespace. A rule of policy routing sends what carries the mark to a routing table.
 */
#pragma once

#include "nodeagent/netlink/netns.h"

/*
 * As a ruleset of nft(8), replaced as a whole in one transaction:
 *
 *   table inet orbweaver {
 *     chain prerouting { type filter hook prerouting priority mangle;
 *                        iifname "veth0" ct state new meta mark set 1
 *                        meta mark 1 ct mark set meta mark }
 *     chain output     { type route hook output priority mangle; meta mark set ct mark }
 *   }
 *
 * ERR_HOST "StepRefused"  the kernel refused; it may lack nf_tables or nft_ct
 */
int marks_set(struct netns *ns, const char *dev, struct err *err);
/* Without the table there is nothing to do. */
int marks_clear(struct netns *ns, struct err *err);
