// SPDX-License-Identifier: Apache-2.0
/*
 * The judge. See the header.
 *
 * What has an address is a source: "ledger POOL", "endpoint NAMESPACE/NAME" or "sandbox UID". Each
 * event replaces one source; what changed in it is judged.
 */
#include "tests/support/address_history.h"

#include <inttypes.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "reconcilers/ipam/ip_range.h"

const char *const history_kinds[] = {
	"pods", "spiderippools", "spiderendpoints", "spiderreservedips", "configmaps", "leases",
	NULL};

struct history {
	uint64_t revision;
	/*
	 * UID: {"key", "living", "ending", "keeps", "forged", "nics": text, "status": text,
	 * "forgotten": {address: true}, "wiped": {address: true}}
	 */
	json_t *pods;
	json_t *sources;   /* SOURCE: {address: UID} */
	json_t *holders;   /* address: {SOURCE: UID} */
	json_t *pools;     /* name: {"uid", "revision", "object"} */
	json_t *endpoints; /* key: {"uid", "mark", "items": {NIC POOL ADDRESS: forged}} */
	json_t *reserved;  /* name: {"ips", "known": revision, 0 while it is not} */
	json_t *said;      /* what was told, or counted, already */
	json_t *violations, *counts;
	char *leader;
};

struct history *history_new(void)
{
	struct history *history = mem_new(struct history);

	history->pods = json_object();
	history->sources = json_object();
	history->holders = json_object();
	history->pools = json_object();
	history->endpoints = json_object();
	history->reserved = json_object();
	history->said = json_object();
	history->violations = json_array();
	history->counts = json_object();
	history->leader = str_dup("");
	return history;
}

void history_free(struct history *history)
{
	if (!history)
		return;
	json_decref(history->pods);
	json_decref(history->sources);
	json_decref(history->holders);
	json_decref(history->pools);
	json_decref(history->endpoints);
	json_decref(history->reserved);
	json_decref(history->said);
	json_decref(history->violations);
	json_decref(history->counts);
	mem_free(history->leader);
	mem_free(history);
}

const json_t *history_violations(const struct history *history)
{
	return history->violations;
}

const json_t *history_counts(const struct history *history)
{
	return history->counts;
}

static void count(struct history *history, const char *what)
{
	json_put_int(history->counts, what, json_integer_value(json_at(history->counts, what)) + 1);
}

/* True the first time. */
static bool note_once(struct history *history, const char *text)
{
	bool is_new = !json_object_get(history->said, text);

	json_put_bool(history->said, text, true);
	return is_new;
}

/* `once`: what makes it the same violation as one before. */
static void tell(struct history *history, const char *once, const char *text)
{
	if (note_once(history, once))
		json_array_append_new(history->violations, json_fmt("%s, at revision %" PRIu64,
								    text, history->revision));
}

/* ---- pods ------------------------------------------------------------------------------------ */

static json_t *pod_of(const struct history *history, const char *uid)
{
	return json_object_get(history->pods, uid ? uid : "");
}

static bool is_living(const json_t *pod)
{
	return json_is_true(json_at(pod, "living"));
}

static bool is_forged(const json_t *pod)
{
	return json_is_true(json_at(pod, "forged"));
}

/* "namespace/name (UID)" */
static char *pod_text(const struct history *history, const char *uid)
{
	return str_printf("%s (%s)", json_str_or(json_at(pod_of(history, uid), "key"), "?"), uid);
}

