// SPDX-License-Identifier: Apache-2.0
/*
 * Wake rules (controllers_addresses.c) and plans bring events; worlds of the three controllers, and
 * of pools, show what came of them. Four machines, side by side:
 *
 * Pod            event                                          next
 *   -            bound; its annotations change; its endpoint    waiting
 *                is deleted
 *   -            strays: it has an address without a record     waiting, claimant
 *   waiting      addresses: recorded, or none needed any more   -
 *   waiting      addresses: none to be had                      waiting, behind the others
 *   waiting      any of these, while a pass that has seen it is waiting, after that pass
 *                carried out
 *   waiting, as  a term of leadership begins: it is read again  -
 *   it was read
 *   claimant     addresses: looked at                           (no claimant)
 *
 * SpiderEndpoint, or the name of one
 *   -            addresses: its pod has addresses               decided {endpoint}
 *   decided      endpoint: written, or deleted                  -
 *   decided      endpoint: the pod ended before                 decided {unwritten}
 *   decided      a term of leadership begins: another leader    -, its pod waiting
 *   {endpoint}   may have decided meanwhile
 *   live, ending a term of leadership begins: what was read is  -
 *                old, and is read again
 *   -            strays: records that no endpoint names         strays
 *   any          endpoint: it may have ended, its pod is not    any, live for one decision
 *                mirrored; the reads are done
 *   live         endpoint: the pod has ended                    ending
 *   live,        endpoint: written, or deleted                  -, read again
 *   decided
 *   ending       addresses: its records are released            decided {gone}
 *
 * SpiderIPPool
 *   -            strays: claims without a record are noted      learning
 *   learning     addresses: no claimant is left                 learned
 *   learned      another UID or spec; another program took a     -
 *                record out; a pool with the same addresses is
 *                gone, or has another subnet
 *   any          the API server refuses, or stores, the ledger  unwritten, or not
 *   unwritten    a term of leadership begins                    -
 *   any          addresses: its ledger, a large one, is stored  paced, until a time
 *   any          addresses: pods wait for it, or none           short, or not
 *
 * The pass
 *   -            addresses: it has seen all that wait           passed
 */
#include "operator/controllers/ipam_book.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/address_metrics.h"
#include "operator/controllers/controllers.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/books.h"
#include "reconcilers/ipam/allocate/lifecycle.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/pod_controller.h"

struct ipam_book {
	struct {
		json_t *values; /* { key: value }, as worlds get them */
		json_t *set_at; /* { key: revision } */
	} entries[IPAM_ENTRIES];
	uint64_t revision;
	json_t *claims; /* of IPAM_CLAIMED, { pool: { key: value } } */
};

/* ---- who is woken, what is counted ----------------------------------------------------------- */

/* value: NULL when the entry was removed. */
struct event {
	const struct controller_sources *from;
	const char *key;
	const json_t *value;
};

static void wake_pass(const struct event *e)
{
	controller_wake(e->from, CONTROLLER_ADDRESSES, ADDRESSES_KEY, QUEUE_MAIN);
}

static void wake_endpoint(const struct event *e)
{
	controller_wake(e->from, CONTROLLER_ENDPOINT, e->key, QUEUE_MAIN);
}

/* The pool's status says so. */
static void wake_pool(const struct event *e)
{
	controller_wake(e->from, CONTROLLER_IP_POOL, e->key, QUEUE_LATER);
}

static void on_served(const struct event *e)
{
	address_metrics_settled(e->from->address_metrics, e->key);
}

/* "ENDPOINT UID": records alone. */
static void on_released(const struct event *e)
{
	if (strchr(e->key, ' '))
		address_metrics_repaired(e->from->address_metrics);
	else
		address_metrics_released(e->from->address_metrics);
}

static void on_decided(const struct event *e)
{
	if (json_at(e->value, "endpoint"))
		address_metrics_allocated(e->from->address_metrics, e->key, e->from->now_ms());
	wake_endpoint(e);
}

