// SPDX-License-Identifier: Apache-2.0
/*
 * Allocation. See the header.
 */
#include "reconcilers/ipam/allocate.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/filter.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/pod_controller.h"

static const struct family {
	enum ip_family family;
	const char *list, *address, *pool, *gateway;
	const char *default_route;
} families[] = {
	{IP_V4, "ipv4", "ipv4", "ipv4Pool", "ipv4Gateway", "0.0.0.0/0"},
	{IP_V6, "ipv6", "ipv6", "ipv6Pool", "ipv6Gateway", "::/0"},
};

/* One call of ipam_allocate. */
struct pass {
	struct books *books;
	const json_t *pod;
	const struct ipam_settings *settings;
	const json_t *asks;
	char *name; /* "namespace/name" as records have it */
	const char *uid;
	struct ledger_holder holder; /* of name and uid */
	bool keeps_dropped;          /* what is dropped may be in use until its node has spoken */
	json_t *items;               /* what status.current.ips will be */
	/*
	 * In step with items: the number of each in a list of pools that names no NICs, which is
	 * its place there as long as none was dropped.
	 */
	json_t *places;
	json_t *memo;  /* candidates_find() */
	json_t *fresh; /* those of them that were made in this call; borrowed items */
};

/*
 * The address of an item without its prefix length: as records have it. False when it has none of
 * this family.
 */
static bool bare_address(const json_t *item, const struct family *family, char out[IP_TEXT_SIZE])
{
	return ip_print_bare(json_str_or(json_at(item, family->address), ""), family->family, out);
}

static json_t *item_of(const json_t *items, const char *nic)
{
	return json_find(items, "interface", nic);
}

/* ---- routes ---------------------------------------------------------------------------------- */

static int read_route(const json_t *route, size_t i, struct err *err)
{
	const char *dst = json_str_or(json_at(route, "dst"), ""),
		   *gw = json_str_or(json_at(route, "gw"), "");
	enum ip_family family;
	struct ip_subnet subnet;
	ip_number number;

	if (ip_subnet_parse(dst, &subnet, NULL) < 0)
		return err_set(err, ERR_INVALID, "WrongAnnotation",
			       "annotation " IPAM_ANNOTATION_ROUTES
			       ": dst \"%.64s\" of route %zu must be a network such as 10.0.0.0/16",
			       dst, i);
	if (ip_parse_any(gw, &family, &number, NULL) < 0 || family != subnet.family)
		return err_set(err, ERR_INVALID, "WrongAnnotation",
			       "annotation " IPAM_ANNOTATION_ROUTES
			       ": gw \"%.64s\" of route %zu must be an IPv%d address, as its dst",
			       gw, i, (int)subnet.family);
	return 0;
}

/* The pod's own routes, checked; an empty array when it has none. Returns new, or NULL with err. */
static json_t *custom_routes(const json_t *pod, struct err *err)
{
	const char *text = json_str_at(pod, "metadata", "annotations", IPAM_ANNOTATION_ROUTES);
	json_auto_t *routes =
		text ? limits_parse(text, strlen(text), LIMIT_ANNOTATION_BYTES, err) : json_array();
	json_t *route;
	size_t i;

	if (json_is_null(routes)) {
		json_decref(routes);
		routes = json_array();
	}
	if (text && !routes && err && str_eq(err->reason, "TooLarge")) {
		err_in(err, "annotation " IPAM_ANNOTATION_ROUTES);
		return NULL;
	}
	if (!json_is_array(routes)) {
		err_set(err, ERR_INVALID, "WrongAnnotation",
			"annotation " IPAM_ANNOTATION_ROUTES
			": \"%.128s\" must be a JSON list of {\"dst\", \"gw\"}",
			text ? text : "");
		return NULL;
	}
	json_array_foreach (routes, i, route)
		if (read_route(route, i, err) < 0)
			return NULL;
	return json_incref(routes);
}

static bool reaches(const json_t *item, const char *gateway)
{
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		struct ip_subnet subnet;
		ip_number number;

		if (ip_subnet_parse(json_str_or(json_at(item, families[f].address), ""), &subnet,
				    NULL) == 0 &&
		    ip_parse(gateway, subnet.family, &number, NULL) == 0 &&
		    ip_range_has(subnet.range, number))
			return true;
	}
	return false;
}

static void add_route(json_t *item, const char *dst, const char *gw)
{
	json_t *routes = json_object_get(item, "routes");
	json_t *route = json_object();

	if (!routes) {
		routes = json_array();
		json_put(item, "routes", routes);
	}
	json_put_str(route, "dst", dst);
	json_put_str(route, "gw", gw);
	json_array_append_new(routes, route);
}

