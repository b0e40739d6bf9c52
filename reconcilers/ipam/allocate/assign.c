// SPDX-License-Identifier: Apache-2.0
/*
 * A pass gives back for pods that have ended, then serves pods that run, then those that wait. It
 * plans ledgers before what follows from them; endpoints are written by lifecycle.c, which finds
 * them in BOX_DECIDED.
 */
#include "reconcilers/ipam/allocate/assign.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/allocate_internal.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ipam_settings.h"
#include "reconcilers/ipam/pod_controller.h"

struct pass {
	const json_t *world;
	struct ipam_settings settings;
	struct books *books;
	struct plan posts;    /* of the pod in its turn */
	const json_t *before; /* status of its endpoint until now; NULL: none */
	json_t *followers;    /* by pool: what is posted once the ledgers up to it are written */
	bool served;          /* somebody */
	bool leaves_waiting;  /* a pod waits for a pool to be learned, or for a ledger's pause */
	int64_t paced_ms;     /* how long a ledger rests that is needed; 0: none is */
	json_t *repaired;     /* by pool: what was put right, as text */
};

/* ---- what is mirrored ------------------------------------------------------------------------ */

bool assign_wants(const json_t *pod)
{
	const json_t *annotations = json_at(pod, "metadata", "annotations");

	if (json_is_true(json_at(pod, "spec", "hostNetwork")) ||
	    str_empty(json_str_at(pod, "spec", "nodeName")))
		return false;
	return !str_empty(json_str_at(annotations, NETWORKS_ANNOTATION)) ||
	       !str_empty(json_str_at(annotations, DEFAULT_NETWORK_ANNOTATION));
}

/* Elements of network-status that are read: a pod has no more networks. */
#define STATUS_ADDRESSES_MAX 4
/* No address and no name of an interface is longer. */
#define STATUS_WORD_MAX 64

/* Of an owner reference that can be: name, group and kind have 253 characters each at most. */
#define OWNER_BYTES_MAX 1024

/* {interface: [address]}, new; NULL: the pod's network-status has none. */
static json_t *addresses_of(const json_t *pod)
{
	const char *text =
		json_str_or(json_at(pod, "metadata", "annotations", NETWORK_STATUS_ANNOTATION), "");
	json_auto_t *elements = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, NULL);
	json_auto_t *found = json_object();
	json_t *element, *ip;
	size_t i, k;

	json_array_foreach (elements, i, element) {
		const char *nic = json_str_at(element, "interface");
		json_auto_t *list = json_array();

		if (i > LIMIT_NETWORKS)
			break;
		if (!nic || strlen(nic) > STATUS_WORD_MAX)
			continue;
		json_array_foreach (json_at(element, "ips"), k, ip)
			if (json_is_string(ip) && json_string_length(ip) <= STATUS_WORD_MAX &&
			    k < STATUS_ADDRESSES_MAX)
				json_array_append(list, ip);
		if (json_array_size(list))
			json_object_set(found, nic, list);
	}
	return json_object_size(found) ? json_incref(found) : NULL;
}

