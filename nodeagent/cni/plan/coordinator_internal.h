// SPDX-License-Identifier: Apache-2.0
/*
 * What the coordinator*.c files share, from the lowest up: coordinator_role.c, coordinator_check.c;
 * coordinator.c above both. For these files only.
 */
#pragma once

#include "nodeagent/cni/plan/coordinator.h"

/* Numbers of linux/if.h and linux/rtnetlink.h. */
#define LINK_UP      0x1
#define TYPE_UNICAST 1

#define TABLE_FIRST   101 /* of the first NIC; the others follow */
#define RULE_PRIORITY 1000

/* ---- coordinator_role.c ---------------------------------------------------------------------- */

/* Links in the order of their numbers. Returns new; free(). */
const json_t **coordinator_links(const json_t *look, size_t *ret_n);

/*
 * Does some other NIC route by this table? Then an interface between has gone, and the number is
 * taken.
 */
bool coordinator_table_is_taken(const json_t *pod, int64_t table, const char *ifname,
				const char *first_nic);

/* ---- coordinator_check.c --------------------------------------------------------------------- */

/* "10.7.0.51" or "10.7.0.51/24" as "10.7.0.51/32". */
void coordinator_single_text(const char *text, char ret[ADDR_TEXT_SIZE]);
/* The same without the prefix. */
void coordinator_bare_text(const char *text, char ret[ADDR_TEXT_SIZE]);

/*
 * Whoever chooses the address of a pod (a NetworkAttachmentDefinition, an annotation) must not
 * choose where the node finds the API server. A network that the node has no route to but the
 * default one is common for a fabric of its own: there an administrator's IP pool vouches for it.
 * No pool vouches for a Service's address, nor for one that the kubelet is connected to.
 * ERR_INVALID "AddressOfNode"; ERR_TRANSIENT where the kubelet may have probed a pod that had it.
 */
int coordinator_check_addresses(const struct coordinator_config *config,
				const struct coordinator_role *role,
				const struct coordinator_facts *facts, struct err *err);

/*
 * Does nobody else use hostRuleTable? Our rule would have the whole node route by what is in it.
 * ERR_INVALID "BadField".
 */
int coordinator_check_table(const struct coordinator_config *config,
			    const struct coordinator_facts *facts, struct err *err);