/*
 * Each goes to the first NIC whose network has its gateway; one that no NIC of this call reaches
 * has no place.
 */
static void spread_routes(const struct pass *pass, const json_t *routes)
{
	json_t *route, *item;
	size_t i, k;

	json_array_foreach (routes, i, route) {
		const char *gw = json_str_at(route, "gw");

		json_array_foreach (pass->fresh, k, item) {
			if (reaches(item, gw)) {
				add_route(item, json_str_at(route, "dst"), gw);
				break;
			}
		}
	}
}

static bool is_reached(const json_t *items, const char *gateway)
{
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item)
		if (reaches(item, gateway))
			return true;
	return false;
}

char *ipam_routes_left_out(const json_t *pod, const json_t *status)
{
	json_auto_t *routes = custom_routes(pod, NULL);
	auto_strbuf struct strbuf left = {0};
	json_t *route;
	size_t i;

	json_array_foreach (routes, i, route) {
		const char *gw = json_str_at(route, "gw");

		if (!is_reached(json_at(status, "current", "ips"), gw))
			strbuf_addf(&left, "%s%s via %s", left.len ? ", " : "",
				    json_str_at(route, "dst"), gw);
	}
	if (left.len == 0)
		return NULL;
	return str_printf("annotation " IPAM_ANNOTATION_ROUTES
			  ": no NIC of the pod has a network with the gateway of %s, so the pod "
			  "does not get it: correct gw, or take the route out",
			  strbuf_str(&left));
}

/* ---- one address ----------------------------------------------------------------------------- */

/* Does an item of the pod have this address from this pool? */
static bool is_spoken_for(const struct pass *pass, const struct family *family, const char *pool,
			  const char *address)
{
	json_t *item;
	size_t i;

	json_array_foreach (pass->items, i, item) {
		char has[IP_TEXT_SIZE];

		if (str_eq(json_str_at(item, family->pool), pool) &&
		    bare_address(item, family, has) && str_eq(has, address))
			return true;
	}
	return false;
}

/* Addresses of a pool that had a record of the pod before this call. Borrowed. */
static const json_t *left_over_of(const struct pass *pass, const struct ledger *ledger)
{
	json_t *known = json_need_object(pass->memo, "left");
	const char *pool = json_name(ledger->pool), *address;
	json_t *list = json_object_get(known, pool), *record;

	if (list)
		return list;
	list = json_array();
	json_put(known, pool, list);
	if (!ledger_may_know(ledger, pass->uid))
		return list;
	json_each (ledger->records, address, record)
		if (str_eq(json_str_at(record, "podUid"), pass->uid))
			json_array_append_new(list, json_string(address));
	return list;
}

/* A record of the pod that no item names. */
static bool find_left_over(const struct pass *pass, const struct family *family, const char *pool,
			   const struct ledger *ledger, char out[IP_TEXT_SIZE])
{
	const char *first = NULL;
	json_t *entry;
	size_t i;

	json_array_foreach (left_over_of(pass, ledger), i, entry) {
		const char *address = json_string_value(entry);

		if (str_eq(json_str_at(ledger_record(ledger, address), "podUid"), pass->uid) &&
		    (!first || strcmp(address, first) < 0) &&
		    !is_spoken_for(pass, family, pool, address))
			first = address;
	}
	if (first)
		(void)snprintf(out, IP_TEXT_SIZE, "%s", first);
	return first != NULL;
}

static void put_address(json_t *item, const struct family *family, const json_t *want,
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
			add_route(item, dst, gw);
	}
}

