// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses for a pod: all that it asks for, or none.
 *
 * Decided by pod UID and NIC. What a pod has is its SpiderEndpoint; a record in a pool that names
 * the pod's UID and stands in no endpoint is what is left of a pass that was cut off between its
 * two writes: it is taken up first.
 */
#pragma once

#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/candidates.h"

/*
 * Make sure that every NIC of `asks` (candidates.h, a list) has its addresses.
 *
 * endpoint: the SpiderEndpoint of pod_endpoint_name(), or NULL.
 * ret_status: new; the SpiderEndpoint's status as it has to be, {"current": {"uid", "node", "ips"},
 *	"ownerControllerType", "ownerControllerName"}; equal to the endpoint's when all was there.
 *
 * A pod that keeps its addresses (pod_controller.h) takes over those of the pod before it, unless
 * their pools are no longer among its candidates, which a virtual machine is not asked; a record
 * that was lost meanwhile is made again if the address is still free. What it does not take over
 * keeps its record until the node of the pod before has said that nothing is left.
 * What another pod has that has not terminated, and whose SpiderEndpoint has this name, is neither
 * taken over nor given back: a virtual machine may have the name of a pod.
 *
 * What the endpoint says of conflicts about this pod (conflict.h) is remembered, also when the pod
 * cannot have others, and NICs that ask get others: while detection is on, by the settings or a
 * network of the pod.
 *
 * World (books_world): "env" with "now", KIND_IP_POOL, KIND_RESERVED_IP, KIND_NODE and
 * KIND_NAMESPACE of the pod, KIND_POD of the endpoint's name and of the machine of that name,
 * KIND_NAD of its networks. Errors; books, but for what was remembered, and *ret_status are as
 * before then:
 *	ERR_INVALID "PodEnded"		the pod gets no addresses any more
 *	ERR_INVALID "WrongAnnotation", "NoPool", "PoolNotFound", "NoAddressForNic"
 *					as candidates_find(), filter_pools()
 *	ERR_INVALID "BadSubnet", "BadReservedIP", "BadAllocationRecord", …
 *					as ledger_open(), when no other pool was left
 *	ERR_INVALID "TooLarge"		beyond a bound (core/limits.h)
 *	ERR_INVALID "AddressTwice"	the endpoint says that the pod has it, a record that
 *					another pod has
 *	ERR_TRANSIENT "TooManyConflicts"
 *					as ipam_note_conflicts()
 *	ERR_TRANSIENT "AddressUnknown"	the NIC gets known addresses only (candidates.h), and
 *					nothing says which
 *	ERR_TRANSIENT "LedgerPaced"	a ledger that may matter rests (BOX_PACED)
 *	ERR_TRANSIENT "LedgerFull"	as PoolExhausted; one of the candidates has no room for
 *					more records
 *	ERR_TRANSIENT "PoolExhausted"	no candidate has a free address: it comes when another pod
 *					gives one back
 */
int ipam_allocate(struct books *books, const json_t *pod, const json_t *endpoint,
		  const json_t *asks, const struct ipam_settings *settings, json_t **ret_status,
		  struct err *err);

/*
 * What becomes of the pod's own routes (annotation IPAM_ANNOTATION_ROUTES), given its endpoint's
 * status: NULL when each has a NIC whose network has its gateway, else a new sentence that names
 * those which have none and are left out.
 */
char *ipam_routes_left_out(const json_t *pod, const json_t *status);

/*
 * Make records again that were lost, of a pod that gets nothing else now: it has ended or is being
 * deleted, or ipam_allocate() has failed. Until its node says that nothing is left, nobody else
 * gets what its endpoint says that it has. Each address by itself, where the rules of
 * ipam_allocate() for a record that was lost allow it.
 */
void ipam_record(struct books *books, const json_t *pod, const json_t *endpoint, const json_t *asks,
		 const struct ipam_settings *settings);

/*
 * Remember in their pools the addresses of an endpoint's status that another host on the network
 * has (conflict.h), as far as records name the pod `pod` ("namespace/name") and the UID there:
 * users may write endpoints, and annotations, of their namespaces. So call it before
 * ipam_give_back(). Detection has to be on for the pod: else users alone say so.
 * Pools that cannot be opened remember nothing. World: "env" has "now". Returns 0, or -1 with err,
 * which may be NULL, when a pool remembers one of them not: ERR_TRANSIENT "TooManyConflicts", the
 * pod or its namespace has as many of the pool within the hour as it may have (ip_memory.h).
 */
int ipam_note_conflicts(struct books *books, const char *pod, const json_t *status,
			const json_t *conflicts, struct err *err);

/*
 * Was what the agent said of conflicts heard, when the pod's endpoint gets this status? A pod that
 * keeps its addresses gets no others; without detection nothing comes of it. World: KIND_NAD.
 */
bool ipam_has_heard(const json_t *world, const json_t *pod, const json_t *status,
		    const json_t *conflicts, const struct ipam_settings *settings);

/*
 * Give back what the status of the endpoint `pod` ("namespace/name") says that its pod has: records
 * that still name that pod and the UID there. An endpoint is evidence about the pod of its own name
 * only, since users may write endpoints of their namespaces. Pools that are gone are no error.
 * Ledgers that cannot be read are left for later: false then.
 */
bool ipam_give_back(struct books *books, const char *pod, const json_t *status);

/*
 * The result of a CNI call for one NIC: {"cniVersion", "ips", "routes", "dns": {}}, new. `ips` have
 * "version" where the specification of that version wants it (before 1.0.0). The default route
 * comes last.
 *
 * Source: https://www.cni.dev/docs/spec/, "Section 5: Result Types", and the texts of versions
 * 0.3.0 to 1.0.0.
 */
json_t *ipam_cni_result(const json_t *status, const char *nic, const char *cni_version);