/*
 * What came meanwhile waited for that, perhaps for long: the API server may have refused the
 * endpoint. So what was read is read again.
 */
static void on_carried_out(const struct event *e)
{
	bool is_read = ipam_book_get(e->from->addresses, IPAM_LIVE, e->key) != NULL;

	if (is_read)
		ipam_book_set(e->from, IPAM_LIVE, e->key, NULL);
	if (is_read || ipam_book_get(e->from->addresses, IPAM_STRAYS, e->key))
		wake_endpoint(e);
}

static void on_learned(const struct event *e)
{
	wake_pool(e);
	wake_pass(e);
}

static void on_unwritten(const struct event *e)
{
	address_metrics_unwritten(
		e->from->address_metrics,
		json_object_size(ipam_book_all(e->from->addresses, IPAM_UNWRITTEN)));
	wake_pool(e);
}

/* Pools that say that pods wait for them: now it is known. */
static void on_passed(const struct event *e)
{
	const struct cache *pools = mirror_cache(e->from->mirror, KIND_IP_POOL);
	const char *name = NULL;
	size_t iter = 0;

	while ((name = cache_next(pools, &iter))) {
		json_auto_t *pool = cache_get(pools, name);

		if (ip_pool_says_waiting(pool))
			controller_wake(e->from, CONTROLLER_IP_POOL, name, QUEUE_MAIN);
	}
}

static const struct {
	const char *box;
	void (*set)(const struct event *e);
	void (*removed)(const struct event *e);
} rows[] = {
	[IPAM_WAITING] = {BOX_WAITING, wake_pass, on_served},
	[IPAM_CLAIMANT] = {BOX_CLAIMANTS, NULL, NULL},
	[IPAM_LIVE] = {BOX_LIVE, wake_endpoint, NULL},
	[IPAM_ENDING] = {BOX_ENDING, wake_pass, on_released},
	[IPAM_DECIDED] = {BOX_DECIDED, on_decided, on_carried_out},
	[IPAM_STRAYS] = {BOX_STRAYS, wake_endpoint, NULL},
	[IPAM_CLAIMED] = {BOX_CLAIMED, NULL, NULL},
	[IPAM_LEARNING] = {BOX_LEARNING, NULL, NULL},
	[IPAM_LEARNED] = {BOX_LEARNED, on_learned, NULL},
	[IPAM_SHORT] = {BOX_SHORT_POOL, wake_pool, wake_pool},
	[IPAM_UNWRITTEN] = {BOX_UNWRITTEN, on_unwritten, on_unwritten},
	[IPAM_PACED] = {BOX_PACED, NULL, NULL},
	[IPAM_PASSED] = {BOX_PASSED, on_passed, NULL},
};
static_assert(ARRAY_LEN(rows) == IPAM_ENTRIES, "each message has its row");

/* ---- the book -------------------------------------------------------------------------------- */

struct ipam_book *ipam_book_new(void)
{
	struct ipam_book *book = mem_new(struct ipam_book);

	for (size_t i = 0; i < IPAM_ENTRIES; i++)
		book->entries[i].values = json_object(), book->entries[i].set_at = json_object();
	book->claims = json_object();
	return book;
}

void ipam_book_free(struct ipam_book *book)
{
	if (!book)
		return;
	for (size_t i = 0; i < IPAM_ENTRIES; i++) {
		json_decref(book->entries[i].values);
		json_decref(book->entries[i].set_at);
	}
	json_decref(book->claims);
	mem_free(book);
}

static void drop_entry(struct ipam_book *book, enum ipam_entry entry, const char *key)
{
	json_object_del(book->entries[entry].set_at, key);
	json_object_del(book->entries[entry].values, key);
}

json_t *ipam_book_get(const struct ipam_book *book, enum ipam_entry entry, const char *key)
{
	assert(entry < IPAM_ENTRIES);
	return json_object_get(book->entries[entry].values, key);
}

