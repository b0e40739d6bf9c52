// SPDX-License-Identifier: Apache-2.0
/*
 * ipam_allocate() settles what the pod has (conflicts, lost records, the pod before it), then
 * serves its NICs one by one: all of them, or books_cancel(). The status is the caller's to write.
 */
#include "reconcilers/ipam/allocate/allocate.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/allocate_internal.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/pod_controller.h"

/*
 * Of a list that names no NICs each item is taken once: a NIC for which none is left must not get
 * an address of another one's pools.
 */
static int take_wants(struct allocate_call *call, const json_t *wants, struct err *err)
{
	json_t *want, *item;
	size_t i;

	json_array_foreach (wants, i, want) {
		const char *interface = allocation_interface(want);
		bool is_numbered = !str_eq(interface, json_str_at(want, "nic"));

		if (*interface ? allocation_item(call->items, interface) != NULL
			       : allocation_has_place(call, i))
			continue;
		item = allocation_make_item(call, want, interface, err);
		if (!item)
			return -1;
		allocation_put_item(call, item, is_numbered ? i : json_array_size(call->items));
	}
	return 0;
}

/* An item that waits for its NIC is this one's. */
static bool claim_waiting_item(struct allocate_call *call, const char *nic)
{
	json_t *item = allocation_item(call->items, "");

	if (!item)
		return false;
	/* The items are shared with the endpoint that was read. */
	for (size_t i = 0; i < json_array_size(call->items); i++) {
		if (json_array_get(call->items, i) == item) {
			json_t *own = json_copy(item);

			json_put_str(own, "interface", nic);
			json_array_set_new(call->items, i, own);
		}
	}
	return true;
}

static int serve_ask(struct allocate_call *call, const json_t *ask, struct err *err)
{
	const char *nic = json_str_at(ask, "nic");
	json_auto_t *wants = NULL, *routes = NULL;

	if (allocation_judge_again(call, ask, err) < 0)
		return -1;
	if (allocation_item(call->items, nic) || claim_waiting_item(call, nic))
		return 0;
	routes = allocation_routes(call->pod, err);
	wants = routes ? candidates_find(books_world(call->books), call->pod, ask, call->settings,
					 call->memo, err)
		       : NULL;
	if (!wants)
		return -1;
	json_array_clear(call->fresh);
	if (take_wants(call, wants, err) < 0)
		return -1;
	allocation_spread_routes(call, routes);
	if (allocation_item(call->items, nic) || claim_waiting_item(call, nic))
		return 0;
	return err_set(err, ERR_INVALID, "NoAddressForNic",
		       "annotation " IPAM_ANNOTATION_POOLS " has no item left for NIC %s: add one",
		       nic);
}

/* ---- conflicts ------------------------------------------------------------------------------- */

static int note_conflict(struct books *books, struct ledger *ledger, const char *address,
			 const json_t *conflict, struct err *err)
{
	const json_t *record = ledger_record(ledger, address);
	const struct ledger_holder holder = {
		json_str_at(record, "pod"),
		json_str_at(record, "podUid"),
		json_str_at(record, "node"),
	};

	if (ledger_note_conflict(ledger, address, json_str_or(json_at(conflict, "mac"), ""),
				 &holder, world_env(books_world(books), "now")))
		return 0;
	return err_set(err, ERR_TRANSIENT, "TooManyConflicts",
		       "address %s of pool %s: pods of this namespace report more of its addresses "
		       "in use by other hosts than it remembers within an hour; stop those hosts, "
		       "or name their addresses in spec.excludeIPs of the pool",
		       address, json_name(ledger->pool));
}