void assign_project(json_t *pod)
{
	static const char *const metadata[] = {
		"name", "namespace", "uid", "deletionTimestamp", "resourceVersion", NULL};
	static const char *const spec[] = {"nodeName", "restartPolicy", NULL};
	static const char *const status[] = {"phase", "podIP", "reason", NULL};
	static const char *const owner_of[] = {"apiVersion", "kind",       "name",
					       "uid",        "controller", NULL};
	json_t *annotations = limits_pod_annotations(json_at(pod, "metadata", "annotations"));
	json_t *labels = limits_labels(json_at(pod, "metadata", "labels"));
	const json_t *owner = owner_controller(pod);
	json_t *kept = json_object();

	json_put(kept, "metadata", json_pick(json_object_get(pod, "metadata"), metadata));
	json_put(kept, "spec", json_pick(json_object_get(pod, "spec"), spec));
	json_put(kept, "status", json_pick(json_object_get(pod, "status"), status));
	json_put(json_at(kept, "metadata"), "annotations", annotations);
	json_put(json_at(kept, "metadata"), "labels", labels);
	json_put(kept, "addresses", addresses_of(pod));
	if (owner) {
		json_auto_t *reference = json_pick(owner, owner_of);

		/* No name of an object is so long; such an owner does not exist. */
		if (limits_weight(reference) <= OWNER_BYTES_MAX)
			json_put(json_at(kept, "metadata"), "ownerReferences",
				 json_pack("[O]", reference));
	}
	json_object_clear(pod);
	json_object_update(pod, kept);
	json_decref(kept);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* names: a set, {name: true}. */
static void add_name(json_t *names, const char *name)
{
	if (!str_empty(name))
		json_put_bool(names, name, true);
}

/* The pools that the addresses name, and those that have their records (books_pool_of()). */
static void add_pools_of(const struct pass *pass, json_t *names, const json_t *status)
{
	json_t *item;
	size_t i;

	json_array_foreach (json_at(status, "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			const struct allocation_family *family = &allocation_families[f];
			const char *pool = json_str_at(item, family->pool);
			char address[IP_TEXT_SIZE];

			add_name(names, pool);
			if (pool && allocation_address(item, family, address))
				add_name(names,
					 books_pool_of(pass->books, pool, family->family, address));
		}
	}
}

/*
 * What was posted for the pod in its turn follows the ledgers of these addresses, which are written
 * by name. So endpoints of the first pools are on their way while the last pools are written.
 */
static void follow_ledgers(struct pass *pass, const json_t *status, const json_t *records)
{
	json_auto_t *names = json_object(), *pools = json_array();
	const char *last = "", *name;
	json_t *item, *ops;
	size_t i;

	add_pools_of(pass, names, status);
	add_pools_of(pass, names, pass->before);
	json_array_foreach (records, i, item)
		add_name(names, json_str_at(item, "pool"));
	json_each (names, name, item) {
		json_array_append_new(pools, json_string(name));
		if (strcmp(last, name) < 0)
			last = name;
	}
	plan_group(&pass->posts, 0, NULL, pools);
	ops = json_object_get(pass->followers, last);
	if (!ops) {
		ops = json_array();
		json_put(pass->followers, last, ops);
	}
	if (pass->posts.ops)
		json_array_extend(ops, pass->posts.ops);
	plan_done(&pass->posts);
}

/* Once it is written, a large ledger rests. */
static void pace_ledger(const struct pass *pass, const json_t *op, struct plan *plan)
{
	int64_t clock_ms = json_integer_value(json_at(pass->world, "env", "clockMs"));
	const char *pool = json_str_at(op, "key");
	int64_t pause_ms = books_pause_ms(pass->books, pool,
					  json_str_at(op, "status", "allocatedIPs"), clock_ms);
	json_auto_t *needs = json_pack("[s]", pool);
	size_t first = json_array_size(plan->ops);

	if (pause_ms == 0)
		return;
	plan_post(plan, BOX_PACED, pool, json_integer(clock_ms + pause_ms));
	plan_group(plan, first, NULL, needs);
}

/* Append the operations on ledgers, by name, each followed by what it has made true. */
static void plan_in_order(const struct pass *pass, const struct plan *ledgers, struct plan *plan)
{
	size_t n = 0, next = 0, i;
	auto_free const char **pools = json_sorted_keys(pass->followers, &n);
	json_t *op;

	if (!plan->ops)
		plan->ops = json_array();
	json_array_foreach (ledgers->ops, i, op) {
		for (; next < n && strcmp(pools[next], json_str_at(op, "key")) < 0; next++)
			plan_join(plan,
				  &(struct plan){json_object_get(pass->followers, pools[next])});
		if (str_eq(json_str_at(op, "op"), "status"))
			json_put_str(op, "group", json_str_at(op, "key"));
		json_array_append(plan->ops, op);
		if (str_eq(json_str_at(op, "op"), "status"))
			pace_ledger(pass, op, plan);
	}
	for (; next < n; next++)
		plan_join(plan, &(struct plan){json_object_get(pass->followers, pools[next])});
}

/* ---- giving back ----------------------------------------------------------------------------- */

static bool give_records_back(const struct pass *pass, const json_t *records, const char *uid)
{
	bool is_complete = true;
	json_t *record;
	size_t i;

	json_array_foreach (records, i, record) {
		const char *pool = json_str_or(json_at(record, "pool"), "");
		const char *address = json_str_or(json_at(record, "address"), "");
		struct err err = {0};
		struct ledger *ledger = books_open(pass->books, pool, &err);
		json_auto_t *had =
			ledger ? json_incref((json_t *)ledger_record(ledger, address)) : NULL;

		if (ledger && ledger_release(ledger, address, NULL, uid, true)) {
			const char *before = json_str_at(pass->repaired, pool);

			json_put(pass->repaired, pool,
				 json_fmt("%s%s%s of pod %s (UID %s)",
					  before ? before : "gave back ", before ? ", " : "",
					  address, json_str_or(json_at(had, "pod"), "?"),
					  json_str_or(json_at(had, "podUid"), "?")));
		} else if (!ledger && !str_eq(err.reason, "PoolNotFound")) {
			is_complete = false;
		}
	}
	return is_complete;
}

/* Did what was just looked at need a ledger that rests? */
static bool note_pace(struct pass *pass)
{
	int64_t paced_ms = books_paced_ms(pass->books);

	if (paced_ms > pass->paced_ms)
		pass->paced_ms = paced_ms;
	return paced_ms >= 0;
}

static void end_pod(struct pass *pass, const char *key, const json_t *ended)
{
	const char *uid = json_str_or(json_at(ended, "uid"), "");
	auto_free char *endpoint = str_ndup(key, strcspn(key, " "));
	bool is_given;

	/* Of a pod that is gone no network can be asked whether it detects conflicts. */
	if (pass->settings.detects_conflicts)
		(void)ipam_note_conflicts(pass->books, endpoint, json_at(ended, "status"),
					  json_at(ended, "conflicts"), NULL);
	is_given = ipam_give_back(pass->books, endpoint, json_at(ended, "status"));

	is_given = give_records_back(pass, json_at(ended, "records"), uid) && is_given;
	(void)note_pace(pass);
	/* A ledger that cannot be read keeps what it has, and the endpoint says whose it is. */
	if (!is_given)
		return;
	plan_post(&pass->posts, BOX_ENDING, key, NULL);
	pass->served = true;
	if (json_at(ended, "status"))
		plan_post(&pass->posts, BOX_DECIDED, endpoint, json_pack("{s:s}", "gone", uid));
	follow_ledgers(pass, json_at(ended, "status"), json_at(ended, "records"));
}

/* ---- handing out ----------------------------------------------------------------------------- */

/*
 * What the pod's NICs ask with: foreseen, or asked by its node's agent, who knows better. A pod
 * that runs has its addresses: of what is foreseen, it gets those that are known, and no new ones.
 * ret_open: more may come, once a network is there or the agent asks. NULL with err. Returns new.
 */
static json_t *asks_of(const struct pass *pass, const json_t *pod, const json_t *endpoint,
		       bool *ret_open, struct err *err)
{
	json_auto_t *unknown = NULL, *asked = endpoint_asks(endpoint, json_uid(pod));
	json_auto_t *foreseen = foresee(pass->world, pod, &pass->settings, &unknown, err);
	json_t *asks, *ask;
	bool runs = pod_sandbox(pod) != POD_SANDBOX_NONE;
	size_t i;

	if (!foreseen && !asked)
		return NULL;
	*ret_open = json_array_size(unknown) > 0;
	asks = json_array();
	json_array_foreach (foreseen, i, ask) {
		if (json_find(asked, "nic", json_str_at(ask, "nic")))
			continue;
		if (runs)
			json_put_bool(ask, "isKnownOnly", true);
		json_array_append(asks, ask);
	}
	json_array_extend(asks, asked);
	return asks;
}

/*
 * Do the addresses of the pod's machine stay with another pod of it? A machine that migrates has
 * two that live, and the one whose sandbox is made last has its addresses. So a pod takes them over
 * when its agent asks, not before; and users may write owner references, so KubeVirt's word is read
 * then (lifecycle.c).
 */
static bool is_of_other_pod(const struct pass *pass, const json_t *pod, const json_t *endpoint)
{
	return pass->settings.keeps_virtual_machines && pod_is_successor(pod, endpoint) &&
	       !json_is_true(json_at(pod, ASSIGN_TAKES_OVER));
}

/* Do not look at it again. why: what is wrong with it all the same, or NULL. */
static void stop_waiting(struct pass *pass, const char *key, const char *why)
{
	plan_finding(&pass->posts, KIND_BOUND_POD, key, why ? "RouteUnreachable" : NULL, why);
	plan_post(&pass->posts, BOX_WAITING, key, NULL);
	pass->served = true;
}

/* The pod keeps waiting; it and its node's agent learn why. */
static void refuse_pod(struct pass *pass, const char *key, const json_t *pod,
		       const json_t *endpoint, const struct err *err)
{
	auto_free char *place = endpoint ? json_key(endpoint) : NULL;
	auto_free char *why = str_printf("%s %s: %s", json_uid(pod), err->reason, err->text);

	plan_finding(&pass->posts, KIND_BOUND_POD, key, err->reason, err->text);
	if (endpoint && json_at(endpoint, "metadata", "annotations", ENDPOINT_ASKS_ANNOTATION)) {
		size_t first = json_array_size(pass->posts.ops);

		plan_meta(&pass->posts, KIND_ENDPOINT, place,
			  json_pack("{s:{s:s}}", "annotations", ENDPOINT_REFUSED_ANNOTATION, why));
		/* The server may refuse it: that is not about the pods that follow. */
		plan_group(&pass->posts, first, place, NULL);
	}
}

/* The agent's word on conflicts, if nothing is left to be done about it. Borrowed. */
static const char *heard_text(const struct pass *pass, const json_t *pod, const json_t *endpoint,
			      const json_t *status)
{
	json_auto_t *conflicts = conflicts_said(endpoint, json_uid(pod));

	if (!conflicts || !ipam_has_heard(pass->world, pod, status, conflicts, &pass->settings))
		return NULL;
	return json_str_at(endpoint, "metadata", "annotations", ENDPOINT_CONFLICTS_ANNOTATION);
}

/* What it has, when it gets nothing else now; asks: NULL when they cannot be read. */
static void record_what_it_has(struct pass *pass, const json_t *pod, const json_t *endpoint,
			       const json_t *asks)
{
	json_auto_t *none = json_array();

	ipam_record(pass->books, pod, endpoint, asks ? asks : none, &pass->settings);
}

/*
 * "namespace/name" of the SpiderEndpoint that the pod has, or shares with its machine. Returns new.
 */
static char *place_of(const struct pass *pass, const json_t *pod)
{
	return str_printf("%s/%s", json_namespace(pod), pod_endpoint_name(pod, &pass->settings));
}

/* pod: NULL has none. */
static const json_t *endpoint_of(const struct pass *pass, const json_t *pod)
{
	auto_free char *place = pod ? place_of(pass, pod) : NULL;

	return place ? world_get(pass->world, KIND_ENDPOINT, place) : NULL;
}

static int check_crowd(const struct pass *pass, const char *place, struct err *err)
{
	if (!world_get(pass->world, BOX_CROWDED, place))
		return 0;
	return err_set(
		err, ERR_INVALID, "TooLarge",
		"more than %d pods name VirtualMachineInstance %s as their owner, at most so "
		"many are read: delete those that are not of it",
		LIMIT_MACHINE_PODS, place);
}

/* The status that the pod's endpoint gets; NULL when it gets none. Returns new. */
static json_t *serve_pod(struct pass *pass, const char *key, const json_t *pod)
{
	auto_free char *place = pod ? place_of(pass, pod) : NULL;
	const json_t *endpoint = endpoint_of(pass, pod);
	auto_free char *left_out = NULL;
	json_auto_t *asks = NULL;
	const char *heard = NULL;
	json_t *status = NULL;
	struct err err = {0};
	bool is_open = false, is_new;

	pass->before = json_at(endpoint, "status");
	if (!pod || is_of_other_pod(pass, pod, endpoint)) {
		stop_waiting(pass, key, NULL);
		return NULL;
	}
	asks = asks_of(pass, pod, endpoint, &is_open, &err);
	if (!pod_is_alive(pod)) {
		record_what_it_has(pass, pod, endpoint, asks);
		stop_waiting(pass, key, NULL);
		return NULL;
	}
	if (asks && json_array_size(asks) == 0) {
		record_what_it_has(pass, pod, endpoint, asks);
		if (!is_open)
			stop_waiting(pass, key, NULL);
		return NULL;
	}
	if (!asks || check_crowd(pass, place, &err) < 0 ||
	    ipam_allocate(pass->books, pod, endpoint, asks, &pass->settings, &status, &err) < 0) {
		record_what_it_has(pass, pod, endpoint, asks);
		/* That passes by itself, as soon as the pool's endpoints were looked at. */
		if (str_eq(err.reason, "PoolNotLearned")) {
			pass->leaves_waiting = true;
			return NULL;
		}
		refuse_pod(pass, key, pod, endpoint, &err);
		return NULL;
	}
	heard = heard_text(pass, pod, endpoint, status);
	is_new = !json_same(json_at(endpoint, "status"), status);
	if (is_new || heard) {
		json_t *decided = json_object();

		json_put(decided, "endpoint", is_new ? endpoint_object(place, status) : NULL);
		json_put_str(decided, "heard", heard);
		plan_post(&pass->posts, BOX_DECIDED, place, decided);
	}
	/* NICs that are not there yet may reach them. */
	left_out = is_open ? NULL : ipam_routes_left_out(pod, status);
	stop_waiting(pass, key, left_out);
	return status;
}

/* Say in the pools' status what was put right, and tell people. */
static void say_repairs(const struct pass *pass, struct plan *plan)
{
	const char *pool;
	json_t *op, *text;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		json_t *status = json_at(op, "status"), *list = json_array();
		const json_t *previous = json_at(status, "conditions"), *condition;
		const json_t *object = world_get(pass->world, KIND_IP_POOL, json_str_at(op, "key"));
		size_t k;

		text = json_at(pass->repaired, json_str_at(op, "key"));
		if (!text) {
			json_decref(list);
			continue;
		}
		json_array_foreach (previous, k, condition)
			if (!str_eq(json_str_at(condition, "type"), IP_POOL_REPAIRED))
				json_array_append(list, (json_t *)condition);
		condition_set(list, previous, IP_POOL_REPAIRED, CONDITION_TRUE, "RecordWithoutPod",
			      json_string_value(text), json_generation(object),
			      world_env(pass->world, "now"));
		json_put(status, "conditions", list);
	}
	json_each (pass->repaired, pool, text)
		plan_event(plan, KIND_IP_POOL, pool, true, "RecordWithoutPod",
			   json_string_value(text));
}

