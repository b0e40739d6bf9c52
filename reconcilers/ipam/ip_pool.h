// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderIPPool: are the addresses that it promises good, how many are they, may it go.
 *
 * Key: the pool's name. World: KIND_IP_POOL (the pool, and those that may overlap it:
 * ip_pool_index.h finds them), KIND_RESERVED_IP (all), KIND_NODE (with an address of it: their
 * status.addresses). Read of a pool:
 * metadata.{name,generation,creationTimestamp,deletionTimestamp,labels,finalizers}, spec, status.
 * BOX_SHORT_POOL and BOX_UNWRITTEN of the pool, and in "env" "now", "waitingUnknown" and
 * "ledgerUnsure": true until the ledger was compared with what pods have; allocatedIPCount stays as
 * it is then.
 *
 * The plan: status (totalIPCount, allocatedIPCount, freeIPCount, waitingPodCount, conditions Ready
 * and Degraded; what agents wrote there is kept as it is, but for conflicts whose time is over,
 * ip_memory.h), the label ipam.spidernet.io/ippool-cidr, and the finalizer, which protects a pool
 * while addresses of it are in use.
 *
 * Of two pools that overlap, the younger is the one in trouble; the older goes on working. Nothing
 * here stops anyone from editing or deleting a pool.
 */
#pragma once

#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/ip_range.h"

/* The one finalizer of the API group, also set by Spiderpool's own programs. */
#define IP_POOL_FINALIZER "spiderpool.spidernet.io"
/*
 * The condition that says what IPAM put right in the ledger last; with the reasons of
 * reconcilers/ipam/allocate/audit.h.
 */
#define IP_POOL_REPAIRED "Repaired"
/* The subnet as a label value: "172-16-0-0-16". */
#define IP_POOL_CIDR_LABEL "ipam.spidernet.io/ippool-cidr"

/*
 * By SpiderIPPool (plan_post): {"pods": how many wait for an address of it, "since": {UID: when it
 * began to wait}}.
 */
#define BOX_SHORT_POOL "shortpools"
/*
 * By SpiderIPPool whose status the server refused to store, from the applier: {"reason", "text",
 * "until": RFC 3339, "againMs": from the refusal to "until"}. Until then the allocator opens no
 * ledger of it: its pods wait, with the finding LedgerNotWritten, and what has ended keeps its
 * addresses. "until" is a time of the wall clock, which may be put back: one that is ahead by more
 * than LEDGER_AGAIN_MAX_MS is over.
 */
#define BOX_UNWRITTEN "unwrittenledgers"
enum { LEDGER_AGAIN_MAX_MS = 480000 };

/* Who waits longest, by "since" of it; NULL: nobody does. Borrowed. */
const char *ip_pool_waits_longest(const json_t *since);

/*
 * Pods that wait for less are those of a rolling update, whose predecessors are about to end: the
 * pool is Degraded, PoolExhausted, when one has waited for so long, and until none waits.
 */
#define IP_POOL_PATIENCE_S 60

/*
 * "env" "waitingUnknown" is true: since the start nobody has looked at all pods that may wait, so
 * that a pool without BOX_SHORT_POOL goes on saying what it said of them.
 */
bool ip_pool_waiting_is_unknown(const json_t *world);

/* Its status says that pods wait for it. */
bool ip_pool_says_waiting(const json_t *pool);

reconcile_fn ip_pool_reconcile;

/*
 * All rules for a pool's spec, and overlap with the older pools in the world. An object without
 * creationTimestamp (it is being admitted) is younger than all.
 */
void ip_pool_check(const json_t *world, const json_t *object, struct problems *problems);

/*
 * The same, with the problems apart for which the pool still serves: those of GatewayInRange go to
 * warnings. `problems` is the verdict that the condition Ready reports and that the allocator obeys
 * (reconcilers/ipam/allocate/books.h): with one of them no new address of the pool is allocated.
 */
