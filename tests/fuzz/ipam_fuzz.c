// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses from any cluster: no crash; the world stays as it is; the same world gives the same
 * answer; a failure takes nothing; nobody loses a record, no address is handed out twice, and none
 * that is excluded; asking again changes nothing; the audit of what was given finds nothing about
 * it.
 *
 * Input: {"world": {…}, "pod": KEY, "asks": […]}.
 */

#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/audit.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/foresight.h"
#include "reconcilers/ipam/pod_controller.h"
#include "tests/fuzz/reconcile_fuzz.h"

static const struct ipam_settings settings = {
	.ipv4 = true,
	.ipv6 = true,
	.keeps_stateful_sets = true,
	.keeps_virtual_machines = true,
	.ns = "spiderpool",
	.cluster_network = "spiderpool/default",
};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* { "pool address": uid } of all records that can be read. */
static json_t *records_of(const json_t *world)
{
	json_t *all = json_object(), *pool, *record;
	const char *name, *address;

	json_each (world_kind(world, KIND_IP_POOL), name, pool) {
		auto_ledger struct ledger ledger = {0};

		if (ledger_open(pool, NULL, NULL, &ledger, NULL) < 0)
			continue;
		json_each (ledger.records, address, record) {
			auto_free char *key = str_printf("%s %s", name, address);

			json_put_str(all, key, json_str_or(json_at(record, "podUid"), ""));
		}
	}
	return all;
}

static json_t *carried_out(const json_t *world, const struct books *books)
{
	json_t *after = json_deep_copy(world), *op;
	auto_plan struct plan plan = {0};
	size_t i;

	books_plan(books, &plan);
	json_array_foreach (plan.ops, i, op)
		json_put(json_object_get(json_object_get(after, KIND_IP_POOL),
					 json_str_at(op, "key")),
			 "status", json_incref(json_at(op, "status")));
	return after;
}

/*
 * Records of others stay; a pod that keeps its addresses may take over those of its own name. Its
 * own may go: somebody else has the address.
 */
static void check_others(const json_t *before, const json_t *after, const char *uid, bool keeps)
{
	const char *key;
	json_t *had;

	json_each (before, key, had) {
		const char *now = json_string_value(json_object_get(after, key));

		fuzz_check(keeps || str_eq(now, json_string_value(had)) ||
				   str_eq(uid, json_string_value(had)),
			   "a record is nobody else's to change");
		fuzz_check(!now || str_eq(now, json_string_value(had)) || str_eq(now, uid),
			   "a record changes to the pod's only");
	}
}

static void check_given(const json_t *world, const json_t *status, const json_t *before, bool keeps)
{
	const char *uid = json_str_at(status, "current", "uid");
	json_auto_t *records = records_of(world);

	check_others(before, records, uid, keeps);
}

static void allocate(const json_t *world, const json_t *pod, const json_t *asks)
{
	auto_books struct books *books = books_new(world), *again = NULL;
	auto_free char *key =
		str_printf("%s/%s", json_namespace(pod), pod_endpoint_name(pod, &settings));
	const json_t *endpoint = world_get(world, KIND_ENDPOINT, key);
	json_auto_t *before = records_of(world), *status = NULL, *second = NULL, *after = NULL;
	bool keeps = pod_keeps_addresses(pod, &settings);
	struct err err = {0};
	json_t *ask;
	size_t i;

	if (ipam_allocate(books, pod, endpoint, asks, &settings, &status, &err) < 0) {
		json_auto_t *same = NULL;

		fuzz_check(*err.reason && *err.text && !status,
			   "a failure says why and gives nothing");
		after = carried_out(world, books);
		same = records_of(after);
		fuzz_check(json_same(before, same), "a failure takes nothing");
		return;
	}
	after = carried_out(world, books);
	check_given(after, status, before, keeps);
	json_array_foreach (asks, i, ask) {
		json_auto_t *result = ipam_cni_result(status, json_str_at(ask, "nic"), "0.3.1");

		fuzz_check(endpoint_item(status, json_str_at(ask, "nic")) != NULL,
			   "each NIC has its item");
		fuzz_check(json_is_array(json_at(result, "ips")), "a result has addresses");
	}
	json_put(json_need_object(after, KIND_ENDPOINT), key, json_pack("{s:O}", "status", status));
	again = books_new(after);
	fuzz_check(ipam_allocate(again, pod, world_get(after, KIND_ENDPOINT, key), asks, &settings,
				 &second, &err) == 0 &&
			   json_same(status, second),
		   "asking again changes nothing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *world = fuzz_world(json_at(input, "world"));
	json_auto_t *before = json_deep_copy(world), *asks = NULL, *unknown = NULL,
		    *findings = NULL;
	const json_t *pod = world_get(world, KIND_POD, json_str_or(json_at(input, "pod"), ""));
	json_t *ask;
	size_t i;

	findings = ipam_audit(world, &settings);
	fuzz_check(json_is_array(findings), "the audit answers");
	if (!pod || !json_uid(pod)[0])
		return 0;
	asks = foresee(world, pod, &settings, &unknown, NULL);
	if (asks)
		allocate(world, pod, asks);
	json_decref(asks);
	asks = json_array();
	json_array_foreach (json_at(input, "asks"), i, ask)
		if (json_str_at(ask, "nic") && *json_str_at(ask, "nic"))
			json_array_append(asks, ask);
	allocate(world, pod, asks);
	fuzz_check(json_same(world, before), "the world stays as it is");
	return 0;
}