/*
 * Since when each of them waits, { UID: time }: who waited at the last pass keeps its time. Of very
 * many a pass sees some, so who waits longest is kept then, seen or not. Returns new.
 */
static json_t *waiting_since(const struct pass *pass, const json_t *before, const json_t *pods,
			     bool is_part)
{
	const char *longest = is_part ? ip_pool_waits_longest(before) : NULL;
	const char *uid, *now = world_env(pass->world, "now");
	json_t *since = json_object(), *value;

	json_each (pods, uid, value) {
		const char *known = json_str_at(before, uid);

		json_put_str(since, uid, known ? known : now);
	}
	if (longest)
		json_put_str(since, longest, json_str_at(before, longest));
	return since;
}

static bool leaves_some(const json_t *world)
{
	return json_is_true(json_at(world, "env", "isPart")) ||
	       json_object_size(world_kind(world, BOX_WAITING)) >= ASSIGN_MAX;
}

/* Who waits for an address of a pool, where that has changed. */
static void count_waiting(const struct pass *pass, const char *key, struct plan *plan)
{
	bool is_part = pass->leaves_waiting || leaves_some(pass->world);
	const json_t *present = world_kind(pass->world, BOX_SHORT_POOL);
	const json_t *now = books_short_of(pass->books);
	const char *pool;
	json_t *pods;

	json_each (now, pool, pods) {
		const json_t *before = json_object_get(present, pool);
		json_auto_t *value =
			json_pack("{s:I, s:o}", "pods", (json_int_t)json_object_size(pods), "since",
				  waiting_since(pass, json_at(before, "since"), pods, is_part));

		if (!json_same(before, value))
			plan_post(plan, BOX_SHORT_POOL, pool, json_incref(value));
	}
	json_each (is_part ? NULL : present, pool, pods)
		if (!json_object_get(now, pool))
			plan_post(plan, BOX_SHORT_POOL, pool, NULL);
	if (!is_part && ip_pool_waiting_is_unknown(pass->world))
		plan_post(plan, BOX_PASSED, key, json_true());
}

