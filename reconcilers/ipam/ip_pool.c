// SPDX-License-Identifier: Apache-2.0
/* SpiderIPPool → status; see ip_pool.h. What a pool may say is in ip_pool_check.c. */
#include "reconcilers/ipam/ip_pool.h"

#include <string.h>

#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/ip_memory.h"
#include "reconcilers/ipam/reserved_ip.h"

/* In the message of PoolExhausted; a time follows. */
#define WAITED_SINCE "since "

/* What status.allocatedIPs records: { "10.6.0.11": { "pod": "ml/train-0", … } }. */
struct allocation {
	json_t *records; /* NULL when there are none */
	bool is_unreadable;
};

static struct allocation allocation_read(const json_t *pool)
{
	const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), "");
	struct allocation allocation = {0};

	if (!*text)
		return allocation;
	allocation.records = json_parse(text, strlen(text), NULL);
	allocation.is_unreadable = !json_is_object(allocation.records);
	if (allocation.is_unreadable || json_object_size(allocation.records) == 0) {
		json_decref(allocation.records);
		allocation.records = NULL;
	}
	return allocation;
}

static void allocation_done(struct allocation *allocation)
{
	json_decref(allocation->records);
}

static bool allocation_is_empty(const struct allocation *allocation)
{
	return !allocation->records && !allocation->is_unreadable;
}

/*
 * The smallest address in text order and its pod: an example that does not change with the order of
 * keys.
 */
static char *allocation_example(const struct allocation *allocation)
{
	const char *address, *first = NULL;
	json_t *record;

	json_each (allocation->records, address, record)
		if (!first || strcmp(address, first) < 0)
			first = address;
	if (!first)
		return str_dup("status.allocatedIPs cannot be read");
	return str_printf("%s of pod %s", first,
			  json_str_or(json_at(allocation->records, first, "pod"), "?"));
}

static void warn_of_lost_addresses(const struct allocation *allocation, const struct ip_pool *pool,
				   struct problems *warnings)
{
	size_t outside = 0;
	const char *address, *first = NULL;
	json_t *record;

	if (pool->subnet.family == 0)
		return; /* no readable subnet: that is trouble enough */
	json_each (allocation->records, address, record) {
		ip_number number;

		if (ip_parse(address, pool->subnet.family, &number, NULL) == 0 &&
		    ip_set_has(&pool->usable, number))
			continue;
		outside++;
		if (!first || strcmp(address, first) < 0)
			first = address;
	}
	if (outside)
		problem_add(
			warnings, "InUseOutside", "spec.ips",
			"no longer has %zu of the addresses in use, the first is %s of pod %s: put "
			"them back until these pods are gone",
			outside, first,
			json_str_or(json_at(allocation->records, first, "pod"), "?"));
}

/* How many of the pool's addresses are not in the set, which is settled here. */
static int64_t count_without(const struct ip_pool *pool, struct ip_set *set)
{
	auto_ip_set struct ip_set left = {0};

	ip_set_settle(set);
	for (size_t i = 0; i < pool->usable.len; i++)
		ip_set_add(&left, pool->usable.items[i]);
	ip_set_subtract(&left, set);
	return ip_set_count(&left);
}

static void add_all(struct ip_set *set, const struct ip_set *more)
{
	for (size_t i = 0; i < more->len; i++)
		ip_set_add(set, more->items[i]);
}

/* How many of the pool's addresses no pod keeps or has. */
static int64_t count_free(const struct ip_pool *pool, const struct ip_set *reserved,
			  const struct ip_conflicts *conflicts, const struct allocation *allocation)
{
	auto_ip_set struct ip_set taken = {0};
	const char *address;
	json_t *record;

	/* Nothing is handed out of a ledger that cannot be read. */
	if (pool->usable.len == 0 || allocation->is_unreadable)
		return 0;
	add_all(&taken, reserved);
	add_all(&taken, &conflicts->set);
	json_each (allocation->records, address, record) {
		struct ip_range range;

		if (ip_range_parse(address, pool->subnet.family, &range, NULL) == 0)
			ip_set_add(&taken, range);
	}
	return count_without(pool, &taken);
}

