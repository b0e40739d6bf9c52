// SPDX-License-Identifier: Apache-2.0
/*
 * Opening turns spec and status into sets and records; each change keeps both, and the size of the
 * text, in step; ledger_status() turns them back. Which ledger is opened and when it is written is
 * up to books.c.
 */
#include "reconcilers/ipam/ledger.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/ledger_nodes.h"
#include "reconcilers/ipam/reserved_ip.h"

#define BAD_RECORD "BadAllocationRecord"

static struct ip_range range_of_one(ip_number address)
{
	return (struct ip_range){.first = address, .last = address};
}

static int read_excluded(const json_t *pool, const struct ip_pool *addresses, struct err *err)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(pool, "spec", "excludeIPs"), i, entry) {
		struct ip_range range;
		struct err why = {0};
		bool clipped;

		if (!json_is_string(entry))
			(void)err_set(&why, ERR_INVALID, "BadField", "is %s, must be a string",
				      json_type_words(entry));
		else if (ip_pool_read_entry(json_string_value(entry), addresses->subnet.family,
					    &addresses->subnet, &range, &clipped, &why) == 0)
			continue;
		return err_set(err, ERR_INVALID, why.reason,
			       "spec.excludeIPs[%zu] of pool %s cannot be read, so it is unknown "
			       "what it keeps back: %s",
			       i, json_name(pool), why.text);
	}
	return 0;
}

/* "node":"…", within a string: each quote has a backslash. */
static size_t node_bytes(const json_t *record)
{
	static const char frame[] = "\\\"node\\\":\\\"\\\",";
	const json_t *node = json_at(record, "node");

	return node ? sizeof(frame) - 1 + json_string_length(node) : 0;
}

/* "ADDRESS":{"node":"…","pod":"…","podUid":"…"}, alike. */
static size_t record_bytes(const char *address, const json_t *record)
{
	static const char frame[] = "\\\"\\\":{\\\"pod\\\":\\\"\\\",\\\"podUid\\\":\\\"\\\"},";

	return sizeof(frame) - 1 + strlen(address) + json_string_length(json_at(record, "pod")) +
	       json_string_length(json_at(record, "podUid")) + node_bytes(record);
}

static void count_node(struct ledger *ledger, const json_t *record, json_int_t n)
{
	const char *node = json_str_at(record, "node");
	json_int_t count;

	if (!node)
		return;
	count = json_integer_value(json_object_get(ledger->nodes, node)) + n;
	assert(count >= 0);
	if (count)
		json_put_int(ledger->nodes, node, count);
	else
		json_object_del(ledger->nodes, node);
}

static void forget_size(struct ledger *ledger, const char *address, const json_t *record)
{
	assert(ledger->bytes >= record_bytes(address, record));
	assert(ledger->node_bytes >= node_bytes(record));
	ledger->bytes -= record_bytes(address, record);
	ledger->node_bytes -= node_bytes(record);
	count_node(ledger, record, -1);
}

static void put_record(struct ledger *ledger, const char *address, json_t *record)
{
	const json_t *before = json_object_get(ledger->records, address);

	if (before)
		forget_size(ledger, address, before);
	ledger->bytes += record_bytes(address, record);
	ledger->node_bytes += node_bytes(record);
	count_node(ledger, record, 1);
	json_put(ledger->records, address, record);
}

static bool is_large(const struct ledger *ledger)
{
	return ledger->bytes > LIMIT_PLAIN_LEDGER_BYTES;
}

/* As it is sent, with the nodes where ledger_status() puts them. */
static size_t sent_bytes(const struct ledger *ledger)
{
	size_t bytes = ledger->bytes;
	const char *node;
	json_t *count;

	if (!is_large(ledger))
		return bytes;
	bytes -= ledger->node_bytes;
	bytes += ledger_nodes_bytes(json_object_size(ledger->records),
				    json_object_size(ledger->nodes));
	json_each (ledger->nodes, node, count)
		bytes += strlen(node);
	return bytes;
}