static const json_t *waiting_pod(const json_t *world, const char *key, const json_t *value)
{
	return json_is_object(value) ? value : world_get(world, KIND_POD, key);
}

/* Does the pod's network-status (assign_project()) have every address of its endpoint? */
static bool is_confirmed(const json_t *pod, const json_t *endpoint)
{
	const json_t *item, *list;
	json_auto_t *known = json_object();
	const char *nic;
	size_t i;

	json_each (json_at(pod, "addresses"), nic, list)
		json_array_foreach (list, i, item)
			json_put_bool(known, json_string_value(item), true);
	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			char address[IP_TEXT_SIZE];

			if (allocation_address(item, &allocation_families[f], address) &&
			    !json_object_get(known, address))
				return false;
		}
	}
	return true;
}

enum { TURNS = 4 };

/*
 * When the pod's turn comes. Those that have addresses are recorded before others take them; first
 * those of which the kubelet says so, and of these the ones whose network-status says the same, as
 * users may write endpoints.
 */
static int turn_of(const struct pass *pass, const json_t *pod)
{
	const json_t *endpoint = endpoint_of(pass, pod);
	bool is_own = endpoint && str_eq(endpoint_uid(endpoint), json_uid(pod));

	if (!json_at(pod, "addresses") && !is_own)
		return 3;
	if (pod_sandbox(pod) != POD_SANDBOX_MADE)
		return 2;
	return is_own && !is_confirmed(pod, endpoint);
}