int ipam_note_conflicts(struct books *books, const char *pod, const json_t *status,
			const json_t *conflicts, struct err *err)
{
	const char *uid = json_str_or(json_at(status, "current", "uid"), "");
	json_t *item, *conflict;
	int ret = 0;
	size_t i;

	assert(pod);
	json_array_foreach (json_at(status, "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			const struct allocation_family *family = &allocation_families[f];
			const char *pool = json_str_at(item, family->pool);
			const json_t *record;
			struct ledger *ledger;
			char address[IP_TEXT_SIZE];

			if (!pool || !allocation_address(item, family, address))
				continue;
			conflict = json_find(conflicts, "ip", address);
			if (!conflict)
				continue;
			pool = books_pool_of(books, pool, family->family, address);
			ledger = books_open(books, pool, NULL);
			record = ledger ? ledger_record(ledger, address) : NULL;
			if (record && str_eq(json_str_at(record, "podUid"), uid) &&
			    str_eq(json_str_at(record, "pod"), pod) &&
			    note_conflict(books, ledger, address, conflict, err) < 0)
				ret = -1;
		}
	}
	return ret;
}

/* An agent without a leader does not read the networks' definitions. */
static bool detects_conflicts(const json_t *world, const json_t *pod,
			      const struct ipam_settings *settings)
{
	return settings->detects_conflicts ||
	       json_is_true(json_at(world, "env", "withoutLeader")) ||
	       foresee_detection(world, pod, settings);
}

bool ipam_has_heard(const json_t *world, const json_t *pod, const json_t *status,
		    const json_t *conflicts, const struct ipam_settings *settings)
{
	assert(pod && settings);
	return !detects_conflicts(world, pod, settings) || pod_keeps_addresses(pod, settings) ||
	       !conflicts_touch_status(status, conflicts);
}

/*
 * Other addresses for the NICs that have one which somebody else has. One that does not ask now
 * waits until it does.
 */
static int exchange_conflicting(struct allocate_call *call, const json_t *asks,
				const json_t *conflicts, struct err *err)
{
	json_auto_t *wants = allocation_wants(call, asks, err),
		    *routes = allocation_routes(call->pod, err);
	size_t i;

	if (!wants || !routes)
		return -1;
	for (i = 0; i < json_array_size(call->items); i++) {
		const json_t *item = json_array_get(call->items, i);
		size_t place = allocation_place(call, i);
		const json_t *want = allocation_want(wants, item, place);
		auto_free char *interface = str_dup(json_str_or(json_at(item, "interface"), ""));
		json_t *other;

		if (!want || !conflicts_touch(item, conflicts))
			continue;
		allocation_drop_item(call, i, call->uid);
		other = allocation_make_item(call, want, interface, err);
		if (!other)
			return -1;
		json_array_insert_new(call->items, i, other);
		json_array_insert_new(call->places, i, json_integer((json_int_t)place));
	}
	allocation_spread_routes(call, routes);
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/*
 * A pool that was deleted and created under another name, or two that changed places, leave pods
 * with addresses of pools that do not account for them. The pool that does is theirs from now on.
 */
static void adopt(struct allocate_call *call)
{
	json_t *item;
	size_t i;

	json_array_foreach (call->items, i, item) {
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			const struct allocation_family *family = &allocation_families[f];
			const char *named = json_str_at(item, family->pool), *pool;
			char address[IP_TEXT_SIZE];

			if (!named || !allocation_address(item, family, address))
				continue;
			pool = books_pool_of(call->books, named, family->family, address);
			if (str_eq(pool, named))
				continue;
			/* The items are shared with the endpoint that was read. */
			item = json_copy(item);
			json_put_str(item, family->pool, pool);
			json_array_set_new(call->items, i, item);
		}
	}
}