bool ledger_is_full(const struct ledger *ledger)
{
	assert(ledger->records);
	return sent_bytes(ledger) + LIMIT_RECORD_BYTES > ledger->room;
}

bool ledger_is_overfull(const struct ledger *ledger)
{
	assert(ledger->records);
	return sent_bytes(ledger) + LIMIT_RECORD_BYTES > ledger->room + LIMIT_POOL_LISTS_BYTES;
}

/* What we keep of a record; NULL when it is no record. */
static json_t *clean_record(const json_t *record)
{
	const char *pod = json_str_at(record, "pod"), *uid = json_str_at(record, "podUid");
	const char *node = json_str_at(record, "node");
	json_t *clean;

	if (!json_is_object(record))
		return NULL;
	clean = json_object();
	json_put_str(clean, "pod", pod ? pod : "");
	json_put_str(clean, "podUid", uid ? uid : "");
	json_put_str(clean, "node", node);
	return clean;
}

static int read_records(struct ledger *ledger, struct err *err)
{
	const json_t *text = json_at(ledger->pool, "status", "allocatedIPs");
	auto_ip_set struct ip_set used = {0};
	json_auto_t *records = NULL;
	const char *address;
	json_t *record;

	ledger->records = json_object();
	ledger->uids = json_object();
	ledger->nodes = json_object();
	ledger->room = ip_pool_ledger_room(ledger->pool);
	if (!text)
		return 0;
	records = json_parse(json_str_or(text, ""), strlen(json_str_or(text, "")), NULL);
	if (!json_is_object(records))
		return err_set(err, ERR_INVALID, BAD_RECORD,
			       "status.allocatedIPs of pool %s is not a JSON object, so it is "
			       "unknown which "
			       "addresses are in use",
			       json_name(ledger->pool));
	ledger_nodes_read(json_str_at(ledger->pool, "status", "allocatedNodes"),
			  json_string_value(text), records);
	json_each (records, address, record) {
		char canonical[IP_TEXT_SIZE];
		json_t *clean = clean_record(record);
		ip_number number;

		if (!clean || ip_parse(address, ledger->family, &number, NULL) < 0) {
			json_decref(clean);
			return err_set(err, ERR_INVALID, BAD_RECORD,
				       "status.allocatedIPs of pool %s has an entry \"%.64s\" that "
				       "is no record "
				       "of an IPv%d address",
				       json_name(ledger->pool), address, (int)ledger->family);
		}
		ip_print(ledger->family, number, canonical);
		if (json_object_get(ledger->records, canonical)) {
			json_decref(clean);
			return err_set(err, ERR_INVALID, BAD_RECORD,
				       "status.allocatedIPs of pool %s has address %s twice, so it "
				       "is unknown which pod has it",
				       json_name(ledger->pool), canonical);
		}
		put_record(ledger, canonical, clean);
		json_put_bool(ledger->uids, json_str_at(clean, "podUid"), true);
		ip_set_add(&used, range_of_one(number));
	}
	ip_set_settle(&used);
	ip_set_subtract(&ledger->free, &used);
	return 0;
}

static void read_resting(struct ledger *ledger)
{
	json_t *entry;
	size_t i;

	ledger->resting = json_array();
	json_array_foreach (json_at(ledger->pool, "status", "releasedIPs"), i, entry) {
		char canonical[IP_TEXT_SIZE];
		ip_number number;

		/* Lost or odd entries shorten a rest; they are worth no error. */
		if (ip_parse(json_str_or(entry, ""), ledger->family, &number, NULL) == 0 &&
		    ip_set_has(&ledger->free, number)) {
			ip_print(ledger->family, number, canonical);
			json_array_append_new(ledger->resting, json_string(canonical));
		}
	}
}

