// SPDX-License-Identifier: Apache-2.0
/*
 * What the files addresses_*.c share: addresses.c wires want (requests), release, watch (pods that
 * are new, and those without a DEL) and report (conflicts); leader, recent, foresight, take, pools
 * and resources serve them.
 */
#pragma once

#include <sys/queue.h>

#include "lib/kube/api.h"
#include "nodeagent/pod_networks/addresses.h"

TAILQ_HEAD(want_list, addresses_want);
TAILQ_HEAD(release_list, release);
TAILQ_HEAD(report_list, report);
TAILQ_HEAD(foresight_list, foresight);
TAILQ_HEAD(pools_queue, pools_question);

/* addresses_pools.c: one list of all pools for all requests that need one. */
struct addresses_pools {
	struct pools_queue queue;
	struct pools_list *list;
	struct timer *due;
	int64_t listed_ms;
};

struct addresses {
	struct addresses_config config;
	struct want_list wants;
	int64_t asked_ms; /* when CNI wanted an address last; 0: never */
	struct release_list releases;
	/* No release of this UID is under way any more: a request that waited for that begins. */
	void (*released)(struct addresses *addresses, const char *uid);
	struct report_list reports;
	struct leader *leader;
	char *leader_ns; /* the leader's addresses_config_ns(); NULL: not known */
	/* Wired by addresses.c: addresses_leader.c knows nothing of requests. */
	bool (*is_waiting)(const struct addresses *addresses);
	void (*begin_round)(struct addresses *addresses);
	/* See addresses_take.c: what the attempts of one round share. NULL between rounds. */
	struct shelf *shelf;
	struct timer *next_take;
	uint64_t round; /* the number of the last one */
	bool has_helped;
	struct addresses_pools pools;
	bool has_left_out;      /* a SpiderEndpoint that is too large: said once */
	struct pod_watch *pods; /* NULL: pods that end without a DEL are not watched */
	struct timer *second_look;
	json_t *unseen; /* "UID pod": {"uid", "ns", "name", "pod", "dueMs"} of release_later() */
	/* See addresses_recent.c. */
	json_t *recent, *said;
	struct timer *recent_over;
	/* See addresses_foresight.c. */
	struct foresight_list foresights;
	struct metric *wait, *outcomes;
};

enum {
	/* Retry this after an attempt that failed; doubled each time. */
	ADDRESSES_RETRY_MS = 500,
	ADDRESSES_RETRY_MAX_MS = 60000,
	ADDRESSES_SECOND_LOOK_MS = 60000,
	/* The agents of a large cluster do not list at once: a third of it is left to chance. */
	ADDRESSES_LOOK_MS = 1800000,
	/* This long a read of an endpoint serves other NICs of its pod. */
	ADDRESSES_RECENT_MS = 1000,
	/* This long one that was made for a new pod waits: kubelets mount volumes first. */
	ADDRESSES_FORESEEN_MS = 60000,
	/* Longer than a read may take (lib/kube/client.h). */
	ADDRESSES_SAID_MS = 60000,
	/* The pools are listed at most this often by one agent; 10 % of it is left to chance. */
	ADDRESSES_LIST_POOLS_MS = 5000,
	/* Pools of a page; of a page that was too large to read, so few the next time. */
	ADDRESSES_PAGE = 500,
	ADDRESSES_SMALL_PAGE = 16,
	/* SpiderEndpoints of a page. */
	ADDRESSES_ENDPOINTS_PAGE = 100,
	/* A pod that found no address is decided on again without a change after this time. */
	ADDRESSES_TRIED_MS = 60000,
};

/* ---- addresses_leader.c ---------------------------------------------------------------------- */

struct leader *leader_new(struct addresses *addresses);
/* A request waits for addresses: make an operator lead. */
void leader_look_after(struct leader *leader);
/* Each request that waits had its attempt; has_helped: one of them has its addresses now. */
void leader_round_over(struct leader *leader, bool has_helped);
/* Accepts NULL. */
void leader_free(struct leader *leader);

/* ---- addresses_resources.c ------------------------------------------------------------------- */

extern const struct kube_resource addresses_endpoint, addresses_pool;

/* The query of a list: SpiderEndpoints of our node. Returns new; free(). */
char *addresses_node_query(const struct addresses *addresses);

/* ---- addresses_want.c ------------------------------------------------------------------------ */

/* See struct addresses. */
void want_released(struct addresses *addresses, const char *uid);
/* Does a request wait for what the leader, or a round, has to do? */
bool want_is_waiting(const struct addresses *addresses);
/* No operator leads: one attempt for each request that waits, one after the other. */
void want_begin_round(struct addresses *addresses);
/* The request that had its attempt in this round is gone. A loop_fn. */
void want_take_next(void *arg);
void want_free_all(struct addresses *addresses);

/* ---- addresses_recent.c ---------------------------------------------------------------------- */

/*
 * This endpoint was read just now, and more NICs of the pod with this UID will ask. begun_ms: when
 * the read began, clock_ms. for_ms: how long it may be used.
 */
void recent_keep(struct addresses *addresses, const char *uid, const json_t *endpoint,
		 int64_t begun_ms, int64_t for_ms);
/*
 * Borrowed; NULL: read it. is_sure: the pod is there still, so that what was read more than a
 * second ago may be used.
 */
const json_t *recent_find(const struct addresses *addresses, const char *uid, bool is_sure);
/* A NIC was answered from it: the others ask soon, or not at all. */
void recent_used(struct addresses *addresses, const char *uid);
/* Something is about to be said of the pod, or was. */
void recent_forget(struct addresses *addresses, const char *uid);
/* A loop_fn. */
void recent_forget_old(void *arg);
void recent_free_all(struct addresses *addresses);