static int restore_record(struct allocate_call *call, const struct allocation_family *family,
			  const json_t *item, struct err *err)
{
	const char *pool = json_str_at(item, family->pool);
	struct ledger *ledger = pool ? books_open(call->books, pool, NULL) : NULL;
	char address[IP_TEXT_SIZE];
	const json_t *record;

	if (!ledger || !allocation_address(item, family, address))
		return 0;
	record = ledger_record(ledger, address);
	if (record && !str_eq(json_str_at(record, "podUid"), call->uid))
		return err_set(err, ERR_INVALID, "AddressTwice",
			       "address %s of pool %s is recorded for pod %s: restart this pod",
			       address, pool, json_str_at(record, "pod"));
	if (record)
		return 0;
	/* Users may write endpoints: who waits has its turn once all that runs is recorded. */
	if (pod_sandbox(call->pod) == POD_SANDBOX_NONE && books_check_learned(ledger, err) < 0)
		return -1;
	if (allocation_check_claim(call, family, item, ledger, address, err) < 0)
		return -1;
	books_note(call->books, ledger, address);
	(void)ledger_take_this(ledger, address, &call->holder);
	return 0;
}

/*
 * What the pod has is what pools may hand out again, unless their records say so: those that were
 * lost are made again. All that can be; err is the first that cannot.
 */
static int restore_records(struct allocate_call *call, struct err *err)
{
	json_t *item;
	size_t i;
	int ret = 0;

	json_array_foreach (call->items, i, item)
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++)
			if (restore_record(call, &allocation_families[f], item,
					   ret < 0 ? NULL : err) < 0)
				ret = -1;
	return ret;
}

/* Users may write endpoints; a pod has a NIC for each of its networks, and eth0. */
static int check_numbers(const json_t *endpoint, const json_t *asks, struct err *err)
{
	const json_t *ips = json_at(endpoint, "status", "current", "ips");
	size_t has = json_is_integer(ips) ? (size_t)json_integer_value(ips) : json_array_size(ips);
	size_t n = has > json_array_size(asks) ? has : json_array_size(asks);

	if (n <= LIMIT_NETWORKS + 1)
		return 0;
	return err_set(
		err, ERR_INVALID, "TooLarge",
		"%zu NICs, routes or bytes in the SpiderEndpoint or the networks of the pod, a pod "
		"can have at most %d NICs",
		n, LIMIT_NETWORKS + 1);
}

static int allocate_all(struct allocate_call *call, const json_t *endpoint, const json_t *asks,
			struct err *err)
{
	const json_t *current = json_at(endpoint, "status", "current");
	json_auto_t *conflicts = conflicts_said(endpoint, call->uid);
	const char *had_uid = json_str_or(json_at(current, "uid"), "");
	bool is_same = str_eq(had_uid, call->uid);
	/* Else lifecycle.c releases it. An agent without a leader does not know the other pods. */
	bool is_over = endpoint_is_down(endpoint, had_uid) &&
		       !json_is_true(json_at(books_world(call->books), "env", "withoutLeader")) &&
		       !allocation_is_of_stranger(call, had_uid);
	json_t *ask;
	size_t i;

	if (check_numbers(endpoint, asks, err) < 0)
		return -1;
	if (is_same || (current && pod_keeps_addresses(call->pod, call->settings)))
		json_array_extend(call->items, json_at(current, "ips"));
	else if (is_over)
		/* Its word goes with it as soon as the endpoint is this pod's. */
		(void)ipam_give_back(call->books, call->name, json_at(endpoint, "status"));
	adopt(call);
	for (i = 0; i < json_array_size(call->items); i++)
		json_array_append_new(call->places, json_integer((json_int_t)i));
	if (is_same && conflicts_touch_status(json_at(endpoint, "status"), conflicts) &&
	    detects_conflicts(books_world(call->books), call->pod, call->settings)) {
		bool is_noted =
			ipam_note_conflicts(call->books, call->name, json_at(endpoint, "status"),
					    conflicts, err) == 0;

		if (!pod_keeps_addresses(call->pod, call->settings) &&
		    (!is_noted || exchange_conflicting(call, asks, conflicts, err) < 0))
			return -1;
	}
	if (is_same && restore_records(call, err) < 0)
		return -1;
	call->keeps_dropped = !is_same && !is_over;
	if (json_array_size(call->items) && !is_same &&
	    allocation_come_back(call, asks, had_uid, err) < 0)
		return -1;
	json_array_foreach (asks, i, ask)
		if (serve_ask(call, ask, err) < 0)
			return -1;
	/* Nobody would read it again. */
	if (limits_check_list(call->items, err) < 0)
		return err_in(err, "the pod's NICs with the routes of their pools");
	return 0;
}