const json_t *ipam_book_all(const struct ipam_book *book, enum ipam_entry entry)
{
	assert(entry < IPAM_ENTRIES);
	return json_object_size(book->entries[entry].values) ? book->entries[entry].values : NULL;
}

void ipam_book_add(const struct ipam_book *book, json_t *world, enum ipam_entry entry,
		   const char *key)
{
	json_t *value = ipam_book_get(book, entry, key);

	assert(entry < IPAM_ENTRIES && key);
	if (value)
		json_object_set(json_need_object(world, rows[entry].box), key, value);
}

void ipam_book_add_claims(const struct ipam_book *book, json_t *world, const char *pool)
{
	const json_t *claims = json_object_get(book->claims, pool);

	assert(pool);
	if (claims)
		json_put(world, BOX_CLAIMED, json_copy((json_t *)claims));
}

void ipam_book_set(const struct controller_sources *from, enum ipam_entry entry, const char *key,
		   json_t *value)
{
	const struct event e = {from, key, value};
	struct ipam_book *book = from->addresses;

	assert(entry < IPAM_ENTRIES);
	if (value) {
		json_object_set(book->entries[entry].values, key, value);
		json_put_int(book->entries[entry].set_at, key, (json_int_t)++book->revision);
	} else {
		drop_entry(book, entry, key);
	}
	if (entry == IPAM_CLAIMED) {
		auto_free char *pool = str_ndup(key, strcspn(key, " "));
		json_t *claims = json_need_object(book->claims, pool);

		if (value)
			json_object_set(claims, key, value);
		else
			json_object_del(claims, key);
		if (json_object_size(claims) == 0)
			json_object_del(book->claims, pool);
	}
	if (value && rows[entry].set)
		rows[entry].set(&e);
	else if (!value && rows[entry].removed)
		rows[entry].removed(&e);
}

uint64_t ipam_book_revision(const struct ipam_book *book)
{
	return book->revision;
}

void ipam_book_posted(const struct controller_sources *from, const char *box, const char *key,
		      json_t *value, uint64_t as_of)
{
	enum ipam_entry entry = 0;

	while (entry < IPAM_ENTRIES && !str_eq(rows[entry].box, box))
		entry++;
	assert(entry < IPAM_ENTRIES);
	/* It came while the plan's writes were in flight, and has woken who sees it. */
	if (!value && (uint64_t)json_integer_value(
			      json_object_get(from->addresses->entries[entry].set_at, key)) > as_of)
		return;
	ipam_book_set(from, entry, key, value);
}

static void wait_for(void *arg, const char *pod)
{
	ipam_book_wait(arg, pod);
}

/* Records of these addresses may be left without an endpoint that names them. */
static void wake_strays_of(const struct controller_sources *from, const json_t *status)
{
	static const char *const pools[] = {"ipv4Pool", "ipv6Pool"};
	json_t *item;
	size_t i;

	json_array_foreach (json_at(status, "current", "ips"), i, item)
		for (size_t f = 0; f < ARRAY_LEN(pools); f++)
			if (json_str_at(item, pools[f]))
				controller_wake(from, CONTROLLER_STRAYS,
						json_str_at(item, pools[f]), QUEUE_MAIN);
}

/*
 * The ledgers may not have it any more: another leader may have served the pod, ended it, and given
 * the name to the next one. Its pod waits again; one that is not mirrored asks again.
 */
static void decide_again(const struct controller_sources *from)
{
	json_t *decided = from->addresses->entries[IPAM_DECIDED].values, *value;
	const struct cache *pods = mirror_cache(from->mirror, KIND_BOUND_POD);
	const char *key;
	void *next;

	json_object_foreach_safe(decided, next, key, value)
	{
		const struct event e = {from, key, NULL};

		if (!json_at(value, "endpoint"))
			continue;
		if (cache_has(pods, key))
			ipam_book_wait(from, key);
		cache_find(pods, BOUND_POD_BY_MACHINE, key, wait_for, (void *)from);
		wake_endpoint(&e);
		wake_strays_of(from, json_at(value, "endpoint", "status"));
		drop_entry(from->addresses, IPAM_DECIDED, key);
	}
}

