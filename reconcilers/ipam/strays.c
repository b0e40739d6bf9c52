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

/* A pod that lives takes its record up by itself. */
static bool is_accounted_for(const json_t *world, const char *key, const char *uid,
			     const char *pool, const char *address)
{
	const json_t *pod = world_get(world, KIND_POD, key);

	if (pod && str_eq(json_uid(pod), uid) && pod_is_alive(pod))
		return true;
	return endpoint_has(world_get(world, KIND_ENDPOINT, key), uid, pool, address);
}

/* A pod that has an address of which the ledger knows nothing waits for its record. */
static void find_unrecorded(const json_t *world, const struct ledger *ledger, const char *key,
			    const json_t *endpoint, struct plan *plan)
{
	const char *field = ledger->family == IP_V4 ? "ipv4" : "ipv6";
	const char *pool = ledger->family == IP_V4 ? "ipv4Pool" : "ipv6Pool";
	const json_t *pod = world_get(world, KIND_POD, key);
	json_t *item;
	size_t i;

	if (!pod_is_alive(pod) || !str_eq(json_uid(pod), endpoint_uid(endpoint)))
		return;
	json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
		const char *has = json_str_or(json_at(item, field), "");
		auto_free char *address = str_ndup(has, strcspn(has, "/"));
		auto_free char *text = NULL;

		if (!*address || !str_eq(json_str_at(item, pool), json_name(ledger->pool)) ||
		    ledger_record(ledger, address))
			continue;
		text = str_printf("%s of pod %s had no record: it is made again", address, key);
		plan_event(plan, KIND_IP_POOL, json_name(ledger->pool), true,
			   "EndpointWithoutRecord", text);
		plan_post(plan, BOX_WAITING, key, json_true());
	}
}

int strays_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *pool = world_get(world, KIND_IP_POOL, key);
	auto_ledger struct ledger ledger = {0};
	json_auto_t *strays = json_object();
	const char *address, *pod;
	json_t *record, *list;

	if (!pool || ledger_open(pool, NULL, &ledger, NULL) < 0)
		return 0;
	json_each (ledger.records, address, record) {
		const char *uid = json_str_or(json_at(record, "podUid"), "");
		json_t *stray;

		pod = json_str_or(json_at(record, "pod"), "");
		if (!strchr(pod, '/') || is_accounted_for(world, pod, uid, key, address))
			continue;
		list = json_object_get(strays, pod);
		if (!list) {
			list = json_array();
			json_put(strays, pod, list);
		}
		stray = json_pack("{s:s, s:s, s:s}", "pool", key, "address", address, "uid", uid);
		json_put_str(stray, "node", json_str_at(record, "node"));
		json_array_append_new(list, stray);
	}
	json_each (strays, pod, list)
		plan_post(plan, BOX_STRAYS, pod, json_incref(list));
	json_each (world_kind(world, KIND_ENDPOINT), pod, record)
		find_unrecorded(world, &ledger, pod, record, plan);
	if (json_object_size(ledger.records))
		plan_requeue(plan, STRAYS_AGAIN_MS);
	return 0;
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