static bool has_unended_addresses(const struct pass *pass, const json_t *pod)
{
	const json_t *endpoint = endpoint_of(pass, pod);

	return str_eq(endpoint_uid(endpoint), json_uid(pod)) &&
	       !pod_is_down(pod, endpoint, json_uid(pod));
}

static void serve_one(struct pass *pass, const char *key, const json_t *value)
{
	json_auto_t *status = NULL;

	/*
	 * A pod that was read for this pass may be gone before the next one. What its endpoint says
	 * is in use all the same, and is recorded before others get it.
	 */
	if (json_is_object(value) && !has_unended_addresses(pass, value))
		plan_post(&pass->posts, BOX_WAITING, key, NULL);
	status = serve_pod(pass, key, waiting_pod(pass->world, key, value));
	/* Its ledgers have nothing for it yet (ipam_allocate()): the next pass looks again. */
	if (note_pace(pass)) {
		plan_done(&pass->posts);
		pass->leaves_waiting = true;
		return;
	}
	if (world_get(pass->world, BOX_CLAIMANTS, key))
		plan_post(&pass->posts, BOX_CLAIMANTS, key, NULL);
	follow_ledgers(pass, status, NULL);
}

/* Ledgers that the server refused are tried again when their time has come. */
static void plan_another_try(const json_t *world, struct plan *plan)
{
	const char *pool;
	json_t *trouble;
	int64_t now;

	if (!rfc3339_read(world_env(world, "now"), &now))
		return;
	json_each (world_kind(world, BOX_UNWRITTEN), pool, trouble) {
		int64_t until;

		if (books_trouble(world, pool) &&
		    rfc3339_read(json_str_or(json_at(trouble, "until"), ""), &until))
			plan_requeue(plan, (until - now) / 1000 + 1);
	}
}