static int open_all(struct ledger *ledger, const json_t *reserved, const char *now, struct err *err)
{
	auto_problems struct problems problems = {0};
	json_t *address;
	ip_number number;
	size_t k;

	if (!ip_pool_read(ledger->pool, &ledger->addresses, &problems)) {
		auto_free char *text = problems_text(&problems);

		return err_set(err, ERR_INVALID, problems_reason(&problems), "pool %s: %s",
			       json_name(ledger->pool), text);
	}
	ledger->family = ledger->addresses.subnet.family;
	ip_pool_withhold(ledger->pool, &ledger->addresses, &ledger->kept);
	if (read_excluded(ledger->pool, &ledger->addresses, err) < 0)
		return -1;
	for (size_t i = 0; i < ledger->addresses.usable.len; i++)
		ip_set_add(&ledger->free, ledger->addresses.usable.items[i]);
	ip_set_settle(&ledger->free);
	if (reserved_ip_read(reserved, ledger->family, &ledger->kept, err) < 0)
		return -1;
	ip_set_subtract(&ledger->free, &ledger->kept);
	if (read_records(ledger, err) < 0)
		return -1;

	/* Those whose time is over rest, as if they had been given back now. */
	ip_conflicts_read(ledger->pool, &ledger->addresses, &ledger->kept, now, &ledger->conflicts);
	ip_set_subtract(&ledger->free, &ledger->conflicts.set);
	read_resting(ledger);
	json_array_foreach (ledger->conflicts.over, k, address)
		if (ip_parse(json_string_value(address), ledger->family, &number, NULL) == 0 &&
		    ip_set_has(&ledger->free, number) &&
		    !json_list_has(ledger->resting, json_string_value(address)))
			ip_rest(ledger->resting, json_string_value(address));
	return 0;
}

int ledger_open(const json_t *pool, const json_t *reserved, const char *now, struct ledger *ret,
		struct err *err)
{
	struct ledger ledger = {.pool = pool};

	assert(pool);
	if (open_all(&ledger, reserved, now, err) < 0) {
		ledger_done(&ledger);
		return -1;
	}
	ledger.opened_with = json_object_size(ledger.records);
	*ret = ledger;
	return 0;
}

void ledger_done(struct ledger *ledger)
{
	ip_pool_done(&ledger->addresses);
	ip_set_done(&ledger->free);
	ip_set_done(&ledger->kept);
	ip_conflicts_done(&ledger->conflicts);
	json_decref(ledger->records);
	json_decref(ledger->uids);
	json_decref(ledger->nodes);
	json_decref(ledger->resting);
	*ledger = (struct ledger){0};
}

bool ledger_is_counted(const json_t *pool)
{
	const char *text = json_str_at(pool, "status", "allocatedIPs");
	json_auto_t *records = text ? json_parse(text, strlen(text), NULL) : NULL;
	const json_t *count = json_at(pool, "status", "allocatedIPCount");

	return json_is_integer(count) &&
	       json_integer_value(count) == (json_int_t)json_object_size(records);
}

const json_t *ledger_record(const struct ledger *ledger, const char *address)
{
	assert(ledger->records);
	return json_object_get(ledger->records, address);
}

static void stop_resting(struct ledger *ledger, const char *address)
{
	json_t *entry;
	size_t i;

	json_array_foreach (ledger->resting, i, entry) {
		if (str_eq(json_string_value(entry), address)) {
			json_array_remove(ledger->resting, i);
			return;
		}
	}
}

bool ledger_may_know(const struct ledger *ledger, const char *uid)
{
	assert(ledger->uids);
	return json_object_get(ledger->uids, uid) != NULL;
}

static void put_holder(struct ledger *ledger, const char *address, ip_number number,
		       const struct ledger_holder *holder)
{
	json_t *entry = json_object();
	struct ip_range range;
	struct ip_set other = {.items = &range, .len = 1, .cap = 1};

	json_put_str(entry, "pod", holder->pod);
	json_put_str(entry, "podUid", holder->uid);
	json_put_str(entry, "node", str_empty(holder->node) ? NULL : holder->node);
	json_put_bool(ledger->uids, holder->uid, true);
	put_record(ledger, address, entry);
	range = range_of_one(number);
	ip_set_subtract(&ledger->free, &other);
	stop_resting(ledger, address);
	ledger->has_changed = true;
}

