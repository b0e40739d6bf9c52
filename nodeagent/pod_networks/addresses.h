// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses for the pods of this node, from SpiderIPPools: found where the leader has put them,
 * asked for where it could not foresee them, taken with the same function and the same
 * compare-and-swap when no operator leads.
 *
 * A request reads the pod's SpiderEndpoint by name and watches that one name only while it does not
 * have what is needed and the pod has not ended. Requests for other NICs of the pod within a second
 * are answered from the same read, if it has what they need and nothing was said of the pod since.
 * So are those for the first ones of a pod that is new on the node: it is read for them while its
 * kubelet begins with it. All NICs of a request are answered together, or none.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/kube/client.h"
#include "lib/loop/loop.h"

enum {
	/*
	 * The leader gets this long to foresee before it is asked: it may be at it, and two would
	 * write one name. A pod that it cannot foresee is asked for at once.
	 */
	ADDRESSES_ASK_AFTER_MS = 300,
	/*
	 * No operator leads when the Lease has had no holder for this long while a request waits. A
	 * Lease that has a holder says itself for how long it holds (lib/kube/lease.h).
	 */
	ADDRESSES_NO_LEADER_MS = 5000,
};

struct addresses;

/* All borrowed. */
struct addresses_config {
	struct loop *loop;
	struct kube_client *client;
	const char *node;
	const char *ns;    /* of the operator: its Lease */
	const char *lease; /* its name; NULL: orbweaver-operator */
	const char
		*config_ns; /* of the ConfigMap spiderpool-conf, unless the Lease names another */
	/* Read the Lease at the start, and regularly: see addresses_config_ns(). */
	bool follows_leader;
	/*
	 * Is something of the pod with this UID on the node, as far as the CNI state knows? Pods
	 * that end without a DEL (their sandbox was never made, or the agent was away) are given
	 * back when it says no, and what new ones get is read before they ask. NULL: pods are not
	 * watched.
	 */
	bool (*holds)(void *arg, const char *uid);
	/*
	 * So long after a release that found no SpiderEndpoint it looks once more, when a leader's
	 * write for the pod has arrived or never will; 0: a minute.
	 */
	int64_t second_look_ms;
	/*
	 * How often the SpiderEndpoints of the node are listed: the leader asks there about pods of
	 * which nobody here has heard. 0: half an hour.
	 */
	int64_t look_ms;
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct addresses *addresses_new(const struct addresses_config *config);
/* Requests end without a callback. Before the client. */
void addresses_free(struct addresses *addresses);

/*
 * The namespace in which the leader reads the ConfigMap spiderpool-conf, as far as its Lease was
 * read. Borrowed until the loop turns.
 */
const char *addresses_config_ns(const struct addresses *addresses);

/* All strings and JSON are copied, or referenced, before the call returns. */
struct addresses_request {
	const char *ns, *name, *uid; /* of the pod */
	/*
	 * What its NICs ask with, as in reconcilers/ipam/candidates.h: a list of
	 *
	 *	{"nic": "net1", "network": "namespace/name" of the NAD, "ipv4": […], "ipv6": […],
	 *	"cleanGateway": bool,
	 *	 "masterAddresses": […]}
	 *
	 * All but "nic" are optional: `ipv4`, `ipv6`, `cleanGateway` are default_ipv4_ippool,
	 * default_ipv6_ippool and clean_gateway of the network's ipam object; "masterAddresses" is
	 * there when that says match_master_subnet.
	 */
	const json_t *asks;
	int64_t deadline_ms; /* clock_ms */
};

/*
 * status: that of the pod's SpiderEndpoint, NULL exactly when err is set. What a NIC gets is read
 * out of it with endpoint_item() of reconcilers/ipam/endpoint.h and, as the result of a CNI call
 * (ips, gateway, routes), with ipam_cni_result() of reconcilers/ipam/allocate/allocate.h; the item
 * also has "vlan". Keep it with the pod's state: addresses_release() wants it.
 *
 * Errors, the text says what to do next:
 *	ERR_TRANSIENT "AddressesPending"	not there by the deadline; the text has the leader's
 *                                              reason, if it gave one
 *	ERR_INVALID "PodNotFound"	there is no pod of this name and UID any more
 *	ERR_INVALID "PodEnded"	the pod is there and gets no addresses any more
 *	ERR_INVALID "AddressNotAdmitted"	the endpoint gives the pod an address that no
 *                                              ledger has for it (ipam/allocate/claim.h)
 *	ERR_INVALID	those of ipam_allocate(), when nobody leads and the agent took addresses
 *                      itself
 *	ERR_TRANSIENT	those of lib/kube/client.h, when the API server does not answer until the
 *                      deadline
 */
typedef void addresses_done_fn(void *arg, const json_t *status, const struct err *err);

struct addresses_want;

/* done comes once, never before this returns. */
struct addresses_want *addresses_want(struct addresses *addresses,
				      const struct addresses_request *request,
				      addresses_done_fn *done, void *arg);
/*
 * No callback comes any more. What was asked for stays asked for until addresses_release(). NULL is
 * fine.
 */
void addresses_want_cancel(struct addresses_want *want);

/*
 * NICs of the pod with this UID are about to ask: its endpoint is read meanwhile. Nothing comes of
 * it where there is none yet.
 */
void addresses_foresee(struct addresses *addresses, const char *ns, const char *name,
		       const char *uid);

/*
 * Nothing of the pod with this UID is left on this node: its interfaces were taken down, by the
 * last DEL of its sandbox. The word goes to its SpiderEndpoint, and the leader gives the addresses
 * back once the pod has ended, so this is right after each DEL, also of a sandbox that is made
 * again. Where the endpoint is gone, or belongs to another pod by now, the agent gives back the
 * records of this UID itself.
 *
 * It is tried until it succeeds, also after `done`, as long as the process lives: DEL need not wait
 * for it (done may be NULL). err as above, once, when the first attempt failed for want of an API
 * server.
 */
void addresses_release(struct addresses *addresses, const char *ns, const char *name,
		       const char *uid, void (*done)(void *arg, const struct err *err), void *arg);

/*
 * Somebody else on the network has these addresses of the pod with this UID: [{"ip", "mac"}]. The
 * word goes to its SpiderEndpoint; what becomes of it is in reconcilers/ipam/conflict.h. Addresses
 * that are not from a SpiderIPPool are left out.
 *
 * done comes once, never before this returns, with an error when the word could not be said: it is
 * not tried again.
 */
void addresses_report_conflicts(struct addresses *addresses, const char *ns, const char *name,
				const char *uid, const json_t *conflicts,
				void (*done)(void *arg, const struct err *err), void *arg);