/* False when they cannot be read: ConfigMap and pods that wait for it have findings then. */
static bool read_settings(struct pass *pass, struct plan *plan)
{
	const char *ns = world_env(pass->world, "configNamespace"), *of;
	const char *fault = json_str_at(pass->world, "env", "configFault");
	auto_free char *config = str_printf("%s/" IPAM_CONFIG_MAP, ns);
	struct err err = {0};
	json_t *value;

	if (ipam_settings_read(world_get(pass->world, IPAM_CONFIG_MAP, config), ns, &pass->settings,
			       &err) == 0) {
		if (fault)
			plan_finding(plan, IPAM_CONFIG_MAP, config, *fault ? "BadConfig" : NULL,
				     *fault ? fault : NULL);
		return true;
	}
	plan_finding(plan, IPAM_CONFIG_MAP, config, err.reason, err.text);
	json_each (world_kind(pass->world, BOX_WAITING), of, value)
		plan_finding(plan, KIND_BOUND_POD, of, err.reason, err.text);
	return false;
}

int assign_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	struct pass pass = {.world = world};
	auto_plan struct plan ledgers = {0};
	const char *of;
	json_t *value;

	assert(key && plan);
	if (!read_settings(&pass, plan))
		return 0;
	pass.books = books_new(world);
	pass.repaired = json_object();
	pass.followers = json_object();
	json_each (world_kind(world, BOX_ENDING), of, value)
		end_pod(&pass, of, value);
	for (int turn = 0; turn < TURNS; turn++)
		json_each (world_kind(world, BOX_WAITING), of, value)
			if (turn_of(&pass, waiting_pod(world, of, value)) == turn)
				serve_one(&pass, of, value);
	books_plan(pass.books, &ledgers);
	say_repairs(&pass, &ledgers);
	plan_in_order(&pass, &ledgers, plan);
	count_waiting(&pass, key, plan);
	plan_another_try(world, plan);
	if (pass.paced_ms > 0)
		plan_requeue(plan, pass.paced_ms);
	if (leaves_some(world) || json_is_true(json_at(world, "env", "leavesEnding")))
		plan_requeue(plan, pass.served ? 0 : ASSIGN_AGAIN_MS);
	books_free(pass.books);
	json_decref(pass.repaired);
	json_decref(pass.followers);
	return 0;
}
