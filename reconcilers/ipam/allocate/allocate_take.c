// SPDX-License-Identifier: Apache-2.0
/*
 * One new item: for each family, the first pool in the filter's order that has an address gives
 * it. What is left of a pass that was cut off, and what the pod runs with, come before a free one.
 */
#include "reconcilers/ipam/allocate/allocate_internal.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/ipam/filter.h"
#include "reconcilers/ipam/ip_pool.h"

/* Does an item of the pod have this address from this pool? */
static bool is_spoken_for(const struct allocate_call *call, const struct allocation_family *family,
			  const char *pool, const char *address)
{
	json_t *item;
	size_t i;

	json_array_foreach (call->items, i, item) {
		char has[IP_TEXT_SIZE];

		if (str_eq(json_str_at(item, family->pool), pool) &&
		    allocation_address(item, family, has) && str_eq(has, address))
			return true;
	}
	return false;
}

/* Addresses of a pool that had a record of the pod before this call. Borrowed. */
static const json_t *left_over_of(const struct allocate_call *call, const struct ledger *ledger)
{
	json_t *known = json_need_object(call->memo, "left");
	const char *pool = json_name(ledger->pool), *address;
	json_t *list = json_object_get(known, pool), *record;

	if (list)
		return list;
	list = json_array();
	json_put(known, pool, list);
	if (!ledger_may_know(ledger, call->uid))
		return list;
	json_each (ledger->records, address, record)
		if (str_eq(json_str_at(record, "podUid"), call->uid))
			json_array_append_new(list, json_string(address));
	return list;
}

/* A record of the pod that no item names. */
static bool find_left_over(const struct allocate_call *call, const struct allocation_family *family,
			   const char *pool, const struct ledger *ledger, char out[IP_TEXT_SIZE])
{
	const char *first = NULL;
	json_t *entry;
	size_t i;

	json_array_foreach (left_over_of(call, ledger), i, entry) {
		const char *address = json_string_value(entry);

		if (str_eq(json_str_at(ledger_record(ledger, address), "podUid"), call->uid) &&
		    (!first || strcmp(address, first) < 0) &&
		    !is_spoken_for(call, family, pool, address))
			first = address;
	}
	if (first)
		(void)snprintf(out, IP_TEXT_SIZE, "%s", first);
	return first != NULL;
}

static void put_address(json_t *item, const struct allocation_family *family, const json_t *want,
			const struct ledger *ledger, const char *address)
{
	const json_t *spec = json_at(ledger->pool, "spec");
	const char *gateway = json_str_or(json_at(spec, "gateway"), "");
	json_t *route;
	size_t i;

	json_put(item, family->address,
		 json_fmt("%s/%u", address, ledger->addresses.subnet.prefix_len));
	json_put_str(item, family->pool, json_name(ledger->pool));
	if (*gateway) {
		json_put_str(item, family->gateway, gateway);
		json_put_bool(item, "cleanGateway", json_is_true(json_at(want, "cleanGateway")));
	}
	json_array_foreach (json_at(spec, "routes"), i, route) {
		const char *dst = ip_pool_route_dst(route), *gw = ip_pool_route_gw(route);

		if (!str_empty(dst) && !str_empty(gw))
			allocation_add_route(item, dst, gw);
	}
}

/* The address that the pod runs with already (assign_project()), if it is free here. */
static bool find_own(const struct allocate_call *call, const struct allocation_family *family,
		     const json_t *want, const struct ledger *ledger, char out[IP_TEXT_SIZE])
{
	const char *nic = json_str_or(json_at(want, "nic"), "");
	json_t *address;
	size_t i;

	json_array_foreach (json_at(call->pod, "addresses", nic), i, address) {
		ip_number number;

		if (ip_parse(json_str_or(address, ""), family->family, &number, NULL) < 0 ||
		    !ip_set_has(&ledger->free, number))
			continue;
		ip_print(family->family, number, out);
		return true;
	}
	return false;
}

