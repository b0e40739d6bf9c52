// SPDX-License-Identifier: Apache-2.0
/*
 * Looks at one pool both ways: records without an endpoint go to lifecycle.c, which verifies and
 * ends them; endpoints without a record go to assign.c, which records them again. It gives nothing
 * back itself.
 */
#include "reconcilers/ipam/allocate/strays.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/allocate/lifecycle.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ledger.h"
#include "reconcilers/ipam/pod_controller.h"

/* The pods, by UID: a virtual machine's has another name than its record. Returns new. */
static json_t *pods_by_uid(const json_t *world, bool only_living)
{
	json_t *found = json_object(), *pod;
	const char *key;

	json_each (world_kind(world, KIND_POD), key, pod)
		if (!only_living || pod_is_alive(pod))
			json_put(found, json_uid(pod), json_incref(pod));
	return found;
}

/* What is found in one pool. */
struct search {
	const json_t *world;
	const char *pool;
	const struct ledger *ledger;
	struct books *books;
	json_t *living, *strays;
	json_t *pods; /* by UID, also those that have ended */
	struct plan *plan;
	bool is_learned;
	bool is_begun; /* its claims were noted */
	bool is_open;  /* pods that have its addresses are about to be looked at */
	json_t *twice; /* by pod: it has the finding STRAYS_TWICE of this pool */
};

#define OF_POOL_AND_OF " of pool %s is also that of pod "

/* Two living pods with one address: neither can be helped but by its end. */
static void report_twice(struct search *search, const json_t *pod, const char *address)
{
	const json_t *record = ledger_record(search->ledger, address);
	const char *other = json_str_or(json_at(record, "podUid"), "");
	auto_free char *key = json_key(pod), *text = NULL;

	if (str_eq(other, json_uid(pod)) || !json_object_get(search->living, other))
		return;
	text = str_printf("address %s" OF_POOL_AND_OF "%s: delete one of the two", address,
			  search->pool, json_str_or(json_at(record, "pod"), "?"));
	plan_finding(search->plan, KIND_BOUND_POD, key, STRAYS_TWICE, text);
	json_put(search->twice, key, json_true());
}

/* What was found in this pool and is no longer so. Other pools see to theirs. */
static void forget_twice(const struct search *search)
{
	auto_free char *of_pool = str_printf(OF_POOL_AND_OF, search->pool);
	json_t *message;
	const char *key;

	json_each (world_kind(search->world, BOX_TWICE), key, message)
		if (strstr(json_str_or(message, ""), of_pool) &&
		    !json_object_get(search->twice, key))
			plan_finding(search->plan, KIND_BOUND_POD, key, NULL, NULL);
}

static void add_stray(struct search *search, const char *key, json_t *stray)
{
	json_t *list = json_object_get(search->strays, key);

	if (!list) {
		json_t *other;
		size_t i;

		/* What other pools have found of the pod, and nobody has looked at yet. */
		list = json_array();
		json_array_foreach (world_get(search->world, BOX_STRAYS, key), i, other)
			if (!str_eq(json_str_at(other, "pool"), search->pool))
				json_array_append(list, other);
		json_put(search->strays, key, list);
	}
	json_array_append_new(list, stray);
}

/*
 * Is the claim still to be looked at? Those are waited for that the first look has found: users may
 * write endpoints without end, and what pods get later has a record first.
 */
static bool is_unseen(const struct search *search, const char *claim)
{
	const json_t *seen = world_get(search->world, BOX_CLAIMED, claim);

	if (search->is_learned || !search->is_begun)
		return !search->is_learned;
	return json_is_true(seen) ||
	       (seen && world_get(search->world, BOX_CLAIMANTS, json_string_value(seen)));
}

/*
 * A pod waits for its record, also when it has ended and its node has not said that nothing is
 * left; one that is not mirrored may be there, whatever its endpoint says, and is looked at first.
 */
static void look_at_claim(struct search *search, const char *key, const json_t *endpoint,
			  const json_t *pod, const char *address)
{
	const char *uid = endpoint_uid(endpoint);
	auto_free char *claim = str_printf("%s %s", search->pool, key);
	auto_free char *waiting = pod ? json_key(pod) : NULL, *text = NULL;
	bool unseen = is_unseen(search, claim), is_new = unseen && !search->is_begun;

	if (pod && pod_is_down(pod, endpoint, uid))
		return;
	search->is_open |= unseen;
	if (!pod && is_new)
		plan_post(search->plan, BOX_CLAIMED, claim, json_true());
	if (!pod && (is_new || json_is_true(world_get(search->world, BOX_CLAIMED, claim))))
		add_stray(search, key,
			  json_pack("{s:s, s:s, s:s, s:b}", "pool", search->pool, "address",
				    address, "uid", uid, "claimed", 1));
	if (!pod)
		return;
	text = str_printf("%s of pod %s had no record: it is made again", address, key);
	plan_event(search->plan, KIND_IP_POOL, search->pool, true, "EndpointWithoutRecord", text);
	if (is_new || json_is_true(world_get(search->world, BOX_CLAIMED, claim))) {
		plan_post(search->plan, BOX_CLAIMANTS, waiting, json_true());
		plan_post(search->plan, BOX_CLAIMED, claim, json_string(waiting));
	}
	plan_post(search->plan, BOX_WAITING, waiting, json_true());
}

