// SPDX-License-Identifier: Apache-2.0
/*
 * What a network namespace looks like, as the JSON that planners decide from
 * (nodeagent/cni/plan/look.h has the shape).
 *
 * Decoding is pure over the kernel's bytes.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "nodeagent/netlink/netns.h"

enum netns_part {
	NETNS_LINKS = 1,
	NETNS_ADDRESSES = 2, /* needs NETNS_LINKS for names */
	NETNS_ROUTES = 4,    /* the same */
	NETNS_RULES = 8,
	NETNS_NEIGHBOURS = 16, /* permanent ones; needs NETNS_LINKS */
};

/* With nothing in its lists. */
json_t *netns_look_new(void);

/* The parts asked for; *ret is new. Errors as of netlink_ask(). */
int netns_observe(struct netns *ns, unsigned int parts, json_t **ret, struct err *err);

/*
 * The same of the node's namespace, where lists are long: addresses but link-local ones, and the
 * links that have them, rules, what table `table` has, neighbour entries of any kind for
 * `addresses`, and as "sources" the address from which the node speaks to each of `addresses`, ""
 * where it has no route; as "ways" that route itself, and as "gateways" those of all routes of all
 * tables.
 */
int netns_observe_host(struct netns *ns, const json_t *addresses, unsigned int table, json_t **ret,
		       struct err *err);

/*
 * One link by name or, where name is NULL, by index: appended to look's "links", unless it is
 * there. *ret is borrowed; NULL without an error when there is none.
 */
int netns_observe_link(struct netns *ns, const char *name, int index, json_t *look,
		       const json_t **ret, struct err *err);

/*
 * One VF as its PF, a link of the namespace, knows it: *ret is new, the members of
 * cni/plan/sriov.h. ERR_HOST "InterfaceGone" when the PF does not know it.
 */
int netns_observe_vf(struct netns *ns, const char *pf, int64_t vf, json_t **ret, struct err *err);
/* The same of an answer's bytes; NULL when it is not in them. */
json_t *netns_decode_vf(const void *bytes, size_t len, int64_t vf);

/* Append what the bytes say to look's lists. Unreadable messages are left out. */
void netns_decode(const void *bytes, size_t len, json_t *look);