/* Addresses whose conflict is over rest, before a pod gets them. */
static void rest_over(const struct ip_conflicts *conflicts, const struct allocation *allocation,
		      json_t *status)
{
	json_t *list, *address;
	size_t i;

	if (json_array_size(conflicts->over) == 0)
		return;
	list = json_copy(json_at(status, "releasedIPs"));
	if (!json_is_array(list)) {
		json_decref(list);
		list = json_array();
	}
	json_array_foreach (conflicts->over, i, address)
		if (!json_object_get(allocation->records, json_string_value(address)) &&
		    !json_list_has(list, json_string_value(address)))
			ip_rest(list, json_string_value(address));
	json_put(status, "releasedIPs", list);
}

/* Bytes of the text within a JSON string. */
static size_t escaped_len(const char *text)
{
	size_t len = 0;

	for (; *text; text++)
		len += *text == '"' || *text == '\\' ? 2 : 1;
	return len;
}

size_t ip_pool_ledger_room(const json_t *object)
{
	const json_t *spec = json_at(object, "spec");
	size_t rest = LIMIT_POOL_REST_BYTES;

	/* A second time in kubectl's annotation of what was applied, there with backslashes. */
	if (spec)
		rest += json_dumpb(spec, NULL, 0, JSON_COMPACT) * 5 / 2;
	return rest < LIMIT_POOL_BYTES ? LIMIT_POOL_BYTES - rest : 0;
}

/* Without numbers that change with each pod. True when no record has room. */
static bool warn_of_size(const json_t *pool, struct problems *warnings)
{
	const char *text = json_str_or(json_at(pool, "status", "allocatedIPs"), "");
	const char *nodes = json_str_or(json_at(pool, "status", "allocatedNodes"), "");
	size_t bytes = escaped_len(text) + strlen(nodes), room = ip_pool_ledger_room(pool);
	bool is_full = bytes + LIMIT_RECORD_BYTES > room;

	if (is_full)
		problem_add(warnings, "LedgerFull", "status.allocatedIPs",
			    "has no room for another record (%zu bytes): no new pod gets an "
			    "address here, add another pool and name it beside this one",
			    room);
	else if (bytes >= room / 5 * 4)
		problem_add(warnings, "LedgerFilling", "status.allocatedIPs",
			    "has 80 %% of the %zu bytes that its records can have: add another "
			    "pool and name it beside this one",
			    room);
	return is_full;
}

static void warn_of_conflicts(const struct ip_conflicts *conflicts, struct problems *warnings)
{
	size_t n = json_array_size(conflicts->entries);
	const json_t *last = n ? json_array_get(conflicts->entries, n - 1) : NULL;
	auto_free char *more = n > 1 ? str_printf(", and %zu more", n - 1) : str_dup("");

	if (last)
		problem_add(warnings, "AddressConflict", "spec.ips",
			    "somebody else on the network has %s: %s, seen from node %s%s "
			    "(status.conflictIPs); stop who has it or name it in spec.excludeIPs: "
			    "no pod gets it meanwhile",
			    json_str_at(last, "ip"), json_str_or(json_at(last, "mac"), "?"),
			    json_str_or(json_at(last, "node"), "?"), more);
}

const char *ip_pool_waits_longest(const json_t *since)
{
	const char *uid, *longest = NULL;
	json_t *time;

	json_each (since, uid, time)
		if (!longest ||
		    strcmp(json_str_or(time, ""), json_str_or(json_at(since, longest), "")) < 0)
			longest = uid;
	return longest;
}

bool ip_pool_waiting_is_unknown(const json_t *world)
{
	return json_is_true(json_at(world, "env", "waitingUnknown"));
}

static bool says_exhausted(const json_t *status)
{
	const json_t *degraded = condition_find(json_at(status, "conditions"), "Degraded");

	return str_eq(json_str_at(degraded, "reason"), "PoolExhausted");
}

bool ip_pool_says_waiting(const json_t *pool)
{
	const json_t *status = json_at(pool, "status");

	return json_at(status, "waitingPodCount") || says_exhausted(status);
}

static void warn_exhausted(struct problems *warnings, const char *since)
{
	problem_add(warnings, "PoolExhausted", "spec.ips",
		    "no address is free, and pods have waited for one " WAITED_SINCE
		    "%s (status.waitingPodCount): add addresses, or delete pods that have some",
		    since);
}