/* Is an address that an endpoint has from pool `named` for this pool to account for? */
static bool is_ours(const struct search *search, const char *named, const char *address)
{
	enum ip_family family = search->ledger->family;
	ip_number number;

	return str_eq(named, search->pool) ||
	       (ip_parse(address, family, &number, NULL) == 0 &&
		ip_set_has(&search->ledger->addresses.usable, number) &&
		str_eq(books_pool_of(search->books, named, family, address), search->pool));
}

/* Addresses of a pod of which the ledger knows nothing. */
static void find_unrecorded(struct search *search, const char *key, const json_t *endpoint)
{
	bool is_v4 = search->ledger->family == IP_V4;
	const char *uid = endpoint_uid(endpoint);
	const json_t *pod = json_object_get(search->pods, uid);
	bool is_claimed = false;
	json_t *item;
	size_t i;

	if (str_empty(endpoint_uid(endpoint)) ||
	    endpoint_is_lost(endpoint, world_env(search->world, "namespace")))
		return;
	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
		char address[IP_TEXT_SIZE];

		/* Users may write endpoints. */
		if (i > LIMIT_NETWORKS)
			break;
		if (!ip_print_bare(json_str_or(json_at(item, is_v4 ? "ipv4" : "ipv6"), ""),
				   search->ledger->family, address) ||
		    !is_ours(search,
			     json_str_or(json_at(item, is_v4 ? "ipv4Pool" : "ipv6Pool"), ""),
			     address))
			continue;
		if (!ledger_record(search->ledger, address)) {
			/* One pass over the pod records them all. */
			if (!is_claimed)
				look_at_claim(search, key, endpoint, pod, address);
			is_claimed = true;
		} else if (json_object_get(search->living, uid))
			report_twice(search, pod, address);
	}
}

static void find_strays(struct search *search)
{
	const char *address;
	json_t *record;

	json_each (search->ledger->records, address, record) {
		const char *pod = json_str_or(json_at(record, "pod"), "");
		const char *uid = json_str_or(json_at(record, "podUid"), "");
		json_t *stray;

		/* A pod that lives takes its record up by itself. */
		if (!strchr(pod, '/') || json_object_get(search->living, uid) ||
		    endpoint_has(world_get(search->world, KIND_ENDPOINT, pod), uid, search->pool,
				 address))
			continue;
		stray = json_pack("{s:s, s:s, s:s}", "pool", search->pool, "address", address,
				  "uid", uid);
		json_put_str(stray, "node", json_str_at(record, "node"));
		add_stray(search, pod, stray);
	}
}

static void forget_claims(const struct search *search)
{
	const char *key;
	json_t *claim;

	json_each (world_kind(search->world, BOX_CLAIMED), key, claim)
		plan_post(search->plan, BOX_CLAIMED, key, NULL);
}

/* Begin, go on, or end: all that pods have of it is recorded, or refused. */
static void learn_pool(const struct search *search, const json_t *pool)
{
	if (search->is_open) {
		if (!search->is_begun)
			plan_post(search->plan, BOX_LEARNING, search->pool,
				  json_string(json_uid(pool)));
		plan_requeue(search->plan, STRAYS_LEARN_MS);
		return;
	}
	plan_post(search->plan, BOX_LEARNED, search->pool, json_string(json_uid(pool)));
	if (search->is_begun)
		plan_post(search->plan, BOX_LEARNING, search->pool, NULL);
	forget_claims(search);
}

int strays_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *pool = world_get(world, KIND_IP_POOL, key);
	const char *learned = json_string_value(world_get(world, BOX_LEARNED, key)), *name;
	const char *learning = json_string_value(world_get(world, BOX_LEARNING, key));
	auto_ledger struct ledger ledger = {0};
	auto_books struct books *books = books_new(world);
	json_auto_t *strays = json_object(), *living = pods_by_uid(world, true);
	json_auto_t *pods = pods_by_uid(world, false), *twice = json_object();
	struct search search = {.world = world,
				.pool = key,
				.ledger = &ledger,
				.books = books,
				.living = living,
				.pods = pods,
				.strays = strays,
				.twice = twice,
				.plan = plan,
				.is_learned = pool && str_eq(learned, json_uid(pool)),
				.is_begun = pool && str_eq(learning, json_uid(pool))};
	json_t *endpoint, *list;

	assert(key && plan);
	if (!pool) {
		forget_claims(&search);
		return 0;
	}
	if (ledger_open(pool, NULL, NULL, &ledger, NULL) < 0) {
		/* It gives nothing, and is learned again once it can be read. */
		if (!search.is_learned)
			learn_pool(&search, pool);
		return 0;
	}
	if (!search.is_learned && books_trouble(world, key)) {
		/* Passes cannot record anything: look again, from the beginning, when they can. */
		if (search.is_begun)
			plan_post(search.plan, BOX_LEARNING, search.pool, NULL);
		plan_requeue(search.plan, STRAYS_LEARN_MS);
		return 0;
	}
	find_strays(&search);
	json_each (world_kind(world, KIND_ENDPOINT), name, endpoint)
		find_unrecorded(&search, name, endpoint);
	forget_twice(&search);
	json_each (strays, name, list)
		plan_post(plan, BOX_STRAYS, name, json_incref(list));
	if (!search.is_learned)
		learn_pool(&search, pool);
	if ((search.is_learned || !search.is_open) && json_object_size(ledger.records))
		plan_requeue(plan, STRAYS_AGAIN_MS);
	return 0;
}