void ip_pool_judge(const json_t *world, const json_t *object, struct problems *problems,
		   struct problems *warnings);

/*
 * Bytes that the pool's ledger may have, status.allocatedIPs and status.allocatedNodes as they are
 * sent: what an object may have, without its spec and the rest.
 */
size_t ip_pool_ledger_room(const json_t *object);

/*
 * Does the status report Ready=True for the spec as it is now? Then a leader compared it with the
 * other pools.
 */
bool ip_pool_is_judged(const json_t *object);

struct ip_pool;

/*
 * Add the addresses that are never allocated although spec.ips may have them: the gateway's; the
 * first address of the subnet (IPv4: the network's, RFC 1122; IPv6: subnet-router anycast, RFC
 * 4291) and of IPv4 the last (broadcast), unless an element of spec.ips is that one address.
 * Subnets of two addresses or one have neither (RFC 3021, RFC 6164). Of IPv6 all of
 * ::ffff:0:0/96 (IP_V4_MAPPED). *ret is settled.
 */
void ip_pool_withhold(const json_t *object, const struct ip_pool *pool, struct ip_set *ret);

/*
 * Add the addresses of Nodes (status.addresses), {name: Node} or NULL: no pod gets one, as the
 * network would have it twice, and a node that has a route to the pod would lose the other node.
 * *ret is settled.
 */
void ip_pool_add_nodes(const json_t *nodes, enum ip_family family, struct ip_set *ret);

/*
 * What is wrong with a change from `old` to `object` that is not wrong with the object by itself:
 * another network, unless the old one was refused; addresses taken out that pods use; addresses
 * added that another pool has, be it older or younger (AddressOverlap; what overlapped before may
 * stay, or shrink).
 */
void ip_pool_check_change(const json_t *world, const json_t *old, const json_t *object,
			  struct problems *problems);

/*
 * Destination and gateway of an element of spec.routes; guides write them as "to" and "via"
 * (docs/api.md), which count where "dst" and "gw" are missing. Borrowed; NULL where both are
 * missing or not texts.
 */
const char *ip_pool_route_dst(const json_t *route);
const char *ip_pool_route_gw(const json_t *route);

/*
 * The value of IP_POOL_CIDR_LABEL; NULL when the text would be no label value ("::/64"). Returns
 * new; free().
 */
char *ip_pool_cidr_label(const struct ip_subnet *subnet);

struct ip_pool {
	struct ip_subnet subnet;
	struct ip_set usable; /* ips without excludeIPs, settled; those of the subnet only */
};

void ip_pool_done(struct ip_pool *pool);
#define auto_ip_pool auto_call(ip_pool_done)

/* What an ipVersion means: 4 or 6, or as guides write it "ipv4" or "ipv6"; 0 for anything else. */
int ip_pool_version(const json_t *version);

/*
 * 4 or 6: what spec.ipVersion says; where it is absent, as in guides, the family of spec.subnet. 0
 * when neither says one.
 */
int ip_pool_family(const json_t *spec);

/*
 * One entry of ips or excludeIPs. One that ends one address past an IPv4 `subnet` (NULL: none), as
 * guides write it for a /27 ("…1-…32", even "…225-…256"), is read up to the subnet's last address;
 * *ret_clipped says so. Errors: as ip_range_parse.
 */
int ip_pool_read_entry(const char *text, enum ip_family family, const struct ip_subnet *subnet,
		       struct ip_range *ret, bool *ret_clipped, struct err *err);

/*
 * What is accepted but is less than it says (entries that were clipped). For a pool without
 * problems.
 */
void ip_pool_warn(const json_t *object, struct problems *warnings);

/*
 * The addresses of a pool; problems, which may be NULL, gets what is wrong with subnet, ipVersion,
 * ips and excludeIPs. False when there is no readable subnet (ret is then empty).
 */
bool ip_pool_read(const json_t *object, struct ip_pool *ret, struct problems *problems);