/* The lowest free address that does not rest. */
static bool find_rested(const struct ledger *ledger, ip_number *ret)
{
	auto_ip_set struct ip_set fresh = {0}, resting = {0};
	json_t *entry;
	size_t i;

	if (ledger->free.len == 0)
		return false;
	if (json_array_size(ledger->resting) == 0) {
		*ret = ledger->free.items[0].first;
		return true;
	}
	json_array_foreach (ledger->resting, i, entry) {
		ip_number number;

		if (ip_parse(json_string_value(entry), ledger->family, &number, NULL) == 0)
			ip_set_add(&resting, range_of_one(number));
	}
	ip_set_settle(&resting);
	for (i = 0; i < ledger->free.len; i++)
		ip_set_add(&fresh, ledger->free.items[i]);
	ip_set_subtract(&fresh, &resting);
	if (fresh.len == 0)
		return false;
	*ret = fresh.items[0].first;
	return true;
}

bool ledger_next(const struct ledger *ledger, char out[IP_TEXT_SIZE])
{
	ip_number number;

	assert(ledger->resting);
	if (!find_rested(ledger, &number)) {
		const char *oldest = json_string_value(json_array_get(ledger->resting, 0));

		if (!oldest || ip_parse(oldest, ledger->family, &number, NULL) < 0)
			return false;
	}
	ip_print(ledger->family, number, out);
	return true;
}

bool ledger_take_this(struct ledger *ledger, const char *address,
		      const struct ledger_holder *holder)
{
	ip_number number;

	assert(holder->pod && holder->uid);
	if (ledger_record(ledger, address) || ip_parse(address, ledger->family, &number, NULL) < 0)
		return false;
	put_holder(ledger, address, number, holder);
	return true;
}

void ledger_pass_on(struct ledger *ledger, const char *address, const struct ledger_holder *holder)
{
	ip_number number;

	assert(ledger_record(ledger, address));
	if (ip_parse(address, ledger->family, &number, NULL) == 0)
		put_holder(ledger, address, number, holder);
}

void ledger_mark_unjudged(struct ledger *ledger, const char *address)
{
	json_t *entry = json_copy((json_t *)ledger_record(ledger, address));

	assert(ledger_record(ledger, address));
	json_put_str(entry, "node", "");
	put_record(ledger, address, entry);
	ledger->has_changed = true;
}

/* Records of Spiderpool have no node at all. */
static bool is_unjudged(const json_t *record)
{
	return str_eq(json_str_at(record, "node"), "");
}

bool ledger_is_unjudged(const struct ledger *ledger, const char *address)
{
	return is_unjudged(ledger_record(ledger, address));
}

bool ledger_release(struct ledger *ledger, const char *address, const char *pod, const char *uid,
		    bool rests)
{
	const json_t *record = ledger_record(ledger, address);
	const char *has = json_str_at(record, "podUid");
	ip_number number;

	assert(uid);
	if (!has || !str_eq(has, uid) || (pod && !str_eq(json_str_at(record, "pod"), pod)) ||
	    ip_parse(address, ledger->family, &number, NULL) < 0)
		return false;
	forget_size(ledger, address, record);
	json_object_del(ledger->records, address);
	ledger->has_changed = true;
	/* What was taken out of the pool meanwhile, or kept back, is not free. */
	if (!ip_set_has(&ledger->addresses.usable, number) || ip_set_has(&ledger->kept, number) ||
	    ip_set_has(&ledger->conflicts.set, number))
		return true;
	ip_set_add(&ledger->free, range_of_one(number));
	ip_set_settle(&ledger->free);
	if (!rests)
		return true;
	ip_rest(ledger->resting, address);
	return true;
}

bool ledger_note_conflict(struct ledger *ledger, const char *address, const char *mac,
			  const struct ledger_holder *holder, const char *now)
{
	ip_number number;

	assert(ledger->conflicts.entries && mac);
	if (ip_parse(address, ledger->family, &number, NULL) < 0 ||
	    !ip_set_has(&ledger->addresses.usable, number) || ip_set_has(&ledger->kept, number))
		return true;
	if (!ip_conflicts_has_room(&ledger->conflicts, address, holder->pod))
		return false;
	if (!ip_conflicts_note(&ledger->conflicts, address, mac, holder->pod, holder->node, now))
		return true;
	ip_set_subtract(&ledger->free, &ledger->conflicts.set);
	stop_resting(ledger, address);
	ledger->has_changed = true;
	return true;
}