/* 1 with an address, 0 when none is free, -1 with err when the pool's verdict forbids to take. */
static int take_from(struct allocate_call *call, const struct allocation_family *family,
		     const json_t *want, const char *pool, struct ledger *ledger,
		     char out[IP_TEXT_SIZE], struct err *err)
{
	if (find_left_over(call, family, pool, ledger, out))
		return 1;
	if (books_may_take(call->books, ledger, err) < 0)
		return -1;
	if (!find_own(call, family, want, ledger, out)) {
		if (json_is_true(json_at(want, "isKnownOnly")))
			return err_set(
				err, ERR_TRANSIENT, "AddressUnknown",
				"the pod runs, and no record, SpiderEndpoint or network-status "
				"says "
				"which address of pool %s it has: delete the pod, so that the next "
				"one gets an address that is recorded",
				pool);
		if (ledger_is_full(ledger) || !ledger_next(ledger, out))
			return 0;
	}
	books_note(call->books, ledger, out);
	return ledger_take_this(ledger, out, &call->holder) ? 1 : 0;
}

/* The first pool in order that has an address gives it. */
static int take_address(struct allocate_call *call, const struct allocation_family *family,
			const json_t *want, json_t *item, struct err *err)
{
	json_auto_t *pools = filter_pools(books_world(call->books), call->pod, family->family, want,
					  call->settings, err);
	auto_strbuf struct strbuf full = {0};
	bool has_full_ledger = false;
	struct err broken = {0};
	json_t *name;
	size_t i;

	if (!pools)
		return -1;
	json_array_foreach (pools, i, name) {
		const char *pool = json_string_value(name);
		struct ledger *ledger = books_open(call->books, pool, &broken);
		char address[IP_TEXT_SIZE];
		int took =
			ledger ? take_from(call, family, want, pool, ledger, address, &broken) : -1;

		if (took < 0)
			continue;
		if (took > 0) {
			put_address(item, family, want, ledger, address);
			return 0;
		}
		strbuf_addf(&full, "%s%s", full.len ? ", " : "", pool);
		if (ledger_is_full(ledger)) {
			has_full_ledger = true;
			strbuf_addf(&full, " (its ledger has room for no more than %zu records)",
				    json_object_size(ledger->records));
		}
		if (json_array_size(ledger->conflicts.entries))
			strbuf_addf(&full, " (of these %zu by others on the network)",
				    json_array_size(ledger->conflicts.entries));
	}
	if (full.len == 0) {
		*err = broken;
		return err_in(err, "IPv%d of NIC %s", (int)family->family,
			      json_str_at(want, "nic"));
	}
	json_array_foreach (pools, i, name)
		books_note_short(call->books, json_string_value(name), json_uid(call->pod));
	if (has_full_ledger)
		return err_set(
			err, ERR_TRANSIENT, "LedgerFull",
			"no pool can give an IPv%d address for NIC %s: %s: name another pool "
			"beside, or wait until pods give some back",
			(int)family->family, json_str_at(want, "nic"), strbuf_str(&full));
	return err_set(err, ERR_TRANSIENT, "PoolExhausted",
		       "all IPv%d addresses for NIC %s are in use, in pool %s: add addresses to "
		       "spec.ips, or "
		       "wait until pods give some back",
		       (int)family->family, json_str_at(want, "nic"), strbuf_str(&full));
}

/* ---- NICs ------------------------------------------------------------------------------------ */

const char *allocation_interface(const json_t *want)
{
	const char *nic = json_str_at(want, "nic");
	int64_t number;

	if (!str_to_int(nic, 0, INT32_MAX, &number))
		return nic;
	return number == 0 ? "eth0" : "";
}

json_t *allocation_make_item(struct allocate_call *call, const json_t *want, const char *interface,
			     struct err *err)
{
	json_auto_t *item = json_object();

	assert(want && interface && json_is_array(call->fresh));
	json_put_str(item, "interface", interface);
	json_put_int(item, "vlan", 0);
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++)
		if (json_at(want, allocation_families[f].list) &&
		    take_address(call, &allocation_families[f], want, item, err) < 0)
			return NULL;
	json_array_append(call->fresh, item);
	return json_incref(item);
}