static void see_pod(struct history *history, const json_t *object, bool is_gone)
{
	const json_t *annotations = json_at(object, "metadata", "annotations");
	const json_t *owners = json_at(object, "metadata", "ownerReferences");
	const char *phase = json_str_or(json_at(object, "status", "phase"), "");
	json_t *pod = pod_of(history, json_uid(object));
	auto_free char *key = json_key(object);

	if (!pod) {
		pod = json_object();
		json_put(history->pods, json_uid(object), pod);
		json_put_str(pod, "key", key);
		json_put_bool(pod, "keeps", json_find(owners, "kind", "StatefulSet") != NULL);
		/* One was forged under its name before it was there. */
		json_put_bool(pod, "forged",
			      !str_empty(json_str_at(history->endpoints, key, "mark")));
		count(history, "pods");
	}
	json_put_str(pod, "nics", json_str_at(annotations, HISTORY_NICS));
	json_put_str(pod, "status", json_str_at(annotations, "k8s.v1.cni.cncf.io/network-status"));
	json_put_bool(pod, "ending", json_at(object, "metadata", "deletionTimestamp") != NULL);
	json_put_bool(pod, "living",
		      !is_gone && !str_eq(phase, "Failed") && !str_eq(phase, "Succeeded"));
}

/* ---- what a pool may give ------------------------------------------------------------------ */

static bool list_has(const json_t *list, enum ip_family family, ip_number number)
{
	struct ip_range range;
	json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry)
		if (ip_range_parse(json_str_or(entry, ""), family, &range, NULL) == 0 &&
		    ip_range_has(range, number))
			return true;
	return false;
}

/* The reservation that forbids an address to who read the pool in this revision. NULL: none. */
static const char *reserved_by(const struct history *history, uint64_t read, enum ip_family family,
			       ip_number number)
{
	const char *name;
	json_t *reserved;

	json_each (history->reserved, name, reserved) {
		uint64_t known = (uint64_t)json_integer_value(json_at(reserved, "known"));

		if (known && known < read && list_has(json_at(reserved, "ips"), family, number))
			return name;
	}
	return NULL;
}

/* Why a pool must not give this address, new; NULL: it may. */
static char *why_forbidden(const struct history *history, const json_t *pool, uint64_t read,
			   const char *address)
{
	const json_t *spec = json_at(pool, "spec");
	const char *reserved;
	struct ip_subnet subnet;
	ip_number number, gateway;

	if (ip_subnet_parse(json_str_or(json_at(spec, "subnet"), ""), &subnet, NULL) < 0 ||
	    ip_parse(address, subnet.family, &number, NULL) < 0)
		return str_dup("it is no address of spec.subnet");
	if (!list_has(json_at(spec, "ips"), subnet.family, number) ||
	    !ip_range_has(subnet.range, number))
		return str_dup("spec.ips does not have it");
	if (list_has(json_at(spec, "excludeIPs"), subnet.family, number))
		return str_dup("spec.excludeIPs has it");
	if (ip_parse(json_str_or(json_at(spec, "gateway"), ""), subnet.family, &gateway, NULL) ==
		    0 &&
	    gateway == number)
		return str_dup("it is the gateway");
	if (number == subnet.range.first || number == subnet.range.last)
		return str_dup("it is the subnet's first or last address");
	reserved = reserved_by(history, read, subnet.family, number);
	return reserved ? str_printf("SpiderReservedIP %s has it", reserved) : NULL;
}

/* ---- who has an address ---------------------------------------------------------------------- */

static bool is_sandbox(const char *source)
{
	return str_starts(source, "sandbox ");
}

/* Does ledger or endpoint say that the pod has it? */
static bool api_says(const struct history *history, const char *address, const char *uid)
{
	const char *source;
	json_t *holder;

	json_each (json_object_get(history->holders, address), source, holder)
		if (!is_sandbox(source) && str_eq(json_string_value(holder), uid))
			return true;
	return false;
}

static bool sandbox_has(const struct history *history, const char *address, const char *uid)
{
	auto_free char *source = str_printf("sandbox %s", uid);

	return json_at(history->sources, source, address) != NULL;
}

/* Network-status is JSON: each address stands in quotes. */
static bool status_says(const json_t *pod, const char *address)
{
	auto_free char *quoted = str_printf("\"%s\"", address);

	return strstr(json_str_or(json_at(pod, "status"), ""), quoted) != NULL;
}