void ledger_restore(struct ledger *ledger, const char *address, const json_t *record_before)
{
	const char *uid = json_str_at(ledger_record(ledger, address), "podUid");
	ip_number number;

	if (!record_before) {
		if (uid)
			(void)ledger_release(ledger, address, NULL, uid, false);
	} else if (ip_parse(address, ledger->family, &number, NULL) == 0) {
		put_holder(ledger, address, number,
			   &(struct ledger_holder){
				   json_str_or(json_at(record_before, "pod"), ""),
				   json_str_or(json_at(record_before, "podUid"), ""),
				   json_str_at(record_before, "node"),
			   });
		if (is_unjudged(record_before))
			ledger_mark_unjudged(ledger, address);
	}
}

void ledger_keep_out(struct ledger *ledger, const struct ip_set *others)
{
	assert(ledger->records);
	assert(others != &ledger->kept);
	for (size_t i = 0; i < others->len; i++)
		ip_set_add(&ledger->kept, others->items[i]);
	ip_set_settle(&ledger->kept);
	ip_set_subtract(&ledger->free, &ledger->kept);
}

static void write_records(const struct ledger *ledger, json_t *status)
{
	auto_free char *text = NULL, *nodes = NULL;

	json_object_del(status, "allocatedIPs");
	json_object_del(status, "allocatedNodes");
	if (json_object_size(ledger->records) == 0)
		return;
	if (is_large(ledger)) {
		json_auto_t *bare = json_object(); /* the records without their nodes */
		json_t *record;
		const char *address;

		json_each (ledger->records, address, record) {
			json_t *copy = json_copy(record);

			json_object_del(copy, "node");
			json_put(bare, address, copy);
		}
		text = json_text(bare);
		nodes = ledger_nodes_write(ledger->records, text);
	} else {
		text = json_text(ledger->records);
	}
	json_put_str(status, "allocatedIPs", text);
	json_put_str(status, "allocatedNodes", nodes);
}

static size_t list_bytes(const json_t *status, const char *name)
{
	const json_t *list = json_at(status, name);

	return list ? json_dumpb(list, NULL, 0, JSON_COMPACT) : 0;
}

json_t *ledger_status(const struct ledger *ledger)
{
	const json_t *old = json_at(ledger->pool, "status");
	json_t *status = json_is_object(old) ? json_copy((json_t *)old) : json_object();
	size_t count = json_object_size(ledger->records);
	static const char *const lists[] = {"releasedIPs", "conflictIPs"};
	size_t room, bytes;

	assert(ledger->records && ledger->node_bytes <= ledger->bytes);
	write_records(ledger, status);
	if (ledger->is_unsure)
		json_object_del(status, "allocatedIPCount");
	else
		json_put_int(status, "allocatedIPCount", (int64_t)count);
	json_put_int(status, "freeIPCount", ip_set_count(&ledger->free));
	if (json_array_size(ledger->resting))
		json_put(status, "releasedIPs", json_copy(ledger->resting));
	else
		json_object_del(status, "releasedIPs");
	ip_conflicts_write(&ledger->conflicts, status);

	/* Beside a ledger that fills the object the oldest entries are forgotten. */
	room = ledger->room + LIMIT_POOL_LISTS_BYTES;
	bytes = sent_bytes(ledger);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		json_t *list = json_at(status, lists[i]);

		while (json_array_size(list) > 0 &&
		       bytes + list_bytes(status, lists[0]) + list_bytes(status, lists[1]) > room)
			json_array_remove(list, 0);
	}
	if (json_at(status, "conflictIPCount"))
		json_put_int(status, "conflictIPCount",
			     (int64_t)json_array_size(json_at(status, "conflictIPs")));
	return status;
}
