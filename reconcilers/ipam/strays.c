// SPDX-License-Identifier: Apache-2.0
/*
 * Records that nobody stands for. See the header.
 */
#include "reconcilers/ipam/strays.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/assign.h"
#include "reconcilers/ipam/controller.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ledger.h"
#include "reconcilers/ipam/lifecycle.h"

/* The pods that live, by UID: a virtual machine's has another name than its record. Returns new. */
static json_t *living_pods(const json_t *world)
{
	json_t *living = json_object(), *pod;
	const char *key;

	json_each (world_kind(world, KIND_POD), key, pod)
		if (pod_is_alive(pod))
			json_put(living, json_uid(pod), json_incref(pod));
	return living;
}

/* What other pools have found of the pod, and nobody has looked at yet. Returns new. */
static json_t *found_elsewhere(const json_t *world, const char *pod, const char *pool)
{
	json_t *list = json_array(), *stray;
	size_t i;

	json_array_foreach (world_get(world, BOX_STRAYS, pod), i, stray)
		if (!str_eq(json_str_at(stray, "pool"), pool))
			json_array_append(list, stray);
	return list;
}

/* Two living pods with one address: neither can be helped but by its end. */
static void report_twice(const json_t *living, const struct ledger *ledger, const json_t *pod,
			 const char *address, struct plan *plan)
{
	const json_t *record = ledger_record(ledger, address);
	const char *other = json_str_or(json_at(record, "podUid"), "");
	auto_free char *key = json_key(pod), *text = NULL;

	if (str_eq(other, json_uid(pod)) || !json_object_get(living, other))
		return;
	text = str_printf("address %s of pool %s is also that of pod %s: delete one of the two",
			  address, json_name(ledger->pool),
			  json_str_or(json_at(record, "pod"), "?"));
	plan_finding(plan, KIND_BOUND_POD, key, "AddressTwice", text);
}

/* A pod that has an address of which the ledger knows nothing waits for its record. */
static void find_unrecorded(const json_t *living, const struct ledger *ledger, const char *key,
			    const json_t *endpoint, struct plan *plan)
{
	const char *field = ledger->family == IP_V4 ? "ipv4" : "ipv6";
	const char *pool = ledger->family == IP_V4 ? "ipv4Pool" : "ipv6Pool";
	const json_t *pod = json_object_get(living, endpoint_uid(endpoint));
	auto_free char *waiting = pod ? json_key(pod) : NULL;
	json_t *item;
	size_t i;

	if (!pod)
		return;
	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
		const char *has = json_str_or(json_at(item, field), "");
		auto_free char *address = str_ndup(has, strcspn(has, "/"));
		auto_free char *text = NULL;

		if (!*address || !str_eq(json_str_at(item, pool), json_name(ledger->pool)))
			continue;
		if (ledger_record(ledger, address)) {
			report_twice(living, ledger, pod, address, plan);
			continue;
		}
		text = str_printf("%s of pod %s had no record: it is made again", address, key);
		plan_event(plan, KIND_IP_POOL, json_name(ledger->pool), true,
			   "EndpointWithoutRecord", text);
		plan_post(plan, BOX_WAITING, waiting, json_true());
	}
}

int strays_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *pool = world_get(world, KIND_IP_POOL, key);
	auto_ledger struct ledger ledger = {0};
	json_auto_t *strays = json_object(), *living = living_pods(world);
	const char *address, *pod;
	json_t *record, *list;

	if (!pool || ledger_open(pool, NULL, NULL, &ledger, NULL) < 0)
		return 0;
	json_each (ledger.records, address, record) {
		const char *uid = json_str_or(json_at(record, "podUid"), "");
		json_t *stray;

		pod = json_str_or(json_at(record, "pod"), "");
		/* A pod that lives takes its record up by itself. */
		if (!strchr(pod, '/') || json_object_get(living, uid) ||
		    endpoint_has(world_get(world, KIND_ENDPOINT, pod), uid, key, address))
			continue;
		list = json_object_get(strays, pod);
		if (!list) {
			list = found_elsewhere(world, pod, key);
			json_put(strays, pod, list);
		}
		stray = json_pack("{s:s, s:s, s:s}", "pool", key, "address", address, "uid", uid);
		json_put_str(stray, "node", json_str_at(record, "node"));
		json_array_append_new(list, stray);
	}
	json_each (strays, pod, list)
		plan_post(plan, BOX_STRAYS, pod, json_incref(list));
	json_each (world_kind(world, KIND_ENDPOINT), pod, record)
		find_unrecorded(living, &ledger, pod, record, plan);
	if (!str_eq(json_string_value(world_get(world, BOX_LEARNED, key)), json_uid(pool)))
		plan_post(plan, BOX_LEARNED, key, json_string(json_uid(pool)));
	if (json_object_size(ledger.records))
		plan_requeue(plan, STRAYS_AGAIN_MS);
	return 0;
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

void strays_visit(const json_t *pool, void (*visit)(void *arg, const char *key), void *arg)
{
	const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), "");
	json_auto_t *records = json_parse(text, strlen(text), NULL);
	const char *address;
	json_t *record;

	json_each (records, address, record)
		if (json_str_at(record, "pod"))
			visit(arg, json_str_at(record, "pod"));
}