/* "4 a0000": the number of the block, in hexadecimal. Returns new. */
static char *block_text(enum ip_family family, ip_number number)
{
	return str_printf("%d %" PRIx64, (int)family, (uint64_t)number);
}

static ip_number block_of(enum ip_family family, ip_number address)
{
	return address >> (family == IP_V4 ? 8 : 64);
}

void strays_visit_block(const char *address, void (*visit)(void *arg, const char *block), void *arg)
{
	enum ip_family family;
	ip_number number;

	assert(address && visit);
	if (ip_parse_any(address, &family, &number, NULL) == 0) {
		auto_free char *block = block_text(family, block_of(family, number));

		visit(arg, block);
	}
}

void strays_visit_blocks_of_endpoint(const json_t *endpoint,
				     void (*visit)(void *arg, const char *block), void *arg)
{
	static const char *const fields[] = {"ipv4", "ipv6"};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item)
		for (size_t f = 0; f < ARRAY_LEN(fields) && i <= LIMIT_NETWORKS; f++) {
			char address[IP_TEXT_SIZE];

			if (ip_print_bare(json_str_or(json_at(item, fields[f]), ""),
					  f == 0 ? IP_V4 : IP_V6, address))
				strays_visit_block(address, visit, arg);
		}
}

bool strays_visit_blocks(const json_t *pool, void (*visit)(void *arg, const char *block), void *arg)
{
	auto_ip_pool struct ip_pool addresses = {0};
	enum ip_family family;
	ip_number n = 0;

	if (!ip_pool_read(pool, &addresses, NULL))
		return true;
	family = addresses.subnet.family;
	for (size_t i = 0; i < addresses.usable.len && n <= STRAYS_BLOCKS_MAX; i++)
		n += block_of(family, addresses.usable.items[i].last) -
		     block_of(family, addresses.usable.items[i].first) + 1;
	if (n > STRAYS_BLOCKS_MAX)
		return false;
	for (size_t i = 0; i < addresses.usable.len; i++) {
		const struct ip_range *range = &addresses.usable.items[i];

		for (ip_number b = block_of(family, range->first);
		     b <= block_of(family, range->last); b++) {
			auto_free char *block = block_text(family, b);

			visit(arg, block);
		}
	}
	return true;
}

bool strays_lost(const char *before, const char *after)
{
	json_auto_t *had = before ? json_parse(before, strlen(before), NULL) : NULL;
	json_auto_t *has = after ? json_parse(after, strlen(after), NULL) : NULL;
	const char *address;
	json_t *record;

	if (!before || str_eq(before, after))
		return false;
	if (!json_is_object(had) || !json_is_object(has))
		return true;
	json_each (had, address, record)
		if (!json_object_get(has, address))
			return true;
	return false;
}

json_t *strays_endpoint(const json_t *endpoint)
{
	const json_t *status = json_at(endpoint, "status");
	const char *uid = endpoint_uid(endpoint);
	json_t *kept = json_object(), *metadata = json_need_object(kept, "metadata");

	json_put_str(metadata, "name", json_name(endpoint));
	json_put_str(metadata, "namespace", json_namespace(endpoint));
	if (endpoint_is_down(endpoint, uid))
		json_put_str(json_need_object(metadata, "annotations"), ENDPOINT_DOWN_ANNOTATION,
			     uid);
	json_put(kept, "status", endpoint_addresses(status));
	json_put_str(json_at(kept, "status"), "ownerControllerName",
		     json_str_at(status, "ownerControllerName"));
	return kept;
}

void strays_visit(const json_t *pool, void (*visit)(void *arg, const char *key), void *arg)
{
	const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), "");
	json_auto_t *records = json_parse(text, strlen(text), NULL);
	const char *address;
	json_t *record;

	assert(visit);
	json_each (records, address, record)
		if (json_str_at(record, "pod"))
			visit(arg, json_str_at(record, "pod"));
}
