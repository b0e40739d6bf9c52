// SPDX-License-Identifier: Apache-2.0
/*
 * The ledger of a pool: which address belongs to which pod. It is SpiderIPPool.status.allocatedIPs,
 * a text that holds JSON,
 *
 *	{"10.6.0.10": {"pod": "ml/train-0", "podUid": "7c1e…", "node": "w1"}, …}
 *
 * ("node" is ours: it says whose word counts once pod and SpiderEndpoint are gone. Spiderpool's
 * agents neither write nor keep it. A ledger of more than LIMIT_PLAIN_LEDGER_BYTES has the nodes
 * apart, ledger_nodes.h, so that 10,000 records fit into an object) written by whoever allocates
 * (this operator, this agent, Spiderpool's agents on nodes that are not moved yet), each with the
 * resourceVersion that it read.
 * Records of others are kept byte for byte in their meaning; "interface", which versions of
 * Spiderpool before 0.9 wrote, is dropped when the pool is written next, as upstream does.
 *
 * A ledger that is open holds the pool's free addresses as intervals: a /10 and an IPv6 /64 cost
 * what a /28 costs.
 *
 * Addresses that were given back lately rest, and those that another host on the network has are
 * not free (ipam/ip_memory.h).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "reconcilers/ipam/ip_memory.h"
#include "reconcilers/ipam/ip_pool.h"

struct ledger {
	const json_t *pool; /* borrowed */
	struct ip_pool addresses;
	enum ip_family family;
	json_t *records; /* by canonical address */
	json_t *uids;    /* { UID: true } of all that had a record since it was opened */
	json_t *resting; /* array of canonical addresses, oldest first */
	struct ip_set
		kept; /* never allocated here: see ledger_open(), ledger_keep_out(); settled */
	struct ip_conflicts conflicts;
	/* neither recorded nor kept nor excluded nor in conflict; resting ones included; settled */
	struct ip_set free;
	/* Of the records, as they are sent: text in a JSON string; of their nodes in it. */
	size_t bytes, node_bytes;
	json_t *nodes;      /* { node: number of records } */
	size_t room;        /* ip_pool_ledger_room() */
	size_t opened_with; /* records that it had when it was opened */
	bool has_changed;
	/*
	 * Set by the caller: pods may have addresses of which it knows nothing. Then its status
	 * says no number of records.
	 */
	bool is_unsure;
};

/*
 * Open the ledger of a pool. Addresses of SpiderReservedIPs and those of ip_pool_withhold() are not
 * free in it. `reserved`: { name: SpiderReservedIP }, or NULL. now: RFC 3339; NULL
 * or "": no conflict that is remembered is over. The pool must live as long as the ledger. Errors,
 * all ERR_INVALID, each means that nothing of the pool can be handed out until a person has mended
 * it:
 *	"NoSubnet", "BadSubnet", "BadRange", "BadField"
 *		subnet, ipVersion or an entry of excludeIPs cannot be read: the reason that the
 *		pool's conditions have for it
 *	"BadReservedIP"	an entry of a SpiderReservedIP of this family cannot be read: what it kept
 *                      back is unknown
 *	"BadAllocationRecord"	status.allocatedIPs is not an object of records by address
 */
int ledger_open(const json_t *pool, const json_t *reserved, const char *now, struct ledger *ret,
		struct err *err);
void ledger_done(struct ledger *ledger);

/*
 * Does the pool's status count as many records as it has? Leaders and agents leave no other behind,
 * once a leader has compared the pool with what pods have. One that is new, or was reset, has
 * records to come.
 */
bool ledger_is_counted(const json_t *pool);
#define auto_ledger auto_call(ledger_done)

/*
 * The record of an address, {"pod", "podUid", "node"}, the last one not always, and empty as of
 * ledger_mark_unjudged(); NULL when it has none. Borrowed.
 */
const json_t *ledger_record(const struct ledger *ledger, const char *address);

/*
 * The address to hand out next, the one that was free longest: the lowest that is not resting, else
 * the one that has rested longest. False when none is free.
 */
bool ledger_next(const struct ledger *ledger, char out[IP_TEXT_SIZE]);

/*
 * There is no room for another record (ip_pool_ledger_room()), whatever is free: the server would
 * refuse the whole ledger. Addresses can be given back, and passed on.
 */
bool ledger_is_full(const struct ledger *ledger);
/*
 * There is no room even for what a living pod has, though resting addresses are forgotten for it:
 * users write endpoints, and a ledger that the server refuses serves no pod at all.
 */
bool ledger_is_overfull(const struct ledger *ledger);

/* Whom an address is for: what its record will say. */
struct ledger_holder {
	const char *pod; /* "namespace/name" */
	const char *uid;
	const char *node; /* NULL: not known */
};

/* Hand out this address; false when it has a record already. It need not be among the pool's. */
bool ledger_take_this(struct ledger *ledger, const char *address,
		      const struct ledger_holder *holder);

/* Write the record of another UID over: a pod that keeps its address under a new UID. */
void ledger_pass_on(struct ledger *ledger, const char *address, const struct ledger_holder *holder);
/*
 * Note in the address's record, by an empty node, that the pod has it from the one before it, and
 * that it is not known yet whether its NIC may keep it: the NIC has not asked on the pod's node.
 * Passing it on takes the note off.
 */
void ledger_mark_unjudged(struct ledger *ledger, const char *address);
bool ledger_is_unjudged(const struct ledger *ledger, const char *address);

/* May this UID have a record? False is certain, and quickly found out. */
bool ledger_may_know(const struct ledger *ledger, const char *uid);

/*
 * Give an address back, if its record still names this UID and this pod ("namespace/name"; NULL:
 * whichever); true when it did. `rests`: it was in use, so it rests.
 */
bool ledger_release(struct ledger *ledger, const char *address, const char *pod, const char *uid,
		    bool rests);

/* Undo: the address has this record again; NULL: none, and it need not rest. */
void ledger_restore(struct ledger *ledger, const char *address, const json_t *record);

/*
 * Another host on the network has this address of the pool: no pod gets it for a while. The pod
 * `holder`, which has it by the ledger, keeps it. False: the pool has room for no more conflicts of
 * the pod, or of its namespace (ip_conflicts_has_room), and hands the address out as before. mac,
 * now as ip_conflicts_note.
 */
bool ledger_note_conflict(struct ledger *ledger, const char *address, const char *mac,
			  const struct ledger_holder *holder, const char *now);

/* These addresses, a settled set, belong to other pools: they are not free here. */
void ledger_keep_out(struct ledger *ledger, const struct ip_set *others);

/*
 * The pool's status with this ledger in it: allocatedIPs (absent without records), allocatedNodes
 * (absent in one that is not large), allocatedIPCount (absent when it is unsure), freeIPCount,
 * releasedIPs (absent when empty), conflictIPs and conflictIPCount; everything else as it was
 * read. Returns new.
 */
json_t *ledger_status(const struct ledger *ledger);
