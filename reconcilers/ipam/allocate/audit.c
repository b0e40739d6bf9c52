// SPDX-License-Identifier: Apache-2.0
/*
 * Endpoints are compared with ledgers first, which collects who has which address; then each
 * ledger with endpoints and pods. The command line's "ipam" prints the findings, and has what can
 * be mended without a person planned.
 */
#include "reconcilers/ipam/allocate/audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/allocate/release.h"
#include "reconcilers/ipam/endpoint.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/ipam/pod_controller.h"

struct audit {
	const json_t *world;
	const struct ipam_settings *settings;
	json_t *findings;
	json_t *holders; /* "pool address": key of the endpoint that has it */
};

__attribute__((format(printf, 6, 7))) static void add_finding(struct audit *audit,
							      const char *reason, const char *pool,
							      const char *address, const char *pod,
							      const char *fmt, ...)
{
	json_t *finding = json_object();
	auto_free char *message = NULL;
	va_list ap;

	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	json_put_str(finding, "reason", reason);
	json_put_str(finding, "pool", pool);
	json_put_str(finding, "address", address);
	json_put_str(finding, "pod", pod);
	json_put_str(finding, "message", message);
	json_array_append_new(audit->findings, finding);
}

/* ---- endpoints ------------------------------------------------------------------------------- */

static void check_address(struct audit *audit, const char *key, const json_t *endpoint,
			  const char *pool, const char *with_length)
{
	const char *uid = json_str_or(json_at(endpoint, "status", "current", "uid"), "");
	const json_t *object = world_get(audit->world, KIND_IP_POOL, pool);
	/* "10.6.0.10" of "10.6.0.10/24". */
	auto_free char *address = str_ndup(with_length, strcspn(with_length, "/"));
	auto_free char *place = str_printf("%s %s", pool, address);
	const char *other = json_string_value(json_object_get(audit->holders, place));
	auto_ledger struct ledger ledger = {0};
	const json_t *record;

	if (other)
		add_finding(
			audit, "AddressTwice", pool, address, key,
			"pods %s and %s have it both: delete one of them, it gets another address",
			other, key);
	json_put_str(audit->holders, place, key);
	if (!object || ledger_open(object, NULL, NULL, &ledger, NULL) < 0)
		return;
	record = ledger_record(&ledger, address);
	if (!record)
		add_finding(
			audit, "EndpointWithoutRecord", pool, address, key,
			"the pod has it and the pool does not say so: it can be handed out again; "
			"restart the pod");
	else if (!str_eq(json_str_at(record, "podUid"), uid))
		add_finding(audit, "EndpointWithoutRecord", pool, address, key,
			    "the pod has it and the pool says that it is %s's: restart the pod",
			    json_str_or(json_at(record, "pod"), "?"));
}

/* A pod of a virtual machine has another name than its endpoint and its records. */
static const json_t *pod_of(const struct audit *audit, const char *key, const char *uid)
{
	const json_t *pod = world_get(audit->world, KIND_POD, key);
	const char *name;
	json_t *other;

	if (pod && str_eq(json_uid(pod), uid))
		return pod;
	json_each (world_kind(audit->world, KIND_POD), name, other)
		if (str_eq(json_uid(other), uid))
			return other;
	return pod;
}

/* An endpoint whose pod is gone and that no controller keeps: its addresses are not in use. */
static bool is_in_use(const struct audit *audit, const char *key, const json_t *endpoint)
{
	const char *uid = json_str_or(json_at(endpoint, "status", "current", "uid"), "");

	return !release_is_due(audit->world, key, uid, pod_of(audit, key, uid), endpoint, true,
			       audit->settings);
}

static void check_endpoints(struct audit *audit)
{
	static const char *const fields[][2] = {{"ipv4", "ipv4Pool"}, {"ipv6", "ipv6Pool"}};
	const char *key;
	json_t *endpoint, *item;
	size_t i;

	json_each (world_kind(audit->world, KIND_ENDPOINT), key, endpoint) {
		/* Its record is found. */
		if (endpoint_is_lost(endpoint, world_env(audit->world, "namespace")))
			continue;
		if (!is_in_use(audit, key, endpoint)) {
			add_finding(
				audit, "StaleEndpoint", NULL, NULL, key,
				"the pod with UID %s is gone and its SpiderEndpoint is still there",
				json_str_or(json_at(endpoint, "status", "current", "uid"), "?"));
			continue;
		}
		json_array_foreach (json_at(endpoint, "status", "current", "ips"), i, item) {
			for (size_t f = 0; f < ARRAY_LEN(fields); f++) {
				const char *address = json_str_at(item, fields[f][0]);
				const char *pool = json_str_at(item, fields[f][1]);

				if (address && pool)
					check_address(audit, key, endpoint, pool, address);
			}
		}
	}
}

/* ---- ledgers --------------------------------------------------------------------------------- */