/* Does the pool, as it is now, have this address for pods of this namespace at all? */
static bool pool_serves(const struct history *history, const char *name, const char *address,
			const char *key)
{
	const json_t *pool = json_at(history->pools, name, "object");
	const json_t *spec = json_at(pool, "spec"), *names = json_at(spec, "namespaceName");
	auto_free char *ns = str_ndup(key, strcspn(key, "/"));
	auto_free char *why = pool ? why_forbidden(history, pool, 0, address) : NULL;

	return pool && !why && !json_at(pool, "metadata", "deletionTimestamp") &&
	       !json_is_object(json_at(spec, "namespaceAffinity")) &&
	       (json_array_size(names) == 0 || json_list_has(names, ns));
}

/*
 * The record is gone, and no pool of the name that the endpoint has would make it again: a user has
 * taken the address out of the pool, or deleted the pool, under the pod.
 */
static bool is_abandoned(struct history *history, const char *address, const char *uid)
{
	json_t *pod = pod_of(history, uid);
	const char *key = json_str_or(json_at(pod, "key"), ""), *text;
	json_t *is_forgery;

	if (!json_at(pod, "wiped", address))
		return false;
	json_each (json_at(history->endpoints, key, "items"), text, is_forgery) {
		const char *has = strrchr(text, ' ') + 1, *pool = strchr(text, ' ') + 1;
		auto_free char *name = str_ndup(pool, strcspn(pool, " "));

		if (!str_eq(has, address) || pool_serves(history, name, address, key))
			continue;
		json_put_bool(json_need_object(pod, "forgotten"), address, true);
		count(history, "abandoned");
		return true;
	}
	return false;
}

/* Is it one of the living pods that may have the address alone? */
static bool has_for_sure(struct history *history, const char *address, const char *source,
			 const char *uid)
{
	const json_t *pod = pod_of(history, uid);

	if (!is_living(pod) ||
	    (json_is_true(json_at(pod, "ending")) && !sandbox_has(history, address, uid)))
		return false;
	if (str_starts(source, "ledger "))
		return true;
	if (json_at(pod, "forgotten", address) || is_abandoned(history, address, uid))
		return false;
	return !is_sandbox(source) || !is_forged(pod) || api_says(history, address, uid);
}

/* What tells a pair of pods with one address apart. Returns new. */
static char *pair_text(const char *address, const char *a, const char *b)
{
	bool is_sorted = strcmp(a, b) < 0;

	return str_printf("twice %s %s %s", address, is_sorted ? a : b, is_sorted ? b : a);
}

/*
 * What users have made the API forget of a pod may be given to another, and stays twice when a pool
 * records it again later.
 */
static void excuse_pairs(struct history *history, const json_t *holders, const char *address,
			 const char *forgotten)
{
	const char *source;
	json_t *holder;

	json_each (holders, source, holder) {
		auto_free char *once = pair_text(address, forgotten, json_string_value(holder));

		(void)note_once(history, once);
	}
}

static void check_twice(struct history *history, const char *address)
{
	const json_t *holders = json_object_get(history->holders, address);
	const char *source, *first = NULL, *first_source = NULL;
	json_t *holder;

	json_each (holders, source, holder) {
		const char *uid = json_string_value(holder);

		if (!has_for_sure(history, address, source, uid)) {
			if (json_at(pod_of(history, uid), "forgotten", address))
				excuse_pairs(history, holders, address, uid);
			continue;
		}
		if (first && !str_eq(first, uid)) {
			auto_free char *a = pod_text(history, first), *b = pod_text(history, uid);
			auto_free char *once = pair_text(address, first, uid);
			auto_free char *text =
				str_printf("twice: %s is of %s by %s and of %s by %s", address, a,
					   first_source, b, source);

			tell(history, once, text);
			continue;
		}
		first = uid;
		first_source = source;
	}
}

