// SPDX-License-Identifier: Apache-2.0
/*
 * Items of the pod before, or that came back with the pod: each is kept, dropped or made again by
 * the rules for its pools. allocate.c calls it before NICs ask for more.
 */
#include "reconcilers/ipam/allocate/allocate_internal.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/ipam/filter.h"
#include "reconcilers/ipam/pod_controller.h"

/* Are the pools that an item came from still among the candidates? */
static bool is_still_wanted(const json_t *item, const json_t *want)
{
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		const char *pool = json_str_at(item, allocation_families[f].pool);

		if (pool && !json_list_has(json_at(want, allocation_families[f].list), pool))
			return false;
	}
	return true;
}

json_t *allocation_wants(const struct allocate_call *call, const json_t *asks, struct err *err)
{
	json_auto_t *wants = json_array();
	json_t *ask;
	size_t i;

	json_array_foreach (asks, i, ask) {
		json_auto_t *found = candidates_find(books_world(call->books), call->pod, ask,
						     call->settings, call->memo, err);

		if (!found)
			return NULL;
		json_array_extend(wants, found);
	}
	return json_incref(wants);
}

int allocation_check_claim(struct allocate_call *call, const struct allocation_family *family,
			   const json_t *item, struct ledger *ledger, const char *address,
			   struct err *err)
{
	json_auto_t *wants = allocation_wants(call, call->asks, NULL);
	const char *nic = json_str_or(json_at(item, "interface"), "");
	const json_t *want = json_find(wants, "nic", nic);
	json_auto_t *no_want = json_object();
	auto_free char *why = NULL;
	ip_number number;

	assert(ledger && !ledger_record(ledger, address));
	/*
	 * Its network may be gone, or a pool that it names; its annotations can be changed while it
	 * runs. None of these takes an address from it.
	 */
	json_put_str(no_want, "nic", nic);
	why = filter_why_not(books_world(call->books), call->pod, ledger->pool, family->family,
			     want ? want : no_want, call->settings);

	if (why)
		return err_set(
			err, ERR_INVALID, "AddressNotAdmitted",
			"the SpiderEndpoint of this pod claims %s of pool %s, which does not "
			"serve it (%s): restart this pod",
			address, json_name(ledger->pool), why);
	if (books_may_record(call->books, ledger, err) < 0)
		return -1;
	if (ledger_is_overfull(ledger))
		return err_set(err, ERR_TRANSIENT, "LedgerFull",
			       "the SpiderEndpoint of this pod claims %s of pool %s, whose ledger "
			       "has room for no more than %zu records: restart this pod",
			       address, json_name(ledger->pool), json_object_size(ledger->records));
	if (ip_parse(address, family->family, &number, NULL) < 0 ||
	    !ip_set_has(&ledger->free, number))
		return err_set(
			err, ERR_INVALID, "AddressNotAdmitted",
			"the SpiderEndpoint of this pod claims %s, which is not a free address "
			"of pool %s: restart this pod",
			address, json_name(ledger->pool));
	return 0;
}

const json_t *allocation_want(const json_t *wants, const json_t *item, size_t place)
{
	const json_t *want = json_find(wants, "nic", json_str_at(item, "interface"));
	auto_free char *number = str_printf("%zu", place);

	return want ? want : json_find(wants, "nic", number);
}

void allocation_drop_item(struct allocate_call *call, size_t i, const char *old_uid)
{
	const json_t *item = json_array_get(call->items, i);

	assert(i < json_array_size(call->items));
	assert(json_array_size(call->items) == json_array_size(call->places));
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		const char *pool = json_str_at(item, allocation_families[f].pool);
		struct ledger *ledger = pool ? books_open(call->books, pool, NULL) : NULL;
		char address[IP_TEXT_SIZE];

		if (ledger && allocation_address(item, &allocation_families[f], address)) {
			books_note(call->books, ledger, address);
			if (!call->keeps_dropped)
				(void)ledger_release(ledger, address, call->name, old_uid, true);
		}
	}
	json_array_remove(call->items, i);
	json_array_remove(call->places, i);
}

bool allocation_is_of_stranger(const struct allocate_call *call, const char *uid)
{
	const char *machine = pod_machine(call->pod);
	const json_t *pod = books_pod(call->books, uid);

	return pod && !str_eq(uid, call->uid) && !pod_has_terminated(pod) &&
	       !(machine && str_eq(pod_machine(pod), machine));
}

/*
 * Can the new pod have what this item says? Its records belong to the same name, and to no pod that
 * lives beside it, or are free to be made again.
 */
static bool can_take_over(struct allocate_call *call, const json_t *item)
{
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		const char *pool = json_str_at(item, allocation_families[f].pool);
		struct ledger *ledger = pool ? books_open(call->books, pool, NULL) : NULL;
		const json_t *record;
		char address[IP_TEXT_SIZE];

		if (!pool || !allocation_address(item, &allocation_families[f], address))
			continue;
		record = ledger ? ledger_record(ledger, address) : NULL;
		if (!ledger ||
		    (record &&
		     (!str_eq(json_str_at(record, "pod"), call->name) ||
		      allocation_is_of_stranger(call, json_str_or(json_at(record, "podUid"), "")))))
			return false;
		/*
		 * Unlike a pod that lives, nobody uses it for sure: it comes after those that do.
		 */
		if (!record && (books_may_take(call->books, ledger, NULL) < 0 ||
				allocation_check_claim(call, &allocation_families[f], item, ledger,
						       address, NULL) < 0))
			return false;
	}
	return true;
}