static void check_record(struct audit *audit, const struct ledger *ledger, const char *address,
			 const json_t *record)
{
	const char *pool = json_name(ledger->pool);
	const char *key = json_str_or(json_at(record, "pod"), "");
	const char *uid = json_str_or(json_at(record, "podUid"), "");
	const json_t *endpoint = world_get(audit->world, KIND_ENDPOINT, key);
	auto_free char *place = str_printf("%s %s", pool, address);
	ip_number number;

	if (release_is_due(audit->world, key, uid, pod_of(audit, key, uid), endpoint, true,
			   audit->settings)) {
		add_finding(audit, "RecordWithoutPod", pool, address, key,
			    "the pod with UID %s is gone and the address is still kept for it",
			    uid);
		return;
	}
	if (!json_object_get(audit->holders, place))
		add_finding(
			audit, "RecordWithoutEndpoint", pool, address, key,
			"the pod's SpiderEndpoint does not have it: it is taken up when the pod's "
			"network is "
			"made next");
	if (ip_parse(address, ledger->family, &number, NULL) == 0 &&
	    !ip_set_has(&ledger->addresses.usable, number))
		add_finding(audit, "AddressOutsidePool", pool, address, key,
			    "spec.ips no longer has it: put it back until the pod is gone");
}

static void check_pool(struct audit *audit, const char *name)
{
	const json_t *pool = world_get(audit->world, KIND_IP_POOL, name);
	const json_t *count = json_at(pool, "status", "allocatedIPCount");
	auto_ledger struct ledger ledger = {0};
	auto_free const char **addresses = NULL;
	struct err err = {0};
	size_t n = 0;

	if (ledger_open(pool, world_kind(audit->world, KIND_RESERVED_IP),
			world_env(audit->world, "now"), &ledger, &err) < 0) {
		add_finding(audit, err.reason, name, NULL, NULL, "%s", err.text);
		return;
	}
	addresses = json_sorted_keys(ledger.records, &n);
	for (size_t i = 0; i < n; i++)
		check_record(audit, &ledger, addresses[i], ledger_record(&ledger, addresses[i]));
	if (json_is_integer(count) && json_integer_value(count) != (json_int_t)n)
		add_finding(audit, "WrongCount", name, NULL, NULL,
			    "status.allocatedIPCount is %" JSON_INTEGER_FORMAT
			    ", the pool has %zu records: it is put right with the next write",
			    json_integer_value(count), n);
}

json_t *ipam_audit(const json_t *world, const struct ipam_settings *settings)
{
	struct audit audit = {
		.world = world,
		.settings = settings,
		.findings = json_array(),
		.holders = json_object(),
	};
	auto_free const char **pools = NULL;
	size_t n = 0;

	check_endpoints(&audit);
	pools = json_sorted_keys(world_kind(world, KIND_IP_POOL), &n);
	for (size_t i = 0; i < n; i++)
		check_pool(&audit, pools[i]);
	json_decref(audit.holders);
	return audit.findings;
}

/* ---- repair ---------------------------------------------------------------------------------- */

/*
 * The world of a program that has not compared ledgers with what pods have: the number of records
 * that is missing, or wrong, is left to the leader, who has. Returns new.
 */
static json_t *without_leader(const json_t *world)
{
	const json_t *env = json_at(world, "env");
	json_t *copy = json_copy((json_t *)world);

	json_put(copy, "env", env ? json_copy((json_t *)env) : json_object());
	json_put_bool(json_need_object(copy, "env"), "withoutLeader", true);
	return copy;
}

void ipam_repair(const json_t *world, const struct ipam_settings *settings, struct plan *plan)
{
	json_auto_t *findings = ipam_audit(world, settings);
	json_auto_t *own = without_leader(world);
	auto_books struct books *books = books_new(own);
	auto_plan struct plan removals = {0};
	json_t *finding;
	size_t i;

	json_array_foreach (findings, i, finding) {
		const char *reason = json_str_at(finding, "reason"),
			   *pod = json_str_at(finding, "pod");
		const char *pool = json_str_at(finding, "pool"),
			   *address = json_str_at(finding, "address");
		const json_t *endpoint = pod ? world_get(world, KIND_ENDPOINT, pod) : NULL;
		struct ledger *ledger = pool ? books_open(books, pool, NULL) : NULL;

		if (str_eq(reason, "StaleEndpoint")) {
			if (ipam_give_back(books, pod, json_at(endpoint, "status"))) {
				/*
				 * Let the endpoint go: no finalizer of the API group holds it, then
				 * it is deleted.
				 */
				plan_release(&removals, KIND_ENDPOINT, pod, endpoint,
					     IP_POOL_FINALIZER);
				plan_delete(&removals, KIND_ENDPOINT, pod, json_uid(endpoint));
			}
		} else if (str_eq(reason, "RecordWithoutPod") && ledger) {
			const char *uid = json_str_at(ledger_record(ledger, address), "podUid");

			/* The endpoint may have given it back a moment ago. */
			if (uid)
				(void)ledger_release(ledger, address, NULL, uid, true);
		} else if (str_eq(reason, "WrongCount") && ledger) {
			ledger->has_changed = true;
		}
	}
	books_plan(books, plan);
	plan_join(plan, &removals);
}