/* Warn of a pod that has waited for long; ret_again_ms: when one will have, if that is to come. */
static void warn_of_waiting(const json_t *world, const json_t *waiting, const json_t *old,
			    struct problems *warnings, int64_t *ret_again_ms)
{
	const json_t *waits = json_at(waiting, "since");
	const char *longest = ip_pool_waits_longest(waits);
	const char *since = longest ? json_str_at(waits, longest) : NULL;
	int64_t since_us, now_us, left_us;

	if (!waiting && ip_pool_waiting_is_unknown(world)) {
		const json_t *degraded = condition_find(json_at(old, "conditions"), "Degraded");
		const char *said =
			strstr(json_str_or(json_at(degraded, "message"), ""), WAITED_SINCE);
		const char *from = said ? said + strlen(WAITED_SINCE) : "";
		auto_free char *began = str_ndup(from, strcspn(from, " "));
		int64_t us;

		/* Before anybody has looked at pods, what was said of them stays, word for word. */
		if (says_exhausted(old))
			warn_exhausted(
				warnings,
				rfc3339_read(began, &us)
					? began
					: json_str_or(json_at(degraded, "lastTransitionTime"),
						      "?"));
		return;
	}
	if (!since || !rfc3339_read(since, &since_us) ||
	    !rfc3339_read(world_env(world, "now"), &now_us))
		return;
	left_us = since_us + IP_POOL_PATIENCE_S * INT64_C(1000000) - now_us;
	if (left_us > 0 && !says_exhausted(old))
		*ret_again_ms = left_us / 1000 + 1;
	else
		warn_exhausted(warnings, since);
}

struct verdict {
	enum condition_status status;
	const char *reason;
	char *message;
};

static void verdict_done(struct verdict *verdict)
{
	free(verdict->message);
}

/* "245", or of a number that nobody reads "about 2^64". Addresses are counted up to 2^63 - 1. */
static char *count_text(int64_t count)
{
	const int64_t readable = 1000000000;
	int exponent = 0;

	if (count < readable)
		return str_printf("%lld", (long long)count);
	if (count == INT64_MAX)
		return str_dup("2^63 or more");
	while (count >> (exponent + 1))
		exponent++;
	return str_printf("about 2^%d", exponent);
}

/* How many addresses a pool has. */
struct counts {
	int64_t total;
	int64_t reserved; /* by SpiderReservedIPs */
	int64_t withheld; /* ip_pool_withhold() */
	int64_t nodes;    /* ip_pool_add_nodes() */
	int64_t left;     /* none of them */
};

/* ", 1 of them kept back by SpiderReservedIPs, 2 never allocated (…)"; "" where all can be. */
static char *kept_text(const struct counts *counts)
{
	auto_free char *reserved = count_text(counts->reserved);
	auto_strbuf struct strbuf text = {0};

	if (counts->reserved)
		strbuf_addf(&text, ", %s of them kept back by SpiderReservedIPs", reserved);
	if (counts->withheld)
		strbuf_addf(&text,
			    ", %lld of them never allocated (the gateway, or the subnet's first or "
			    "last address)",
			    (long long)counts->withheld);
	if (counts->nodes)
		strbuf_addf(&text, ", %lld of them never allocated, as nodes have them",
			    (long long)counts->nodes);
	return strbuf_take(&text);
}