/* Whether an item can be taken over is unknown while pods may have it that the ledger lacks. */
static int check_learned(struct allocate_call *call, struct err *err)
{
	json_t *item;
	size_t i;

	json_array_foreach (call->items, i, item) {
		for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
			const char *pool = json_str_at(item, allocation_families[f].pool);
			struct ledger *ledger = pool ? books_open(call->books, pool, NULL) : NULL;
			char address[IP_TEXT_SIZE];

			if (ledger && ledger->is_unsure &&
			    allocation_address(item, &allocation_families[f], address) &&
			    !ledger_record(ledger, address))
				return books_may_take(call->books, ledger, err);
		}
	}
	return 0;
}

static void take_over(struct allocate_call *call, const json_t *item, bool is_unjudged)
{
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		const char *pool = json_str_at(item, allocation_families[f].pool);
		struct ledger *ledger = pool ? books_open(call->books, pool, NULL) : NULL;
		char address[IP_TEXT_SIZE];

		if (!ledger || !allocation_address(item, &allocation_families[f], address))
			continue;
		books_note(call->books, ledger, address);
		if (ledger_record(ledger, address))
			ledger_pass_on(ledger, address, &call->holder);
		else
			(void)ledger_take_this(ledger, address, &call->holder);
		if (is_unjudged)
			ledger_mark_unjudged(ledger, address);
	}
}

/*
 * Is the item not for this pod any more: the user has chosen other pools, or its NIC cannot come? A
 * NIC that does not ask now, but may come, keeps what it has.
 */
static bool is_outdated(const struct allocate_call *call, const json_t *wants, size_t i)
{
	const json_t *item = json_array_get(call->items, i);
	const json_t *want = allocation_want(wants, item, allocation_place(call, i));
	const char *nic = json_str_or(json_at(item, "interface"), "");

	return want ? !is_still_wanted(item, want)
		    : *nic && !pod_may_have_nic(call->pod, call->settings, nic);
}

/*
 * Items of a list that names no NICs, in the place of those that were dropped: a later call could
 * not tell any more which ones they were. places: as before that.
 */
static int fill_places(struct allocate_call *call, const json_t *wants, const json_t *places,
		       struct err *err)
{
	json_auto_t *routes = NULL;
	json_t *place, *item;
	size_t i;

	json_array_clear(call->fresh);
	json_array_foreach (places, i, place) {
		size_t number = (size_t)json_integer_value(place);
		auto_free char *text = str_printf("%zu", number);
		const json_t *want = json_find(wants, "nic", text);

		if (!want || allocation_has_place(call, number))
			continue;
		item = allocation_make_item(call, want, allocation_interface(want), err);
		if (!item)
			return -1;
		allocation_put_item(call, item, number);
	}
	routes = allocation_routes(call->pod, err);
	if (!routes)
		return -1;
	allocation_spread_routes(call, routes);
	return 0;
}

int allocation_come_back(struct allocate_call *call, const json_t *asks, const char *old_uid,
			 struct err *err)
{
	bool judges = pod_machine(call->pod) == NULL;
	json_auto_t *wants = judges ? allocation_wants(call, asks, err) : NULL;
	json_auto_t *places = json_copy(call->places);
	json_t *item;
	size_t i;

	assert(old_uid && json_array_size(call->items) == json_array_size(call->places));
	if (judges && !wants)
		return -1;
	if (judges) {
		for (i = json_array_size(call->items); i-- > 0;)
			if (is_outdated(call, wants, i))
				allocation_drop_item(call, i, old_uid);
	}
	if (check_learned(call, err) < 0)
		return -1;
	for (i = json_array_size(call->items); i-- > 0;)
		if (!can_take_over(call, json_array_get(call->items, i)))
			allocation_drop_item(call, i, old_uid);
	json_array_foreach (call->items, i, item)
		take_over(call, item,
			  judges && !allocation_want(wants, item, allocation_place(call, i)));
	return fill_places(call, wants, places, err);
}

/* Has one of the item's records nobody looked at yet (struct ledger_holder)? */
static bool is_unjudged(struct allocate_call *call, const json_t *item)
{
	for (size_t f = 0; f < ARRAY_LEN(allocation_families); f++) {
		const char *pool = json_str_at(item, allocation_families[f].pool);
		struct ledger *ledger = pool ? books_open(call->books, pool, NULL) : NULL;
		char address[IP_TEXT_SIZE];

		if (ledger && allocation_address(item, &allocation_families[f], address) &&
		    ledger_is_unjudged(ledger, address))
			return true;
	}
	return false;
}

int allocation_judge_again(struct allocate_call *call, const json_t *ask, struct err *err)
{
	const char *nic = json_str_at(ask, "nic");
	json_auto_t *wants = NULL;

	for (size_t i = 0; i < json_array_size(call->items); i++) {
		const json_t *item = json_array_get(call->items, i);

		if (!str_eq(json_str_at(item, "interface"), nic) || !is_unjudged(call, item))
			continue;
		wants = candidates_find(books_world(call->books), call->pod, ask, call->settings,
					call->memo, err);
		if (!wants)
			return -1;
		if (!is_outdated(call, wants, i)) {
			take_over(call, item, false);
			return 0;
		}
		/* The node of the pod before may not have spoken: the record goes with this pod. */
		call->keeps_dropped = true;
		allocation_drop_item(call, i, call->uid);
		call->keeps_dropped = false;
		return 0;
	}
	return 0;
}
