// SPDX-License-Identifier: Apache-2.0
/*
 * What a pool remembers of its addresses beside whose they are, in fields of ours in its status:
 *
 *	releasedIPs	given back lately, oldest first; they rest, and are handed out again when no
 *			other is free
 *	conflictIPs	in use by another host on the network, as a node's agent found out for a
 *			pod: [{"ip", "mac", "pod", "node", "seen": RFC 3339}]. No pod gets one for
 *			IP_CONFLICT_S after it was seen last, then it rests
 *
 * Spiderpool's programs neither read nor keep them: a pool that they write forgets, nothing else.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "reconcilers/ipam/ip_pool.h"

enum {
	IP_RESTING_MAX = 256,
	IP_CONFLICTS_MAX = 256, /* the oldest are forgotten */
	IP_CONFLICT_S = 3600,
	/*
	 * Users may write what agents say about their pods, so there are bounds: for the name of a
	 * pod; for a namespace an eighth of the pool's addresses, within these two.
	 */
	IP_CONFLICTS_OF_POD = 16, /* eight NICs of both families in one network */
	IP_CONFLICTS_OF_NAMESPACE_MIN = 4,
	IP_CONFLICTS_OF_NAMESPACE_MAX = 64,
};

/* Append to a list of resting addresses; the oldest goes when it is full. */
void ip_rest(json_t *resting, const char *address);

struct ip_conflicts {
	enum ip_family family;
	json_t *entries;   /* array, by address, which is canonical; oldest first */
	struct ip_set set; /* of them; settled */
	json_t *over;      /* addresses whose time is over */
	size_t share;      /* entries that one namespace may have */
	int64_t next_ms;   /* until the time of the first of them is over; -1: there is none */
};

/*
 * Read status.conflictIPs of a pool. now: RFC 3339; NULL or "": no time is over. Entries that
 * cannot be read are dropped, and those of addresses that the pool does not have (any more), or
 * that `kept` has: excluding an address is how a conflict is mended.
 */
void ip_conflicts_read(const json_t *pool, const struct ip_pool *addresses,
		       const struct ip_set *kept, const char *now, struct ip_conflicts *ret);
void ip_conflicts_done(struct ip_conflicts *conflicts);
#define auto_ip_conflicts auto_call(ip_conflicts_done)

/*
 * Is the address known to be in conflict, or has the pool room for one more conflict of the pod
 * "namespace/name" and of its namespace? Entries of versions that noted no pod count for none.
 */
bool ip_conflicts_has_room(const struct ip_conflicts *conflicts, const char *address,
			   const char *pod);

/*
 * An address that the pod "namespace/name" has of the pool, and for which there is room, is in use
 * by `mac`, as `node` sees it. False when that is known, by an
 * entry in the first half of its time: who tries again and again does not have the pool written
 * each time. mac: from a user's hand perhaps; what is not "xx:xx:xx:xx:xx:xx" is not kept, since
 * the server would refuse the whole status. node: NULL: not known.
 */
bool ip_conflicts_note(struct ip_conflicts *conflicts, const char *address, const char *mac,
		       const char *pod, const char *node, const char *now);

/* Put conflictIPs and conflictIPCount into a status; both are absent when there are none. */
void ip_conflicts_write(const struct ip_conflicts *conflicts, json_t *status);
