// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes are parted by pool, then each pool is decided by itself: which rails have a common cause,
 * which nodes lose taint and cordon, which get them.
 */
#include "reconcilers/maintenance/health_taint.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/sriov/node_health.h"
#include "reconcilers/sriov/pool_config.h"

enum {
	RAILS_MAX = 64,
	/* In the message of the finding. */
	RAIL_NAMES_SIZE = 128,
};

enum links { LINKS_GOOD, LINKS_BAD, LINKS_UNKNOWN };

/* What keeps pods from a node: bits. */
enum { TAINT = 1, CORDON = 2 };
static const struct {
	unsigned int bit;
	const char *annotation;
} measures[] = {{TAINT, POOL_TAINT_DEGRADED}, {CORDON, POOL_CORDON_DEGRADED}};

struct patient {
	const char *name, *since; /* RFC 3339 of the condition */
	const json_t *node, *pool;
	enum links links;
	bool is_cordoned;          /* by anyone */
	unsigned int out;          /* measures of ours */
	uint64_t rails, bad_rails; /* bits */
};

struct ward {
	struct patient *patients; /* by pool and name */
	size_t n;
	size_t limit, out;
	unsigned int measures; /* that the pool asks for */
	uint64_t common;       /* rails that are bad for all */
};

static unsigned int measures_on(const json_t *node)
{
	bool is_cordoned_by_us =
		str_eq(json_str_at(node, "metadata", "annotations", DRAIN_CORDONED_ANNOTATION),
		       DRAIN_CORDONED_FOR_LINKS);

	return (json_find(json_at(node, "spec", "taints"), "key", HEALTH_TAINT) ? TAINT : 0) |
	       (is_cordoned_by_us ? CORDON : 0);
}

bool health_taint_is_on(const json_t *node)
{
	return measures_on(node) != 0;
}

/* "0=LinkHealthy,3=LinkDown" */
static void read_rails(const char *text, struct patient *patient)
{
	while (text && *text) {
		char *end;
		unsigned long rail = strtoul(text, &end, 10);
		size_t len = strcspn(text, ",");

		if (end > text && *end == '=' && rail < RAILS_MAX) {
			patient->rails |= UINT64_C(1) << rail;
			if (strncmp(end, "=LinkHealthy", (size_t)(text + len - end)) != 0)
				patient->bad_rails |= UINT64_C(1) << rail;
		}
		text += len + (text[len] == ',');
	}
}

static struct patient read_patient(const json_t *world, const char *name, const json_t *node)
{
	const json_t *condition =
		json_find(json_at(node, "status", "conditions"), "type", NODE_HEALTH_CONDITION);
	const char *status = json_str_at(condition, "status");
	struct patient ret = {
		.name = name,
		.since = json_str_or(json_at(condition, "lastTransitionTime"), ""),
		.node = node,
		.pool = pool_config_of(world, json_at(node, "metadata", "labels")),
		.is_cordoned = json_is_true(json_at(node, "spec", "unschedulable")),
		.out = measures_on(node),
	};

	if (str_eq(status, "False"))
		ret.links = LINKS_BAD;
	else if (str_eq(status, "Unknown"))
		ret.links = LINKS_UNKNOWN;
	read_rails(json_str_at(node, "metadata", "annotations", NODE_HEALTH_ANNOTATION), &ret);
	return ret;
}

static void plan_new_taints(struct plan *plan, const struct patient *patient, bool is_on)
{
	const json_t *taint;
	json_t *taints = json_array();
	size_t i;

	json_array_foreach (json_at(patient->node, "spec", "taints"), i, taint)
		if (!str_eq(json_str_at(taint, "key"), HEALTH_TAINT))
			json_array_append(taints, (json_t *)taint);
	if (is_on)
		json_array_append_new(taints, json_pack("{s:s, s:s}", "key", HEALTH_TAINT, "effect",
							"NoSchedule"));
	plan_taints(plan, patient->name, taints);
}

static void plan_measures(struct plan *plan, struct patient *patient, unsigned int wanted)
{
	size_t first = json_array_size(plan->ops);
	unsigned int changed = patient->out ^ wanted;

	assert(changed);
	if (changed & TAINT)
		plan_new_taints(plan, patient, wanted & TAINT);
	if (changed & CORDON)
		plan_cordon(plan, patient->name, wanted & CORDON,
			    json_pack("{s:{s:s?}}", "annotations", DRAIN_CORDONED_ANNOTATION,
				      wanted & CORDON ? DRAIN_CORDONED_FOR_LINKS : NULL));
	/* A Node that may not be written keeps no other one from its turn. */
	plan_group(plan, first, patient->name, NULL);
	patient->out = wanted;
}

/* ---- one pool -------------------------------------------------------------------------------- */

static int compare_failures(const void *a, const void *b)
{
	const struct patient *one = *(struct patient *const *)a;
	const struct patient *other = *(struct patient *const *)b;
	int order = strcmp(one->since, other->since);

	return order ? order : strcmp(one->name, other->name);
}

static void find_common(struct ward *ward)
{
	for (int rail = 0; rail < RAILS_MAX; rail++) {
		uint64_t bit = UINT64_C(1) << rail;
		size_t having = 0, bad = 0;

		for (size_t i = 0; i < ward->n; i++) {
			having += (ward->patients[i].rails & bit) != 0;
			bad += (ward->patients[i].bad_rails & bit) != 0;
		}
		if (bad >= HEALTH_TAINT_COMMON && (bad * 4 > having || bad > 4 * ward->limit))
			ward->common |= bit;
	}
}