/* ---- addresses_foresight.c ------------------------------------------------------------------- */

/* The leader has begun to look at this pod. */
void foresight_of_new_pod(struct addresses *addresses, const char *ns, const char *name,
			  const char *uid);
/* The pod with this UID is gone: nothing more is read of it. Cancels calls. */
void foresight_forget(struct addresses *addresses, const char *uid);
void foresight_free_all(struct addresses *addresses);

/* ---- addresses_endpoints.c ------------------------------------------------------------------- */

/*
 * SpiderEndpoints of our node, page by page, in the namespace ns (NULL: in all). Of each is kept:
 * name, namespace, resourceVersion, the annotations of agents, ownerControllerName and
 * endpoint_addresses().
 *
 * fn comes once for each page, never before endpoints_list_new() or endpoints_list_next() returns:
 * endpoints: an array, NULL exactly when err is set; is_last: no page follows. It may free the
 * list, as it has to after an error, or ask for the next page.
 */
struct endpoints_list;
typedef void endpoints_fn(void *arg, json_t *endpoints, bool is_last, const struct err *err);

struct endpoints_list *endpoints_list_new(struct addresses *addresses, const char *ns,
					  endpoints_fn *fn, void *arg);
void endpoints_list_next(struct endpoints_list *list);
/* No callback comes. NULL is fine. */
void endpoints_list_free(struct endpoints_list *list);

/* ---- addresses_watch.c ----------------------------------------------------------------------- */

struct pod_watch *pod_watch_new(struct addresses *addresses);
/*
 * The pod with this UID is there and has not ended, as far as can be known now. False without a
 * watch.
 */
bool pod_watch_is_sure(const struct pod_watch *watch, const char *uid);
void pod_watch_free(struct pod_watch *watch);

/* ---- addresses_release.c --------------------------------------------------------------------- */

/*
 * A release of this UID is under way; from now on it ends with its present call, as the pod is made
 * again.
 */
bool release_is_superseded(struct addresses *addresses, const char *uid);
/*
 * Say in this endpoint that nothing of the pod is left, if there is no pod of its UID any more: it
 * may have been another's, before we came.
 */
void release_if_gone(struct addresses *addresses, const json_t *endpoint);
/* Users may write endpoints that lead there: several times the pods of a node. */
enum { RELEASES_LATER_MAX = 1024 };
/*
 * Look later whether there is no pod of this UID any more, and nothing of it on the node; then say
 * so. ns, name: of the endpoint; pod: "namespace/name".
 */
void release_later(struct addresses *addresses, const char *ns, const char *name, const char *pod,
		   const char *uid);
/* Is a release of this UID and pod, "namespace/name", under way, or to be tried again? */
bool release_is_pending(const struct addresses *addresses, const char *uid, const char *pod);
/* How many there are. */
size_t release_count(const struct addresses *addresses);
void release_free_all(struct addresses *addresses);

/* Look at pods again that had no endpoint when they ended, as they become due. A loop_fn. */
void release_look_again(void *arg);

/* ---- addresses_report.c ---------------------------------------------------------------------- */

void report_free_all(struct addresses *addresses);

/* ---- addresses_pools.c ----------------------------------------------------------------------- */

/*
 * All pools, from the API server, page by page. pools: an array, NULL exactly when err is set.
 * Requests that come while others wait get the same response, so that it is read once for all. The
 * list was read after the question.
 */
struct pools_question;
typedef void pools_fn(void *arg, json_t *pools, const struct err *err);

/* done comes once, never before this returns. */
struct pools_question *pools_ask(struct addresses *addresses, pools_fn *done, void *arg);
/* No callback comes. NULL is fine. */
void pools_cancel(struct pools_question *question);
/* This pool was written: who has a list with it has the new version from now on. */
void pools_wrote(json_t *pools, json_t *pool);
/* A loop_fn. */
void pools_list_now(void *arg);
void pools_free_all(struct addresses *addresses);

/* ---- addresses_take.c ------------------------------------------------------------------------ */

/* Allocation without a leader. */
struct take;

struct shelf *shelf_new(void);
/* Accepts NULL. */
void shelf_free(struct shelf *shelf);

struct take_config {
	struct addresses *addresses;
	const char *ns, *name, *uid; /* of the pod; borrowed, as all here */
	const json_t *asks;
	/*
	 * take_seen() of the last attempt, which found no address: without a change of these pools
	 * this one ends with `before`. NULL: none.
	 */
	const json_t *seen;
	const struct err *before;
	/*
	 * status: the endpoint's, as it was written; or NULL with err: ERR_INVALID nothing helps
	 * but a change, "PodNotFound" among them; others: once more later.
	 */
	void (*done)(void *arg, const json_t *status, const struct err *err);
	void *arg;
};

/*
 * One attempt; done comes once, never before this returns, and the take is gone then. It needs
 * addresses->shelf, and no other attempt may be under way.
 */
struct take *take_begin(const struct take_config *config);
/* { pool: resourceVersion } that the decision looked at. Borrowed; for `done`. */
json_t *take_seen(const struct take *take);
/* No callback comes. NULL is fine. */
void take_cancel(struct take *take);

/*
 * PUT the status of a pool in the version in which `ledger` was read. Errors by done as in
 * kube_update(): ERR_CONFLICT when another client was first.
 */
struct ledger;
struct kube_call *take_put_ledger(struct addresses *addresses, const struct ledger *ledger,
				  kube_object_fn *done, void *arg);