/* unread: of a SpiderReservedIP that cannot be read; nothing is handed out beside it. */
static struct verdict judge_pool(const json_t *pool, const struct counts *counts,
				 const struct err *unread, const struct allocation *allocation,
				 const struct problems *problems)
{
	struct verdict v = {.status = CONDITION_FALSE};
	auto_free char *total_text = count_text(counts->total);
	auto_free char *kept = kept_text(counts);

	if (object_is_terminating(pool)) {
		auto_free char *example = allocation_example(allocation);

		v.reason = "Terminating";
		v.message = str_printf("goes when the addresses in use, now %zu, are released (%s)",
				       json_object_size(allocation->records), example);
	} else if (problems->total) {
		v.reason = problems_reason(problems);
		v.message = problems_text(problems);
	} else if (allocation->is_unreadable) {
		v.reason = "BadAllocationRecord";
		v.message = str_dup("status.allocatedIPs: is not a JSON object: which addresses "
				    "are in use is unknown, so none is given out");
	} else if (unread->class != ERR_NONE) {
		v.reason = unread->reason;
		v.message = str_dup(unread->text);
	} else if (json_is_true(json_at(pool, "spec", "disable"))) {
		v.status = CONDITION_TRUE;
		v.reason = "Disabled";
		v.message = str_printf("%s addresses, given to no new pod: spec.disable is true",
				       total_text);
	} else if (counts->total == 0) {
		v.reason = "NoAddresses";
		v.message = str_dup(json_array_size(json_at(pool, "spec", "ips"))
					    ? "spec.excludeIPs takes all of spec.ips, no pod can "
					      "get an address: exclude less"
					    : "spec.ips: empty, no pod can get an address: add "
					      "addresses or ranges of spec.subnet");
	} else if (counts->left == 0) {
		v.reason = "AllReserved";
		v.message = str_printf("spec.ips: no pod can get one of the %s address%s%s: add "
				       "addresses",
				       total_text, counts->total == 1 ? "" : "es", kept);
	} else {
		v.status = CONDITION_TRUE;
		v.reason = "Usable";
		v.message = str_printf("%s address%s%s", total_text, counts->total == 1 ? "" : "es",
				       kept);
	}
	return v;
}

static void plan_conditions(const json_t *world, const char *key, const json_t *pool,
			    const struct verdict *ready, const struct problems *warnings,
			    json_t *status, struct plan *plan)
{
	const json_t *previous = json_at(pool, "status", "conditions");
	const char *now = world_env(world, "now");
	int64_t generation = json_generation(pool);
	json_t *repaired = json_find(previous, "type", IP_POOL_REPAIRED);
	json_t *list = json_array();

	conditions_judge(list, previous,
			 &(struct judgement){.ready = ready->status,
					     .waits = str_eq(ready->reason, "Terminating"),
					     .reason = ready->reason,
					     .message = ready->message,
					     .warnings = warnings},
			 generation, now);
	if (repaired)
		json_array_append(list, repaired);
	json_put(status, "conditions", list);
	json_put_int(status, "observedGeneration", generation);
	conditions_emit(plan, KIND_IP_POOL, key, previous, list);
}

static void plan_pool_status(const json_t *world, const char *key, const json_t *pool,
			     const struct ip_pool *addresses, const struct allocation *allocation,
			     struct plan *plan)
{
	auto_problems struct problems problems = {0}, warnings = {0};
	auto_call(verdict_done) struct verdict ready = {0};
	auto_ip_set struct ip_set kept = {0}, withheld = {0}, nodes = {0};
	auto_ip_conflicts struct ip_conflicts conflicts = {0};
	struct counts counts = {.total = ip_set_count(&addresses->usable)};
	const json_t *waiting = world_get(world, BOX_SHORT_POOL, key);
	const json_t *unwritten = world_get(world, BOX_UNWRITTEN, key);
	const json_t *old = json_at(pool, "status");
	/* Agents write their records here too: all that is not ours stays as it is. */
	json_t *status = json_is_object(old) ? json_copy((json_t *)old) : json_object();
	struct err unread = {0};
	int64_t again_ms = -1;

	/* A pool without a subnet has no family. */
	if (addresses->subnet.family != 0)
		(void)reserved_ip_read(world_kind(world, KIND_RESERVED_IP),
				       addresses->subnet.family, &kept, &unread);
	counts.reserved = counts.total - count_without(addresses, &kept);
	if (addresses->subnet.family != 0) {
		ip_pool_withhold(pool, addresses, &withheld);
		ip_pool_add_nodes(world_kind(world, KIND_NODE), addresses->subnet.family, &nodes);
	}
	counts.nodes = counts.total - count_without(addresses, &nodes);
	add_all(&kept, &withheld);
	add_all(&kept, &nodes);
	ip_set_settle(&kept);
	counts.withheld = counts.total - count_without(addresses, &withheld);
	counts.left = count_without(addresses, &kept);
	ip_conflicts_read(pool, addresses, &kept, world_env(world, "now"), &conflicts);
	ip_pool_judge(world, pool, &problems, &warnings);
	if (unwritten)
		problem_add(&problems, "LedgerNotWritten", "status",
			    "the API server refuses it, so that no address can be given out or "
			    "back: %s",
			    json_str_or(json_at(unwritten, "text"), "?"));
	/* Addresses that are added would not help those who wait. */
	if (!warn_of_size(pool, &warnings))
		warn_of_waiting(world, waiting, old, &warnings, &again_ms);
	if (!problems.total)
		ip_pool_warn(pool, &warnings);
	warn_of_lost_addresses(allocation, addresses, &warnings);
	warn_of_conflicts(&conflicts, &warnings);
	ready = judge_pool(pool, &counts, &unread, allocation, &problems);