static void pass_init(struct allocate_call *call)
{
	call->uid = json_uid(call->pod);
	call->name = str_printf("%s/%s", json_namespace(call->pod),
				pod_endpoint_name(call->pod, call->settings));
	call->holder = (struct ledger_holder){call->name, call->uid,
					      json_str_at(call->pod, "spec", "nodeName")};
	call->items = json_array();
	call->places = json_array();
	call->fresh = json_array();
	call->memo = json_object();
}

static void pass_done(struct allocate_call *call)
{
	free(call->name);
	json_decref(call->items);
	json_decref(call->places);
	json_decref(call->fresh);
	json_decref(call->memo);
}

int ipam_allocate(struct books *books, const json_t *pod, const json_t *endpoint,
		  const json_t *asks, const struct ipam_settings *settings, json_t **ret_status,
		  struct err *err)
{
	auto_call(pass_done) struct allocate_call call = {
		.books = books,
		.pod = pod,
		.settings = settings,
		.asks = asks,
	};
	struct pod_controller top;
	json_t *status, *current;

	assert(pod && asks);
	if (pod_need_alive(pod, err) < 0)
		return -1;
	pass_init(&call);
	books_begin(books);
	if (allocate_all(&call, endpoint, asks, err) < 0) {
		books_cancel(books);
		return -1;
	}
	if (books_is_paced(books)) {
		books_cancel(books);
		return err_set(err, ERR_TRANSIENT, "LedgerPaced",
			       "a ledger that pod %s needs was just written", call.name);
	}
	books_keep(books);

	top = pod_controller(call.pod);
	status = json_object();
	current = json_object();
	json_put_str(current, "uid", call.uid);
	json_put_str(current, "node", json_str_or(json_at(call.pod, "spec", "nodeName"), ""));
	json_put(current, "ips", json_incref(call.items));
	json_put(status, "current", current);
	json_put_str(status, "ownerControllerType", top.kind);
	json_put_str(status, "ownerControllerName", top.name);
	*ret_status = status;
	return 0;
}

void ipam_record(struct books *books, const json_t *pod, const json_t *endpoint, const json_t *asks,
		 const struct ipam_settings *settings)
{
	auto_call(pass_done) struct allocate_call call = {
		.books = books,
		.pod = pod,
		.settings = settings,
		.asks = asks,
	};

	assert(pod && asks);
	pass_init(&call);
	if (!str_eq(endpoint_uid(endpoint), call.uid) || pod_is_down(pod, endpoint, call.uid) ||
	    check_numbers(endpoint, asks, NULL) < 0)
		return;
	json_array_extend(call.items, json_at(endpoint, "status", "current", "ips"));
	adopt(&call);
	books_begin(books);
	(void)restore_records(&call, NULL);
	books_keep(books);
}

bool ipam_give_back(struct books *books, const char *pod, const json_t *status)
{
	const char *uid = json_str_or(json_at(status, "current", "uid"), "");
	bool is_complete = true;
	json_t *item;
	size_t i;

	assert(pod);
	json_array_foreach (json_at(status, "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			const struct allocation_family *family = &allocation_families[f];
			const char *pool = json_str_at(item, family->pool);
			struct err err = {0};
			struct ledger *ledger;
			char address[IP_TEXT_SIZE];

			if (!pool || !allocation_address(item, family, address))
				continue;
			pool = books_pool_of(books, pool, family->family, address);
			ledger = books_open(books, pool, &err);
			if (ledger)
				(void)ledger_release(ledger, address, pod, uid, true);
			else if (!str_eq(err.reason, "PoolNotFound"))
				is_complete = false;
		}
	}
	return is_complete;
}
