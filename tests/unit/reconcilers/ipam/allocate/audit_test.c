// SPDX-License-Identifier: Apache-2.0
/* What the audit finds, and what a repair leaves. */
#include "tests/support/test.h"

#include "cli/explain/pool_usage.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/allocate/audit.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/ledger.h"
#include "tests/support/yaml.h"

static const struct ipam_settings settings = {
	.ipv4 = true,
	.ipv6 = true,
	.keeps_stateful_sets = true,
	.ns = "spiderpool",
};

/* Pods ml/a (u-a) and ml/b (u-b), pool p of .1 to .4. */
#define PODS                                                                                       \
	"pods:\n"                                                                                  \
	"  ml/a: {metadata: {name: a, namespace: ml, uid: u-a}}\n"                                 \
	"  ml/b: {metadata: {name: b, namespace: ml, uid: u-b}}\n"
#define POOL(records_, count_)                                                                     \
	"spiderippools:\n"                                                                         \
	"  p:\n"                                                                                   \
	"    metadata: {name: p}\n"                                                                \
	"    spec: {ipVersion: 4, subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.4]}\n"                \
	"    status: {allocatedIPs: '" records_ "', allocatedIPCount: " #count_ "}\n"
#define ENDPOINT(name_, uid_, type_, ip_)                                                          \
	"  ml/" name_ ":\n"                                                                        \
	"    metadata: {name: " name_ ", namespace: ml, uid: e-" name_                             \
	", finalizers: [spiderpool.spidernet.io]}\n"                                               \
	"    status:\n"                                                                            \
	"      ownerControllerType: " type_ "\n"                                                   \
	"      ownerControllerName: x\n"                                                           \
	"      current: {uid: " uid_ ", node: n, ips: [{interface: net1, ipv4: " ip_               \
	"/24, ipv4Pool: p}]}\n"
#define RECORD(ip_, pod_, uid_) "\"" ip_ "\": {\"pod\": \"ml/" pod_ "\", \"podUid\": \"" uid_ "\"}"

static const struct {
	const char *world, *findings; /* "Reason address pod;" of each */
} cases[] = {
	{PODS POOL("{" RECORD("10.0.0.1", "a", "u-a") "}",
		   1) "spiderendpoints:\n" ENDPOINT("a", "u-a", "Pod", "10.0.0.1"),
	 ""},
	{PODS POOL("{" RECORD("10.0.0.1", "gone", "u-x") "}", 1),
	 "RecordWithoutPod 10.0.0.1 ml/gone;"},
	{PODS POOL("{" RECORD("10.0.0.1", "a", "u-before") "}", 1),
	 "RecordWithoutPod 10.0.0.1 ml/a;"},
	{PODS POOL("{" RECORD("10.0.0.1", "a", "u-a") "}", 1),
	 "RecordWithoutEndpoint 10.0.0.1 ml/a;"},
	{PODS POOL("{}", 0) "spiderendpoints:\n" ENDPOINT("a", "u-a", "Pod", "10.0.0.1"),
	 "EndpointWithoutRecord 10.0.0.1 ml/a;"},
	{PODS POOL("{" RECORD("10.0.0.1", "b", "u-b") "}", 1) "spiderendpoints:\n" ENDPOINT(
		 "a", "u-a", "Pod", "10.0.0.1") ENDPOINT("b", "u-b", "Pod", "10.0.0.1"),
	 "EndpointWithoutRecord 10.0.0.1 ml/a;AddressTwice 10.0.0.1 ml/b;"},
	{PODS POOL("{" RECORD("10.0.0.9", "a", "u-a") "}",
		   1) "spiderendpoints:\n" ENDPOINT("a", "u-a", "Pod", "10.0.0.9"),
	 "AddressOutsidePool 10.0.0.9 ml/a;"},
	{PODS POOL("{" RECORD("10.0.0.1", "a", "u-a") "}",
		   7) "spiderendpoints:\n" ENDPOINT("a", "u-a", "Pod", "10.0.0.1"),
	 "WrongCount - -;"},
	{PODS POOL("{", 0), "BadAllocationRecord - -;"},
	{PODS POOL("{}", 0) "spiderendpoints:\n" ENDPOINT("gone", "u-x", "Pod", "10.0.0.1"),
	 "StaleEndpoint - ml/gone;"},
	/* The set has a place for web-0 and none for web-1. */
	{"statefulsets: {ml/web: {metadata: {name: web, namespace: ml}, spec: {replicas: "
	 "1}}}\n" POOL(
		 "{" RECORD("10.0.0.1", "web-0", "u-0") ", " RECORD("10.0.0.2", "web-1", "u-1") "}",
		 2) "spiderendpoints:\n" ENDPOINT("web-0", "u-0", "StatefulSet", "10.0.0.1")
		 ENDPOINT("web-1", "u-1", "StatefulSet", "10.0.0.2"),
	 "StaleEndpoint - ml/web-1;RecordWithoutPod 10.0.0.2 ml/web-1;"},
};