/* Ports that are no rails count for the node alone. */
static bool is_common_alone(const struct ward *ward, const struct patient *patient)
{
	return patient->bad_rails && !(patient->bad_rails & ~ward->common);
}

/* The cordon of an administrator, or of a drain, is not ours to take back. */
static unsigned int wanted_of(const struct ward *ward, const struct patient *patient)
{
	return ward->measures &
	       ~(patient->is_cordoned && !(patient->out & CORDON) ? (unsigned int)CORDON : 0U);
}

/* True when one was taken back: also of those that were the first when a rail failed. */
static bool take_back(struct ward *ward, struct patient **bad, size_t n_bad, struct plan *plan)
{
	bool any = false;

	for (size_t i = 0; i < ward->n; i++) {
		struct patient *patient = &ward->patients[i];
		bool is_freed = patient->links == LINKS_GOOD || is_common_alone(ward, patient);
		unsigned int wanted = is_freed ? 0 : wanted_of(ward, patient);

		if (patient->out && patient->out != wanted && patient->links != LINKS_UNKNOWN) {
			plan_measures(plan, patient, wanted);
			any = true;
		}
		ward->out += patient->out != 0;
	}
	/* Who failed last goes first, then those whose links are not known. */
	for (size_t i = n_bad + ward->n; i-- > 0 && ward->out > ward->limit;) {
		struct patient *patient = i < ward->n ? &ward->patients[i] : bad[i - ward->n];

		if (!patient->out)
			continue;
		plan_measures(plan, patient, 0);
		ward->out--;
		any = true;
	}
	return any;
}

static void tell_common(const struct ward *ward, const char *pool, struct plan *plan)
{
	char rails[RAIL_NAMES_SIZE] = "";
	auto_free char *message = NULL;

	for (int rail = 0; rail < RAILS_MAX; rail++) {
		size_t len = strlen(rails);

		if (ward->common & UINT64_C(1) << rail && len + 8 < sizeof(rails))
			(void)snprintf(rails + len, sizeof(rails) - len, "%s%d", len ? ", " : "",
				       rail);
	}
	if (ward->common)
		message =
			str_printf("rail %s: links are bad on many nodes of the pool at once; look "
				   "at its switches, no node is tainted or cordoned for it",
				   rails);
	plan_finding(plan, KIND_POOL_CONFIG, pool, message ? "RailDown" : NULL, message);
}

static void decide_pool(struct ward *ward, struct plan *plan)
{
	auto_free struct patient **bad = mem_calloc(ward->n + 1, sizeof(struct patient *));
	const json_t *pool = ward->patients[0].pool;
	auto_free char *key = pool ? json_key(pool) : NULL;
	size_t n_bad = 0, limit;

	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		if (!json_at(pool, "metadata", "annotations", measures[i].annotation))
			continue;
		if (!pool_config_taint_limit(pool, measures[i].annotation, ward->n, &limit))
			limit = 0;
		if (!ward->measures || limit < ward->limit)
			ward->limit = limit;
		ward->measures |= measures[i].bit;
	}
	for (size_t i = 0; i < ward->n; i++)
		if (ward->patients[i].links == LINKS_BAD)
			bad[n_bad++] = &ward->patients[i];
	qsort(bad, n_bad, sizeof(struct patient *), compare_failures);
	if (ward->measures)
		find_common(ward);
	if (key)
		tell_common(ward, key, plan);
	if (take_back(ward, bad, n_bad, plan))
		return;
	for (size_t i = 0; i < n_bad && ward->out < ward->limit; i++) {
		if (bad[i]->out || is_common_alone(ward, bad[i]) || !wanted_of(ward, bad[i]))
			continue;
		plan_measures(plan, bad[i], wanted_of(ward, bad[i]));
		ward->out++;
	}
	assert(ward->out <= ward->limit);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int compare_patients(const void *a, const void *b)
{
	const struct patient *one = a, *other = b;
	auto_free char *mine = one->pool ? json_key(one->pool) : str_dup("");
	auto_free char *theirs = other->pool ? json_key(other->pool) : str_dup("");
	int order = strcmp(mine, theirs);

	return order ? order : strcmp(one->name, other->name);
}

int health_taint_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *nodes = world_kind(world, KIND_NODE), *node;
	auto_free struct patient *all =
		mem_calloc(json_object_size(nodes) + 1, sizeof(struct patient));
	size_t n = 0, end, i;
	json_t *pool;
	const char *name;

	assert(plan);
	if (!str_eq(key, HEALTH_TAINT_KEY))
		return err_set(err, ERR_BUG, "BadKey", "\"%s\" is not " HEALTH_TAINT_KEY, key);
	json_each (nodes, name, node)
		all[n++] = read_patient(world, name, node);
	qsort(all, n, sizeof(struct patient), compare_patients);
	for (size_t begin = 0; begin < n; begin = end) {
		struct ward ward = {.patients = &all[begin]};

		for (end = begin + 1; end < n && all[end].pool == all[begin].pool;)
			end++;
		ward.n = end - begin;
		decide_pool(&ward, plan);
	}
	/* Pools that have lost their last node. */
	json_each (world_kind(world, KIND_POOL_CONFIG), name, pool) {
		for (i = 0; i < n && all[i].pool != pool;)
			i++;
		if (i == n)
			plan_finding(plan, KIND_POOL_CONFIG, name, NULL, NULL);
	}
	return 0;
}