/*
 * A pod that was read in an earlier term may be gone, and the next one of its name may have asked.
 */
static void ask_again(const struct controller_sources *from)
{
	json_t *waiting = from->addresses->entries[IPAM_WAITING].values, *value;
	const char *key;
	void *next;

	json_object_foreach_safe(waiting, next, key, value)
	{
		auto_free char *machine = NULL;

		if (!json_is_object(value))
			continue;
		if (pod_machine(value))
			machine = str_printf("%s/%s", json_namespace(value), pod_machine(value));
		controller_wake(from, CONTROLLER_ENDPOINT, key, QUEUE_MAIN);
		if (machine)
			controller_wake(from, CONTROLLER_ENDPOINT, machine, QUEUE_MAIN);
		drop_entry(from->addresses, IPAM_WAITING, key);
	}
}

/* What was read in an earlier term is read again; records without an endpoint are found again. */
static void look_again(const struct controller_sources *from)
{
	static const enum ipam_entry entries[] = {IPAM_LIVE, IPAM_ENDING};
	const char *key;
	json_t *value, *record;
	size_t i;

	for (size_t k = 0; k < ARRAY_LEN(entries); k++) {
		json_t *all = from->addresses->entries[entries[k]].values;

		json_each (all, key, value) {
			auto_free char *endpoint = str_ndup(key, strcspn(key, " "));

			controller_wake(from, CONTROLLER_ENDPOINT, endpoint, QUEUE_MAIN);
			wake_strays_of(from, json_at(value, "status"));
			json_array_foreach (json_at(value, "records"), i, record)
				controller_wake(from, CONTROLLER_STRAYS,
						json_str_or(json_at(record, "pool"), ""),
						QUEUE_MAIN);
		}
		json_object_clear(all);
		json_object_clear(from->addresses->entries[entries[k]].set_at);
	}
}

void ipam_book_lead(const struct controller_sources *from)
{
	json_auto_t *unwritten = json_copy(from->addresses->entries[IPAM_UNWRITTEN].values);
	const char *pool;
	json_t *value;

	json_each (unwritten, pool, value)
		ipam_book_set(from, IPAM_UNWRITTEN, pool, NULL);
	if (json_object_size(unwritten))
		controller_wake(from, CONTROLLER_ADDRESSES, ADDRESSES_KEY, QUEUE_MAIN);
	decide_again(from);
	ask_again(from);
	look_again(from);
}

void ipam_book_wait(const struct controller_sources *from, const char *pod)
{
	json_t *before = ipam_book_get(from->addresses, IPAM_WAITING, pod);
	json_auto_t *waiting = before ? json_incref(before) : json_true();

	ipam_book_set(from, IPAM_WAITING, pod, waiting);
}

void ipam_book_put_behind(struct ipam_book *book, enum ipam_entry entry, const json_t *keys)
{
	json_t *entries, *value;
	const char *key;

	assert(entry < IPAM_ENTRIES);
	entries = book->entries[entry].values;
	json_each (keys, key, value) {
		json_auto_t *moved = json_incref(json_object_get(entries, key));

		json_object_del(entries, key);
		json_object_set(entries, key, moved);
	}
}

void ipam_book_take_pass(struct ipam_book *book, const json_t *pods, size_t looked_at)
{
	json_t *waiting = book->entries[IPAM_WAITING].values, *value;
	json_auto_t *put_off = json_object();
	const char *key;
	size_t n = 0;

	assert(json_is_object(pods) || !pods);
	json_each (waiting, key, value) {
		if (n++ >= looked_at)
			break;
		if (!json_object_get(pods, key))
			json_object_set(put_off, key, value);
	}
	ipam_book_put_behind(book, IPAM_WAITING, put_off);
	ipam_book_put_behind(book, IPAM_WAITING, pods);
}
