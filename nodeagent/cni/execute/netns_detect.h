// SPDX-License-Identifier: Apache-2.0
/*
 * Is an address in use on the network already? Is the gateway there? And telling others of a new
 * address.
 *
 * ARP and neighbour discovery on the interface itself, before the address is set or afterwards:
 * what the MACs of the namespace's own interfaces say does not count.
 */
#pragma once

#include <jansson.h>

#include "nodeagent/netlink/netns.h"

/*
 * Of one interface. Lists of texts, with a prefix length or without; NULL and empty: nothing of
 * that kind.
 */
struct detect_request {
	const char *ifname;
	const json_t *addresses; /* must be nobody else's */
	const json_t *own;       /* gateways are asked from the first of their family */
	const json_t *gateways;  /* must answer */
	json_t *conflicts;       /* {"ip", "mac"} of each that is in use is appended; NULL: not */
	struct err err;          /* what netns_detect() has found; ERR_NONE: all is well */
};

/*
 * Sets the interfaces up and waits up to 2 s for their carriers. Conflicts first: three probes
 * 100 ms apart, 300 ms in all (RFC 5227 with shorter waits); then gateways: asked every 200 ms for
 * at most a second. However many interfaces there are, each of these waits is one. Those that are
 * not Ethernet are left alone. Of each request's err:
 *
 * ERR_CONFLICT   "AddressInUse"        the text names the address and who has it
 * ERR_TRANSIENT  "GatewayUnreachable"  a gateway does not answer
 * ERR_HOST       "DetectFailed"        no packet socket, no such interface
 */
void netns_detect(struct netns *ns, struct detect_request *requests, size_t n);

/*
 * Tell the network who has which addresses: once for each; what cannot be sent is left out. list:
 * [{"ifname", "addresses": [text], "hasLateLink"}]; where the last is true a carrier is waited for,
 * 200 ms for all of them.
 */
void netns_announce(struct netns *ns, const json_t *list);