/* The API does not say any more that this pod has the address. */
static void check_forgotten(struct history *history, const char *address, const char *uid)
{
	auto_free char *once = str_printf("forgotten %s %s", address, uid);
	json_t *pod = pod_of(history, uid);

	if (!is_living(pod) || api_says(history, address, uid) || status_says(pod, address))
		return;
	json_put_bool(json_need_object(pod, "forgotten"), address, true);
	if (note_once(history, once))
		count(history, "forgotten");
}

/* Replace what a source says: {address: UID}; takes `now`; NULL: it says nothing. */
static void set_source(struct history *history, const char *source, json_t *now)
{
	json_auto_t *old = json_incref(json_object_get(history->sources, source));
	const char *address;
	json_t *uid;

	json_each (old, address, uid) {
		json_object_del(json_object_get(history->holders, address), source);
		if (json_object_size(json_object_get(history->holders, address)) == 0)
			json_object_del(history->holders, address);
	}
	json_object_del(history->sources, source);
	json_each (now, address, uid)
		json_put(json_need_object(history->holders, address), source, json_incref(uid));
	if (json_object_size(now))
		json_put(history->sources, source, json_incref(now));
	json_each (old, address, uid)
		if (!json_same(json_object_get(now, address), uid))
			check_forgotten(history, address, json_string_value(uid));
	json_each (now, address, uid) {
		json_t *pod = pod_of(history, json_string_value(uid));

		if (str_starts(source, "ledger ")) {
			json_object_del(json_at(pod, "forgotten"), address);
			json_object_del(json_at(pod, "wiped"), address);
		}
		if (!json_same(json_object_get(old, address), uid))
			check_twice(history, address);
	}
	json_decref(now);
}

/* ---- ledgers --------------------------------------------------------------------------------- */

/* A sandbox of a pod that has ended still has it. */
static void check_early(struct history *history, const char *address, const char *uid)
{
	const char *key = json_str_at(pod_of(history, uid), "key"), *source;
	json_t *holder;

	json_each (json_object_get(history->holders, address), source, holder) {
		const char *had = json_string_value(holder);
		const json_t *pod = pod_of(history, had);
		auto_free char *once = NULL, *text = NULL, *a = NULL, *b = NULL;

		if (!is_sandbox(source) || str_eq(had, uid) || is_living(pod) || is_forged(pod) ||
		    json_at(pod, "forgotten", address) || json_at(pod, "wiped", address) ||
		    (json_is_true(json_at(pod, "keeps")) && str_eq(json_str_at(pod, "key"), key)))
			continue;
		a = pod_text(history, had);
		b = pod_text(history, uid);
		once = str_printf("early %s %s", address, had);
		text = str_printf("early: %s is recorded for %s while the sandbox of %s has it",
				  address, b, a);
		tell(history, once, text);
	}
}

static void check_given(struct history *history, const json_t *pool, uint64_t read,
			const char *address, const char *uid)
{
	auto_free char *why = why_forbidden(history, pool, read, address);
	auto_free char *pod = pod_text(history, uid);
	auto_free char *once = str_printf("forbidden %s %s", address, uid);
	auto_free char *text = str_printf("forbidden: %s of pool %s is recorded for %s, but %s",
					  address, json_name(pool), pod, why ? why : "");

	count(history, "records");
	if (why)
		tell(history, once, text);
}

/*
 * `from`: the source that had it. A pod that is being deleted before its sandbox was made gets
 * none.
 */
static void check_taken(struct history *history, const char *from, const char *address,
			const char *uid)
{
	const json_t *pod = pod_of(history, uid);
	auto_free char *who = pod_text(history, uid);
	auto_free char *once = str_printf("taken %s %s", address, uid);
	auto_free char *text = str_printf("taken: %s is not of %s any more by %s, which lives",
					  address, who, from);

	if (is_living(pod) && !is_forged(pod) &&
	    (!json_is_true(json_at(pod, "ending")) || sandbox_has(history, address, uid)))
		tell(history, once, text);
}