/* The address that the pod runs with already (assign_project()), if it is free here. */
static bool find_own(const struct pass *pass, const struct family *family, const json_t *want,
		     const struct ledger *ledger, char out[IP_TEXT_SIZE])
{
	const char *nic = json_str_or(json_at(want, "nic"), "");
	json_t *address;
	size_t i;

	json_array_foreach (json_at(pass->pod, "addresses", nic), i, address) {
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
static int take_from(struct pass *pass, const struct family *family, const json_t *want,
		     const char *pool, struct ledger *ledger, char out[IP_TEXT_SIZE],
		     struct err *err)
{
	if (find_left_over(pass, family, pool, ledger, out))
		return 1;
	if (books_may_take(pass->books, ledger, err) < 0)
		return -1;
	if (!find_own(pass, family, want, ledger, out)) {
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
	books_note(pass->books, ledger, out);
	return ledger_take_this(ledger, out, &pass->holder) ? 1 : 0;
}

/* The first pool in order that has an address gives it. */
static int take(struct pass *pass, const struct family *family, const json_t *want, json_t *item,
		struct err *err)
{
	json_auto_t *pools = filter_pools(books_world(pass->books), pass->pod, family->family, want,
					  pass->settings, err);
	auto_strbuf struct strbuf full = {0};
	bool has_full_ledger = false;
	struct err broken = {0};
	json_t *name;
	size_t i;

	if (!pools)
		return -1;
	json_array_foreach (pools, i, name) {
		const char *pool = json_string_value(name);
		struct ledger *ledger = books_open(pass->books, pool, &broken);
		char address[IP_TEXT_SIZE];
		int took =
			ledger ? take_from(pass, family, want, pool, ledger, address, &broken) : -1;

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
		books_note_short(pass->books, json_string_value(name), json_uid(pass->pod));
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

/*
 * What an item of this want is called: "0" is eth0, and other numbers wait for the NIC that asks
 * next.
 */
static const char *interface_of(const json_t *want)
{
	const char *nic = json_str_at(want, "nic");
	int64_t number;

	if (!str_to_int(nic, 0, INT32_MAX, &number))
		return nic;
	return number == 0 ? "eth0" : "";
}

/* An item with addresses of its own. Returns new, or NULL with err. */
static json_t *make_item(struct pass *pass, const json_t *want, const char *interface,
			 struct err *err)
{
	json_auto_t *item = json_object();

	json_put_str(item, "interface", interface);
	json_put_int(item, "vlan", 0);
	for (size_t f = 0; f < ARRAY_LEN(families); f++)
		if (json_at(want, families[f].list) &&
		    take(pass, &families[f], want, item, err) < 0)
			return NULL;
	json_array_append(pass->fresh, item);
	return json_incref(item);
}

static size_t place_of(const struct pass *pass, size_t i)
{
	return (size_t)json_integer_value(json_array_get(pass->places, i));
}

static bool has_place(const struct pass *pass, size_t place)
{
	for (size_t i = 0; i < json_array_size(pass->places); i++)
		if (place_of(pass, i) == place)
			return true;
	return false;
}

/* Before the first one with a later place. Takes the item. */
static void put_item(struct pass *pass, json_t *item, size_t place)
{
	size_t i = 0;

	while (i < json_array_size(pass->items) && place_of(pass, i) <= place)
		i++;
	json_array_insert_new(pass->items, i, item);
	json_array_insert_new(pass->places, i, json_integer((json_int_t)place));
}

/*
 * Of a list that names no NICs each item is taken once: a NIC for which none is left must not get
 * an address of another one's pools.
 */
static int take_wants(struct pass *pass, const json_t *wants, struct err *err)
{
	json_t *want, *item;
	size_t i;

	json_array_foreach (wants, i, want) {
		const char *interface = interface_of(want);
		bool is_numbered = !str_eq(interface, json_str_at(want, "nic"));

		if (*interface ? item_of(pass->items, interface) != NULL : has_place(pass, i))
			continue;
		item = make_item(pass, want, interface, err);
		if (!item)
			return -1;
		put_item(pass, item, is_numbered ? i : json_array_size(pass->items));
	}
	return 0;
}

/* An item that waits for its NIC is this one's. */
static bool claim(struct pass *pass, const char *nic)
{
	json_t *item = item_of(pass->items, "");

	if (!item)
		return false;
	/* The items are shared with the endpoint that was read. */
	for (size_t i = 0; i < json_array_size(pass->items); i++) {
		if (json_array_get(pass->items, i) == item) {
			json_t *own = json_copy(item);

			json_put_str(own, "interface", nic);
			json_array_set_new(pass->items, i, own);
		}
	}
	return true;
}

static int judge(struct pass *pass, const json_t *ask, struct err *err);

static int serve(struct pass *pass, const json_t *ask, struct err *err)
{
	const char *nic = json_str_at(ask, "nic");
	json_auto_t *wants = NULL, *routes = NULL;

	if (judge(pass, ask, err) < 0)
		return -1;
	if (item_of(pass->items, nic) || claim(pass, nic))
		return 0;
	routes = custom_routes(pass->pod, err);
	wants = routes ? candidates_find(books_world(pass->books), pass->pod, ask, pass->settings,
					 pass->memo, err)
		       : NULL;
	if (!wants)
		return -1;
	json_array_clear(pass->fresh);
	if (take_wants(pass, wants, err) < 0)
		return -1;
	spread_routes(pass, routes);
	if (item_of(pass->items, nic) || claim(pass, nic))
		return 0;
	return err_set(err, ERR_INVALID, "NoAddressForNic",
		       "annotation " IPAM_ANNOTATION_POOLS " has no item left for NIC %s: add one",
		       nic);
}

/* ---- taking over ----------------------------------------------------------------------------- */

/* Are the pools that an item came from still among the candidates? */
static bool is_still_wanted(const json_t *item, const json_t *want)
{
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const char *pool = json_str_at(item, families[f].pool);

		if (pool && !json_list_has(json_at(want, families[f].list), pool))
			return false;
	}
	return true;
}

/* What all NICs may have now. Returns new, or NULL with err. */
static json_t *all_wants(const struct pass *pass, const json_t *asks, struct err *err)
{
	json_auto_t *wants = json_array();
	json_t *ask;
	size_t i;

	json_array_foreach (asks, i, ask) {
		json_auto_t *found = candidates_find(books_world(pass->books), pass->pod, ask,
						     pass->settings, pass->memo, err);

		if (!found)
			return NULL;
		json_array_extend(wants, found);
	}
	return json_incref(wants);
}

/*
 * May an address that the pod's endpoint names, and no record, become the pod's? By the rules for
 * new ones: users may write endpoints of their namespaces.
 */
static int check_claim(struct pass *pass, const struct family *family, const json_t *item,
		       struct ledger *ledger, const char *address, struct err *err)
{
	json_auto_t *wants = all_wants(pass, pass->asks, NULL);
	const char *nic = json_str_or(json_at(item, "interface"), "");
	const json_t *want = json_find(wants, "nic", nic);
	json_auto_t *no_want = json_object();
	auto_free char *why = NULL;
	ip_number number;

	/*
	 * Its network may be gone, or a pool that it names; its annotations can be changed while it
	 * runs. None of these takes an address from it.
	 */
	json_put_str(no_want, "nic", nic);
	why = filter_why_not(books_world(pass->books), pass->pod, ledger->pool, family->family,
			     want ? want : no_want, pass->settings);

	if (why)
		return err_set(
			err, ERR_INVALID, "AddressNotAdmitted",
			"the SpiderEndpoint of this pod claims %s of pool %s, which does not "
			"serve it (%s): restart this pod",
			address, json_name(ledger->pool), why);
	if (books_may_record(pass->books, ledger, err) < 0)
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

/*
 * The want that an item stands for: by its NIC, or by its place when the list of pools names no
 * NICs.
 */
static const json_t *want_of(const json_t *wants, const json_t *item, size_t place)
{
	const json_t *want = json_find(wants, "nic", json_str_at(item, "interface"));
	auto_free char *number = str_printf("%zu", place);

	return want ? want : json_find(wants, "nic", number);
}

static void drop_item(struct pass *pass, size_t i, const char *old_uid)
{
	const json_t *item = json_array_get(pass->items, i);

	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const char *pool = json_str_at(item, families[f].pool);
		struct ledger *ledger = pool ? books_open(pass->books, pool, NULL) : NULL;
		char address[IP_TEXT_SIZE];

		if (ledger && bare_address(item, &families[f], address)) {
			books_note(pass->books, ledger, address);
			if (!pass->keeps_dropped)
				(void)ledger_release(ledger, address, pass->name, old_uid, true);
		}
	}
	json_array_remove(pass->items, i);
	json_array_remove(pass->places, i);
}

/*
 * Can the new pod have what this item says? Its records belong to the same name, or are free to be
 * made again.
 */
static bool can_take_over(struct pass *pass, const json_t *item)
{
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const char *pool = json_str_at(item, families[f].pool);
		struct ledger *ledger = pool ? books_open(pass->books, pool, NULL) : NULL;
		const json_t *record;
		char address[IP_TEXT_SIZE];

		if (!pool || !bare_address(item, &families[f], address))
			continue;
		record = ledger ? ledger_record(ledger, address) : NULL;
		if (!ledger || (record && !str_eq(json_str_at(record, "pod"), pass->name)))
			return false;
		/*
		 * Unlike a pod that lives, nobody uses it for sure: it comes after those that do.
		 */
		if (!record && (books_may_take(pass->books, ledger, NULL) < 0 ||
				check_claim(pass, &families[f], item, ledger, address, NULL) < 0))
			return false;
	}
	return true;
}

/* Whether an item can be taken over is unknown while pods may have it that the ledger lacks. */
static int check_learned(struct pass *pass, struct err *err)
{
	json_t *item;
	size_t i;

	json_array_foreach (pass->items, i, item) {
		for (size_t f = 0; f < ARRAY_LEN(families); f++) {
			const char *pool = json_str_at(item, families[f].pool);
			struct ledger *ledger = pool ? books_open(pass->books, pool, NULL) : NULL;
			char address[IP_TEXT_SIZE];

			if (ledger && ledger->is_unsure &&
			    bare_address(item, &families[f], address) &&
			    !ledger_record(ledger, address))
				return books_may_take(pass->books, ledger, err);
		}
	}
	return 0;
}

static void take_over(struct pass *pass, const json_t *item, bool is_unjudged)
{
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const char *pool = json_str_at(item, families[f].pool);
		struct ledger *ledger = pool ? books_open(pass->books, pool, NULL) : NULL;
		char address[IP_TEXT_SIZE];

		if (!ledger || !bare_address(item, &families[f], address))
			continue;
		books_note(pass->books, ledger, address);
		if (ledger_record(ledger, address))
			ledger_pass_on(ledger, address, &pass->holder);
		else
			(void)ledger_take_this(ledger, address, &pass->holder);
		if (is_unjudged)
			ledger_mark_unjudged(ledger, address);
	}
}

/*
 * Is the item not for this pod any more: the user has chosen other pools, or its NIC cannot come? A
 * NIC that does not ask now, but may come, keeps what it has.
 */
static bool is_outdated(const struct pass *pass, const json_t *wants, size_t i)
{
	const json_t *item = json_array_get(pass->items, i);
	const json_t *want = want_of(wants, item, place_of(pass, i));
	const char *nic = json_str_or(json_at(item, "interface"), "");

	return want ? !is_still_wanted(item, want)
		    : *nic && !pod_may_have_nic(pass->pod, pass->settings, nic);
}

static void drop_what_others_have(struct pass *pass, const char *old_uid)
{
	for (size_t i = json_array_size(pass->items); i-- > 0;)
		if (!can_take_over(pass, json_array_get(pass->items, i)))
			drop_item(pass, i, old_uid);
}

static void drop_outdated(struct pass *pass, const json_t *wants, const char *old_uid)
{
	for (size_t i = json_array_size(pass->items); i-- > 0;)
		if (is_outdated(pass, wants, i))
			drop_item(pass, i, old_uid);
}

/*
 * Items of a list that names no NICs, in the place of those that were dropped: a later call could
 * not tell any more which ones they were. places: as before that.
 */
static int fill_places(struct pass *pass, const json_t *wants, const json_t *places,
		       struct err *err)
{
	json_auto_t *routes = NULL;
	json_t *place, *item;
	size_t i;

	json_array_clear(pass->fresh);
	json_array_foreach (places, i, place) {
		size_t number = (size_t)json_integer_value(place);
		auto_free char *text = str_printf("%zu", number);
		const json_t *want = json_find(wants, "nic", text);

		if (!want || has_place(pass, number))
			continue;
		item = make_item(pass, want, interface_of(want), err);
		if (!item)
			return -1;
		put_item(pass, item, number);
	}
	routes = custom_routes(pass->pod, err);
	if (!routes)
		return -1;
	spread_routes(pass, routes);
	return 0;
}

/*
 * A pod that keeps its addresses comes back under another UID. A virtual machine keeps them
 * whatever pools were chosen since: its guest may be running while it moves here.
 */
static int come_back(struct pass *pass, const json_t *asks, const char *old_uid, struct err *err)
{
	bool judges = pod_machine(pass->pod) == NULL;
	json_auto_t *wants = judges ? all_wants(pass, asks, err) : NULL;
	json_auto_t *places = json_copy(pass->places);
	json_t *item;
	size_t i;

	if (judges && !wants)
		return -1;
	if (judges)
		drop_outdated(pass, wants, old_uid);
	if (check_learned(pass, err) < 0)
		return -1;
	drop_what_others_have(pass, old_uid);
	json_array_foreach (pass->items, i, item)
		take_over(pass, item, judges && !want_of(wants, item, place_of(pass, i)));
	return fill_places(pass, wants, places, err);
}

/* Has one of the item's records nobody looked at yet (struct ledger_holder)? */
static bool is_unjudged(struct pass *pass, const json_t *item)
{
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const char *pool = json_str_at(item, families[f].pool);
		struct ledger *ledger = pool ? books_open(pass->books, pool, NULL) : NULL;
		char address[IP_TEXT_SIZE];

		if (ledger && bare_address(item, &families[f], address) &&
		    ledger_is_unjudged(ledger, address))
			return true;
	}
	return false;
}

/*
 * What came back with the pod before this NIC had asked is looked at when it asks first: the user
 * may have chosen other pools. Its interface is not there yet.
 */
static int judge(struct pass *pass, const json_t *ask, struct err *err)
{
	const char *nic = json_str_at(ask, "nic");
	json_auto_t *wants = NULL;

	for (size_t i = 0; i < json_array_size(pass->items); i++) {
		const json_t *item = json_array_get(pass->items, i);

		if (!str_eq(json_str_at(item, "interface"), nic) || !is_unjudged(pass, item))
			continue;
		wants = candidates_find(books_world(pass->books), pass->pod, ask, pass->settings,
					pass->memo, err);
		if (!wants)
			return -1;
		if (!is_outdated(pass, wants, i)) {
			take_over(pass, item, false);
			return 0;
		}
		/* The node of the pod before may not have spoken: the record goes with this pod. */
		pass->keeps_dropped = true;
		drop_item(pass, i, pass->uid);
		pass->keeps_dropped = false;
		return 0;
	}
	return 0;
}

/* ---- conflicts ------------------------------------------------------------------------------- */

void ipam_note_conflicts(struct books *books, const json_t *status, const json_t *conflicts)
{
	const char *node = json_str_at(status, "current", "node");
	const char *now = world_env(books_world(books), "now");
	json_t *item, *conflict;
	size_t i;

	json_array_foreach (json_at(status, "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(families); f++) {
			const char *pool = json_str_at(item, families[f].pool);
			struct ledger *ledger = pool ? books_open(books, pool, NULL) : NULL;
			char address[IP_TEXT_SIZE];

			if (!ledger || !bare_address(item, &families[f], address))
				continue;
			conflict = json_find(conflicts, "ip", address);
			if (conflict)
				ledger_note_conflict(ledger, address,
						     json_str_or(json_at(conflict, "mac"), ""),
						     node, now);
		}
	}
}

bool ipam_has_heard(const json_t *pod, const json_t *status, const json_t *conflicts,
		    const struct ipam_settings *settings)
{
	return pod_keeps_addresses(pod, settings) || !conflicts_touch_status(status, conflicts);
}

/*
 * Other addresses for the NICs that have one which somebody else has. One that does not ask now
 * waits until it does.
 */
static int exchange(struct pass *pass, const json_t *asks, const json_t *conflicts, struct err *err)
{
	json_auto_t *wants = all_wants(pass, asks, err), *routes = custom_routes(pass->pod, err);
	size_t i;

	if (!wants || !routes)
		return -1;
	for (i = 0; i < json_array_size(pass->items); i++) {
		const json_t *item = json_array_get(pass->items, i);
		size_t place = place_of(pass, i);
		const json_t *want = want_of(wants, item, place);
		auto_free char *interface = str_dup(json_str_or(json_at(item, "interface"), ""));
		json_t *other;

		if (!want || !conflicts_touch(item, conflicts))
			continue;
		drop_item(pass, i, pass->uid);
		other = make_item(pass, want, interface, err);
		if (!other)
			return -1;
		json_array_insert_new(pass->items, i, other);
		json_array_insert_new(pass->places, i, json_integer((json_int_t)place));
	}
	spread_routes(pass, routes);
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static json_t *status_new(const struct pass *pass)
{
	struct pod_controller top = pod_controller(pass->pod);
	json_t *status = json_object(), *current = json_object();

	json_put_str(current, "uid", pass->uid);
	json_put_str(current, "node", json_str_or(json_at(pass->pod, "spec", "nodeName"), ""));
	json_put(current, "ips", json_incref(pass->items));
	json_put(status, "current", current);
	json_put_str(status, "ownerControllerType", top.kind);
	json_put_str(status, "ownerControllerName", top.name);
	return status;
}

/*
 * A pool that was made anew under another name, or two that changed places, leave pods with
 * addresses of pools that do not account for them. The pool that does is theirs from now on.
 */
static void adopt(struct pass *pass)
{
	json_t *item;
	size_t i;

	json_array_foreach (pass->items, i, item) {
		for (size_t f = 0; f < ARRAY_LEN(families); f++) {
			const char *named = json_str_at(item, families[f].pool), *pool;
			char address[IP_TEXT_SIZE];

			if (!named || !bare_address(item, &families[f], address))
				continue;
			pool = books_pool_of(pass->books, named, families[f].family, address);
			if (str_eq(pool, named))
				continue;
			/* The items are shared with the endpoint that was read. */
			item = json_copy(item);
			json_put_str(item, families[f].pool, pool);
			json_array_set_new(pass->items, i, item);
		}
	}
}

static int make_good_one(struct pass *pass, const struct family *family, const json_t *item,
			 struct err *err)
{
	const char *pool = json_str_at(item, family->pool);
	struct ledger *ledger = pool ? books_open(pass->books, pool, NULL) : NULL;
	char address[IP_TEXT_SIZE];
	const json_t *record;

	if (!ledger || !bare_address(item, family, address))
		return 0;
	record = ledger_record(ledger, address);
	if (record && !str_eq(json_str_at(record, "podUid"), pass->uid))
		return err_set(err, ERR_INVALID, "AddressTwice",
			       "address %s of pool %s is recorded for pod %s: restart this pod",
			       address, pool, json_str_at(record, "pod"));
	if (record)
		return 0;
	if (check_claim(pass, family, item, ledger, address, err) < 0)
		return -1;
	books_note(pass->books, ledger, address);
	(void)ledger_take_this(ledger, address, &pass->holder);
	return 0;
}

/*
 * What the pod has is what pools may hand out again, unless their records say so: those that were
 * lost are made again. All that can be; err is the first that cannot.
 */
static int make_good(struct pass *pass, struct err *err)
{
	json_t *item;
	size_t i;
	int ret = 0;

	json_array_foreach (pass->items, i, item)
		for (size_t f = 0; f < ARRAY_LEN(families); f++)
			if (make_good_one(pass, &families[f], item, ret < 0 ? NULL : err) < 0)
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
		"%zu NICs in the SpiderEndpoint or the networks of the pod, a pod can have at "
		"most %d",
		n, LIMIT_NETWORKS + 1);
}

static int run(struct pass *pass, const json_t *endpoint, const json_t *asks, struct err *err)
{
	const json_t *current = json_at(endpoint, "status", "current");
	json_auto_t *conflicts = conflicts_said(endpoint, pass->uid);
	const char *had_uid = json_str_or(json_at(current, "uid"), "");
	bool is_same = str_eq(had_uid, pass->uid);
	json_t *ask;
	size_t i;

	if (check_numbers(endpoint, asks, err) < 0)
		return -1;
	if (is_same || (current && pod_keeps_addresses(pass->pod, pass->settings)))
		json_array_extend(pass->items, json_at(current, "ips"));
	else if (endpoint_is_down(endpoint, had_uid))
		/* Its word goes with it as soon as the endpoint is this pod's. */
		(void)ipam_give_back(pass->books, pass->name, json_at(endpoint, "status"));
	adopt(pass);
	for (i = 0; i < json_array_size(pass->items); i++)
		json_array_append_new(pass->places, json_integer((json_int_t)i));
	if (is_same && conflicts_touch_status(json_at(endpoint, "status"), conflicts)) {
		ipam_note_conflicts(pass->books, json_at(endpoint, "status"), conflicts);
		if (!pod_keeps_addresses(pass->pod, pass->settings) &&
		    exchange(pass, asks, conflicts, err) < 0)
			return -1;
	}
	if (is_same && make_good(pass, err) < 0)
		return -1;
	pass->keeps_dropped = !is_same && !endpoint_is_down(endpoint, had_uid);
	if (json_array_size(pass->items) && !is_same && come_back(pass, asks, had_uid, err) < 0)
		return -1;
	json_array_foreach (asks, i, ask)
		if (serve(pass, ask, err) < 0)
			return -1;
	return 0;
}

static void pass_init(struct pass *pass)
{
	pass->uid = json_uid(pass->pod);
	pass->name = str_printf("%s/%s", json_namespace(pass->pod),
				pod_endpoint_name(pass->pod, pass->settings));
	pass->holder = (struct ledger_holder){pass->name, pass->uid,
					      json_str_at(pass->pod, "spec", "nodeName")};
	pass->items = json_array();
	pass->places = json_array();
	pass->fresh = json_array();
	pass->memo = json_object();
}

static void pass_done(struct pass *pass)
{
	free(pass->name);
	json_decref(pass->items);
	json_decref(pass->places);
	json_decref(pass->fresh);
	json_decref(pass->memo);
}

int ipam_allocate(struct books *books, const json_t *pod, const json_t *endpoint,
		  const json_t *asks, const struct ipam_settings *settings, json_t **ret_status,
		  struct err *err)
{
	auto_call(pass_done) struct pass pass = {
		.books = books,
		.pod = pod,
		.settings = settings,
		.asks = asks,
	};

	assert(pod && asks);
	if (pod_need_alive(pod, err) < 0)
		return -1;
	pass_init(&pass);
	books_begin(books);
	if (run(&pass, endpoint, asks, err) < 0) {
		books_cancel(books);
		return -1;
	}
	books_keep(books);
	*ret_status = status_new(&pass);
	return 0;
}

void ipam_record(struct books *books, const json_t *pod, const json_t *endpoint, const json_t *asks,
		 const struct ipam_settings *settings)
{
	auto_call(pass_done) struct pass pass = {
		.books = books,
		.pod = pod,
		.settings = settings,
		.asks = asks,
	};

	assert(pod && asks);
	pass_init(&pass);
	if (!str_eq(endpoint_uid(endpoint), pass.uid) || endpoint_is_down(endpoint, pass.uid) ||
	    check_numbers(endpoint, asks, NULL) < 0)
		return;
	json_array_extend(pass.items, json_at(endpoint, "status", "current", "ips"));
	adopt(&pass);
	books_begin(books);
	(void)make_good(&pass, NULL);
	books_keep(books);
}

bool ipam_give_back(struct books *books, const char *pod, const json_t *status)
{
	const char *uid = json_str_or(json_at(status, "current", "uid"), "");
	bool is_complete = true;
	json_t *item;
	size_t i;

	json_array_foreach (json_at(status, "current", "ips"), i, item) {
		for (size_t f = 0; f < ARRAY_LEN(families); f++) {
			const char *pool = json_str_at(item, families[f].pool);
			struct err err = {0};
			struct ledger *ledger;
			char address[IP_TEXT_SIZE];

			if (!pool || !bare_address(item, &families[f], address))
				continue;
			pool = books_pool_of(books, pool, families[f].family, address);
			ledger = books_open(books, pool, &err);
			if (ledger)
				(void)ledger_release(ledger, address, pod, uid, true);
			else if (!str_eq(err.reason, "PoolNotFound"))
				is_complete = false;
		}
	}
	return is_complete;
}

/* ---- CNI ------------------------------------------------------------------------------------- */

static void result_route(json_t *routes, const char *dst, const char *gw)
{
	char network[IP_SUBNET_TEXT_SIZE];
	struct ip_subnet subnet;
	json_t *route;

	/* Earlier versions stored routes of a pool that had "to" and "via" as empty ones. */
	if (!*dst || !*gw)
		return;
	route = json_object();
	/* The destination is stored as people wrote it; the kernel wants the network. */
	if (ip_subnet_parse(dst, &subnet, NULL) == 0) {
		ip_subnet_print(&subnet, network);
		dst = network;
	}
	json_put_str(route, "dst", dst);
	json_put_str(route, "gw", gw);
	json_array_append_new(routes, route);
}

json_t *ipam_cni_result(const json_t *status, const char *nic, const char *cni_version)
{
	const json_t *item = endpoint_item(status, nic);
	bool has_version = str_starts(cni_version, "0.");
	json_t *result = json_object(), *ips = json_array(), *routes = json_array(), *route;
	size_t i;

	json_put_str(result, "cniVersion", cni_version);
	json_array_foreach (json_at(item, "routes"), i, route)
		result_route(routes, json_str_or(json_at(route, "dst"), ""),
			     json_str_or(json_at(route, "gw"), ""));
	for (size_t f = 0; f < ARRAY_LEN(families); f++) {
		const char *address = json_str_at(item, families[f].address);
		const char *gateway = json_str_at(item, families[f].gateway);
		json_t *ip;

		if (!address)
			continue;
		ip = json_object();
		if (has_version)
			json_put_str(ip, "version", families[f].family == IP_V4 ? "4" : "6");
		json_put_str(ip, "address", address);
		json_put_str(ip, "gateway", gateway);
		json_array_append_new(ips, ip);
		if (gateway && !json_is_true(json_at(item, "cleanGateway")))
			result_route(routes, families[f].default_route, gateway);
	}
	json_put(result, "ips", ips);
	if (json_array_size(routes))
		json_put(result, "routes", routes);
	else
		json_decref(routes);
	json_put(result, "dns", json_object());
	return result;
}