static char *found(const json_t *world)
{
	json_auto_t *findings = ipam_audit(world, &settings);
	auto_strbuf struct strbuf text = {0};
	json_t *finding;
	size_t i;

	json_array_foreach (findings, i, finding) {
		assert_non_null(json_str_at(finding, "message"));
		strbuf_addf(&text, "%s %s %s;", json_str_at(finding, "reason"),
			    json_str_or(json_at(finding, "address"), "-"),
			    json_str_or(json_at(finding, "pod"), "-"));
	}
	return strbuf_take(&text);
}

TEST(finds_what_does_not_agree)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *world = yaml(cases[i].world);
		auto_free char *got = found(world);

		assert_string_equal(got, cases[i].findings);
	}
}

/* In the pool's conditions, in `ipam show` and in `ipam check`. */
TEST(one_fault_has_one_reason)
{
	static const struct {
		const char *spec, *rest, *reason;
	} faults[] = {
		{"ips: [10.0.0.1]", "", "NoSubnet"},
		{"subnet: 10.0.0.0/33", "", "BadSubnet"},
		{"subnet: 10.0.0.0/24, ips: [10.0.0.1], excludeIPs: [x]", "", "BadRange"},
		{"subnet: 10.0.0.0/24, ips: [10.0.0.1], excludeIPs: [7]", "", "BadField"},
		{"subnet: 10.0.0.0/24, ips: [10.0.0.1]", "status: {allocatedIPs: '{'}",
		 "BadAllocationRecord"},
		{"subnet: 10.0.0.0/24, ips: [10.0.0.1]",
		 "}}, spiderreservedips: {r: {spec: {ipVersion: 4, ips: [10.0.0.300]}",
		 "BadReservedIP"},
	};

	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		auto_free char *text =
			str_printf("{env: {now: '2026-01-31T10:00:00Z'}, spiderippools: {p: "
				   "{metadata: {name: p}, spec: {%s}, %s}}}",
				   faults[i].spec, faults[i].rest);
		json_auto_t *world = yaml(text);
		json_auto_t *findings = ipam_audit(world, &settings);
		json_auto_t *usage = pool_usage(world, world_get(world, KIND_IP_POOL, "p"));
		auto_plan struct plan plan = {0};
		const json_t *status, *ready;

		assert_int_equal(ip_pool_reconcile(world, "p", &plan, NULL), 0);
		status = json_find(plan.ops, "op", "status");
		ready = condition_find(json_at(status, "status", "conditions"), "Ready");
		assert_string_equal(json_str_at(ready, "status"), "False");
		assert_string_equal(json_str_at(ready, "reason"), faults[i].reason);
		assert_string_equal(json_str_at(usage, "ready"), faults[i].reason);
		assert_int_equal(json_array_size(findings), 1);
		assert_string_equal(json_str_at(json_array_get(findings, 0), "reason"),
				    faults[i].reason);
	}
}

static void carry_out(json_t *world, const struct plan *plan)
{
	json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		json_t *objects = json_object_get(world, json_str_at(op, "kind"));

		if (str_eq(json_str_at(op, "op"), "status"))
			json_put(json_object_get(objects, json_str_at(op, "key")), "status",
				 json_incref(json_at(op, "status")));
		else if (str_eq(json_str_at(op, "op"), "delete"))
			json_object_del(objects, json_str_at(op, "key"));
	}
}

TEST(a_repair_leaves_what_needs_a_person)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *world = yaml(cases[i].world);
		auto_plan struct plan plan = {0}, again = {0};
		auto_free char *before = found(world), *after = NULL;

		ipam_repair(world, &settings, &plan);
		carry_out(world, &plan);
		after = found(world);
		assert_null(strstr(after, "RecordWithoutPod"));
		assert_null(strstr(after, "StaleEndpoint"));
		assert_null(strstr(after, "WrongCount"));
		assert_int_equal(strstr(before, "AddressTwice") != NULL,
				 strstr(after, "AddressTwice") != NULL);
		ipam_repair(world, &settings, &again);
		assert_true(plan_is_empty(&again));
	}
}

/*
 * Or agents without a leader give what living pods have: the number tells them
 * that all is known.
 */
TEST(a_repair_does_not_vouch_for_a_ledger_that_has_lost_records)
{
	json_auto_t *world = yaml(
		PODS POOL("{}", 7) "spiderendpoints:\n" ENDPOINT("a", "u-a", "Pod", "10.0.0.1"));
	auto_plan struct plan plan = {0};

	ipam_repair(world, &settings, &plan);
	carry_out(world, &plan);
	assert_false(ledger_is_counted(world_get(world, KIND_IP_POOL, "p")));
}

TEST(a_repair_takes_nothing_from_a_pod_that_is_there)
{
	json_auto_t *world = yaml(cases[0].world);
	auto_plan struct plan plan = {0};

	ipam_repair(world, &settings, &plan);
	assert_true(plan_is_empty(&plan));
}