	json_put_int(status, "totalIPCount", counts.total);
	/* Agents rely on the number (ledger_is_counted()). */
	if (!json_is_true(json_at(world, "env", "ledgerUnsure")) &&
	    (!allocation->is_unreadable || !json_at(status, "allocatedIPCount")))
		json_put_int(status, "allocatedIPCount",
			     (int64_t)json_object_size(allocation->records));
	/* Nothing is handed out beside what cannot be read. */
	json_put_int(status, "freeIPCount",
		     unread.class == ERR_NONE ? count_free(addresses, &kept, &conflicts, allocation)
					      : 0);
	rest_over(&conflicts, allocation, status);
	ip_conflicts_write(&conflicts, status);
	if (waiting)
		json_put(status, "waitingPodCount", json_incref(json_at(waiting, "pods")));
	else if (!ip_pool_waiting_is_unknown(world))
		json_object_del(status, "waitingPodCount");
	plan_conditions(world, key, pool, &ready, &warnings, status, plan);
	plan_status(plan, KIND_IP_POOL, key, status);
	if (conflicts.next_ms >= 0)
		plan_requeue(plan, conflicts.next_ms);
	if (again_ms >= 0)
		plan_requeue(plan, again_ms);
}

char *ip_pool_cidr_label(const struct ip_subnet *subnet)
{
	char text[IP_SUBNET_TEXT_SIZE];

	ip_subnet_print(subnet, text);
	for (char *c = text; *c; c++)
		if (*c == '.' || *c == ':' || *c == '/')
			*c = '-';
	return name_is_label_value(text) ? str_dup(text) : NULL;
}

/* Label and finalizer, in one write, and only when they are not there yet. */
static void plan_metadata(const char *key, const json_t *pool, const struct ip_subnet *subnet,
			  bool is_in_use, struct plan *plan)
{
	const char *old_label = json_str_at(pool, "metadata", "labels", IP_POOL_CIDR_LABEL);
	auto_free char *label = subnet ? ip_pool_cidr_label(subnet) : NULL;
	json_t *finalizers = json_at(pool, "metadata", "finalizers");
	json_auto_t *metadata = json_object();

	if (label && !str_eq(label, old_label))
		json_put_str(json_need_object(metadata, "labels"), IP_POOL_CIDR_LABEL, label);
	if (is_in_use && !json_list_has(finalizers, IP_POOL_FINALIZER)) {
		json_t *list = json_array();

		json_array_extend(list, finalizers);
		json_array_append_new(list, json_string(IP_POOL_FINALIZER));
		json_put(metadata, "finalizers", list);
	}
	if (json_object_size(metadata))
		plan_meta(plan, KIND_IP_POOL, key, json_incref(metadata));
}

int ip_pool_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *pool = world_get(world, KIND_IP_POOL, key);
	auto_ip_pool struct ip_pool addresses = {0};
	auto_call(allocation_done) struct allocation allocation = {0};
	bool has_subnet;

	if (!pool)
		return 0;
	allocation = allocation_read(pool);
	if (object_is_terminating(pool) && allocation_is_empty(&allocation)) {
		/* Nothing of the pool is in use: let it go. */
		plan_release(plan, KIND_IP_POOL, key, pool, IP_POOL_FINALIZER);
		return 0;
	}
	has_subnet = ip_pool_read(pool, &addresses, NULL);
	if (!object_is_terminating(pool))
		plan_metadata(key, pool, has_subnet ? &addresses.subnet : NULL,
			      !allocation_is_empty(&allocation), plan);
	plan_pool_status(world, key, pool, &addresses, &allocation, plan);
	return 0;
}