/* {address: UID} */
static json_t *records_of(const json_t *pool)
{
	const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), "{}"), *address;
	json_auto_t *records = json_parse(text, strlen(text), NULL);
	json_t *found = json_object(), *record;

	json_each (records, address, record)
		json_put_str(found, address, json_str_or(json_at(record, "podUid"), ""));
	return found;
}

/*
 * No program of ours leaves a status without freeIPCount, nor a count that its records do not have.
 */
static bool was_wiped(const json_t *pool, const json_t *records)
{
	const json_t *said = json_at(pool, "status", "allocatedIPCount");

	return json_object_size(records) == 0 &&
	       (!json_at(pool, "status", "freeIPCount") || json_integer_value(said) != 0);
}

/* A user has removed the record; whoever ended before it was made again is not known any more. */
static void note_wiped(struct history *history, const char *address, const char *uid)
{
	json_t *pod = pod_of(history, uid);

	if (!pod)
		return;
	json_put_bool(json_need_object(pod, "wiped"), address, true);
	count(history, "wiped");
}

static void see_pool(struct history *history, const json_t *object, bool is_gone)
{
	auto_free char *source = str_printf("ledger %s", json_name(object));
	json_auto_t *old = json_incref(json_object_get(history->sources, source));
	json_auto_t *now = is_gone ? json_object() : records_of(object);
	const json_t *before = json_object_get(history->pools, json_name(object));
	bool is_same = before && str_eq(json_str_at(before, "uid"), json_uid(object));
	uint64_t read = is_same ? (uint64_t)json_integer_value(json_at(before, "revision")) : 0;
	const char *address;
	json_t *uid;

	json_each (old, address, uid) {
		if (json_same(json_object_get(now, address), uid))
			continue;
		if (is_same && !is_gone && !was_wiped(object, now))
			check_taken(history, source, address, json_string_value(uid));
		else
			note_wiped(history, address, json_string_value(uid));
	}
	json_each (now, address, uid) {
		if (!json_object_get(old, address))
			check_given(history, object, read, address, json_string_value(uid));
		if (!json_same(json_object_get(old, address), uid))
			check_early(history, address, json_string_value(uid));
	}
	set_source(history, source, json_incref(now));
	if (is_gone)
		json_object_del(history->pools, json_name(object));
	else
		json_put(history->pools, json_name(object),
			 json_pack("{s:s, s:I, s:O}", "uid", json_uid(object), "revision",
				   (json_int_t)history->revision, "object", object));
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static char *item_text(const json_t *item)
{
	const char *address = json_str_or(json_at(item, "ipv4"), "");

	return str_printf("%s %s %.*s", json_str_or(json_at(item, "interface"), "?"),
			  json_str_or(json_at(item, "ipv4Pool"), "?"), (int)strcspn(address, "/"),
			  address);
}

/* {NIC POOL ADDRESS: was it forged} of this version. */
static json_t *items_of(const json_t *object, const json_t *before, bool is_forgery)
{
	bool is_same_pod =
		str_eq(json_str_at(before, "uid"), json_str_at(object, "status", "current", "uid"));
	json_t *items = json_object(), *item;
	size_t i;

	json_array_foreach (json_at(object, "status", "current", "ips"), i, item) {
		auto_free char *text = item_text(item);
		const json_t *known = is_same_pod ? json_at(before, "items", text) : NULL;

		json_put_bool(items, text, known ? json_is_true(known) : is_forgery);
	}
	return items;
}

/* {address: UID} of what no tenant wrote. */
static json_t *claims_of(const json_t *items, const char *uid)
{
	json_t *claims = json_object(), *is_forgery;
	const char *text;

	json_each (items, text, is_forgery) {
		const char *address = strrchr(text, ' ') + 1;

		if (!json_is_true(is_forgery) && *address && uid)
			json_put_str(claims, address, uid);
	}
	return claims;
}

/* Whatever becomes of a pod whose endpoint its own namespace's users forge is their own doing. */
static void blame(struct history *history, const char *key)
{
	const char *uid;
	json_t *pod;

	json_each (history->pods, uid, pod) {
		if (!str_eq(json_str_at(pod, "key"), key))
			continue;
		if (!is_forged(pod))
			count(history, "forged");
		json_put_bool(pod, "forged", true);
	}
}

static void see_endpoint(struct history *history, const json_t *object, bool is_gone)
{
	auto_free char *key = json_key(object);
	auto_free char *source = str_printf("endpoint %s", key);
	json_auto_t *before = json_incref(json_object_get(history->endpoints, key));
	json_auto_t *old = json_incref(json_object_get(history->sources, source));
	const char *mark =
		json_str_or(json_at(object, "metadata", "annotations", HISTORY_FORGED), "");
	const char *uid = json_str_at(object, "status", "current", "uid"), *address;
	bool is_forgery = !is_gone && !str_eq(json_str_or(json_at(before, "mark"), ""), mark);
	json_auto_t *items = NULL, *claims = NULL;
	json_t *had;

	if (is_gone) {
		json_object_del(history->endpoints, key);
		set_source(history, source, NULL);
		return;
	}
	if (is_forgery)
		blame(history, key);
	items = items_of(object, before, is_forgery);
	claims = claims_of(items, uid);
	json_each (old, address, had)
		if (!is_forgery && !json_same(json_object_get(claims, address), had))
			check_taken(history, source, address, json_string_value(had));
	set_source(history, source, json_incref(claims));
	had = json_object();
	json_put_str(had, "uid", uid);
	json_put_str(had, "mark", mark);
	json_put(had, "items", json_incref(items));
	json_put(history->endpoints, key, had);
}

/* ---- reservations ---------------------------------------------------------------------------- */

static void see_reserved(struct history *history, const json_t *object, bool is_gone)
{
	const json_t *before = json_object_get(history->reserved, json_name(object));
	bool is_same = json_same(json_at(before, "ips"), json_at(object, "spec", "ips"));
	const json_t *conditions = json_at(object, "status", "conditions");
	const json_t *ready = json_find(conditions, "type", "Ready");
	int64_t judged = json_integer_value(json_at(ready, "observedGeneration"));
	int64_t known = is_same ? json_integer_value(json_at(before, "known")) : 0;
	json_t *now;

	if (is_gone) {
		json_object_del(history->reserved, json_name(object));
		return;
	}
	if (!known && judged == json_generation(object))
		known = (int64_t)history->revision;
	now = json_object();
	json_put(now, "ips", json_incref(json_at(object, "spec", "ips")));
	json_put_int(now, "known", known);
	json_put(history->reserved, json_name(object), now);
}

/* Another leader may have read less. */
static void see_lease(struct history *history, const json_t *object)
{
	const char *leader = json_str_or(json_at(object, "spec", "holderIdentity"), ""), *name;
	json_t *reserved;

	if (str_eq(history->leader, leader))
		return;
	mem_free(history->leader);
	history->leader = str_dup(leader);
	json_each (history->reserved, name, reserved)
		json_put_int(reserved, "known", 0);
}

/* ---- when all is quiet ----------------------------------------------------------------------- */

/* Does a ledger say, as the pod's endpoint does, that its NIC has an address? */
static bool nic_is_served(const struct history *history, const char *uid, const json_t *pod,
			  const char *nic)
{
	const json_t *endpoint = json_object_get(history->endpoints, json_str_at(pod, "key"));
	size_t len = strlen(nic);
	const char *text;
	json_t *is_forgery;

	if (!str_eq(json_str_at(endpoint, "uid"), uid))
		return false;
	json_each (json_at(endpoint, "items"), text, is_forgery) {
		const char *pool = text + len + 1, *address = strrchr(text, ' ') + 1;
		auto_free char *source = NULL;

		if (strncmp(text, nic, len) != 0 || text[len] != ' ')
			continue;
		source = str_printf("ledger %.*s", (int)strcspn(pool, " "), pool);
		if (str_eq(json_str_at(history->sources, source, address), uid))
			return true;
	}
	return false;
}

static void check_lost(struct history *history)
{
	const char *uid;
	json_t *pod;

	json_each (history->pods, uid, pod) {
		auto_free char *nics = str_dup(json_str_or(json_at(pod, "nics"), ""));
		char *rest = nics, *nic;

		if (!is_living(pod) || is_forged(pod) || !*nics)
			continue;
		while ((nic = strsep(&rest, ","))) {
			auto_free char *who = pod_text(history, uid);
			auto_free char *text =
				str_printf("lost: %s has no address for %s", who, nic);

			if (!nic_is_served(history, uid, pod, nic))
				tell(history, text, text);
		}
	}
}

static void check_leaked(struct history *history, bool is_empty)
{
	const char *source, *address;
	json_t *claims, *uid;

	json_each (history->sources, source, claims) {
		json_each (claims, address, uid) {
			const json_t *pod = pod_of(history, json_string_value(uid));
			auto_free char *who = pod_text(history, json_string_value(uid));
			auto_free char *text =
				str_printf("leaked: %s is still of %s by %s", address, who, source);

			/* Nobody speaks for what is left of a tenant's forgeries in its own
			 * namespace, but ledgers do not believe them. */
			if (is_living(pod) || (is_forged(pod) && !str_starts(source, "ledger ")))
				continue;
			if (is_empty || !json_is_true(json_at(pod, "keeps")))
				tell(history, text, text);
		}
	}
}

void history_settle(struct history *history, bool is_empty)
{
	check_lost(history);
	check_leaked(history, is_empty);
}

/* ---- events ---------------------------------------------------------------------------------- */

static void see_node_truth(struct history *history, const json_t *object, bool is_gone)
{
	const char *name = json_name(object);
	auto_free char *addresses = str_dup(json_str_or(json_at(object, "data", "addresses"), ""));
	auto_free char *source = NULL;
	char *rest = addresses, *address;
	json_t *claims = json_object();

	if (str_starts(name, "sandbox-")) {
		source = str_printf("sandbox %s", name + strlen("sandbox-"));
		while (!is_gone && (address = strsep(&rest, " ")))
			json_put_str(claims, address, name + strlen("sandbox-"));
		set_source(history, source, json_incref(claims));
	}
	json_decref(claims);
}

int history_add(struct history *history, const char *kind, const json_t *event, struct err *err)
{
	const json_t *object = json_at(event, "object");
	const char *type = json_str_or(json_at(event, "type"), "");
	bool is_gone = str_eq(type, "DELETED");
	uint64_t revision = kube_resource_version(object);

	if (!is_gone && !str_eq(type, "ADDED") && !str_eq(type, "MODIFIED"))
		return err_set(err, ERR_INVALID, "Gap",
			       "the watch of %s after revision %" PRIu64 " ended with %s: %s", kind,
			       history->revision, *type ? type : "a line that cannot be read",
			       json_str_or(json_at(object, "message"), ""));
	if (revision <= history->revision)
		return err_set(err, ERR_INVALID, "BadOrder",
			       "revision %" PRIu64 " of %s comes after %" PRIu64, revision, kind,
			       history->revision);
	history->revision = revision;
	count(history, "revisions");
	if (str_eq(kind, "pods"))
		see_pod(history, object, is_gone);
	else if (str_eq(kind, "spiderippools"))
		see_pool(history, object, is_gone);
	else if (str_eq(kind, "spiderendpoints"))
		see_endpoint(history, object, is_gone);
	else if (str_eq(kind, "spiderreservedips"))
		see_reserved(history, object, is_gone);
	else if (str_eq(kind, "configmaps"))
		see_node_truth(history, object, is_gone);
	else if (str_eq(kind, "leases"))
		see_lease(history, object);
	return 0;
}
