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

/* A Node as it is decided here. */
struct member {
	const char *name, *since; /* RFC 3339 of the condition */
	const char *mark;         /* DRAIN_CORDONED_ANNOTATION */
	const json_t *node, *pool;
	enum links links;
	bool is_cordoned;          /* by anyone */
	unsigned int out;          /* measures of ours */
	uint64_t rails, bad_rails; /* bits */
};

/* The Nodes of one pool. */
struct group {
	struct member *members; /* by name */
	size_t n;
	size_t limit, out;
	unsigned int measures; /* that the pool asks for */
	uint64_t common;       /* rails that are bad for all */
};

static const char *mark_of(const json_t *node)
{
	return json_str_at(node, "metadata", "annotations", DRAIN_CORDONED_ANNOTATION);
}

static bool is_tainted(const json_t *node)
{
	return json_find(json_at(node, "spec", "taints"), "key", HEALTH_TAINT) != NULL;
}

bool health_taint_is_on(const json_t *node)
{
	return is_tainted(node) || str_eq(mark_of(node), DRAIN_CORDONED_FOR_LINKS) ||
	       str_eq(mark_of(node), DRAIN_CORDON_UNDONE);
}

/* Our cordon was taken back: whether the node is cordoned is for others to decide. */
static bool is_undone(const struct member *member)
{
	return str_eq(member->mark, DRAIN_CORDON_UNDONE) ||
	       (str_eq(member->mark, DRAIN_CORDONED_FOR_LINKS) && !member->is_cordoned);
}

/* "0=LinkHealthy,3=LinkDown" */
static void read_rails(const char *text, struct member *member)
{
	while (text && *text) {
		char *end;
		unsigned long rail = strtoul(text, &end, 10);
		size_t len = strcspn(text, ",");

		if (end > text && *end == '=' && rail < RAILS_MAX) {
			member->rails |= UINT64_C(1) << rail;
			if (strncmp(end, "=LinkHealthy", (size_t)(text + len - end)) != 0)
				member->bad_rails |= UINT64_C(1) << rail;
		}
		text += len + (text[len] == ',');
	}
}

static struct member read_member(const json_t *world, const char *name, const json_t *node)
{
	const json_t *condition =
		json_find(json_at(node, "status", "conditions"), "type", NODE_HEALTH_CONDITION);
	const char *status = json_str_at(condition, "status");
	struct member ret = {
		.name = name,
		.since = json_str_or(json_at(condition, "lastTransitionTime"), ""),
		.mark = mark_of(node),
		.node = node,
		.pool = pool_config_of(world, json_at(node, "metadata", "labels")),
		.is_cordoned = json_is_true(json_at(node, "spec", "unschedulable")),
		.out = is_tainted(node) ? TAINT : 0,
	};

	if (ret.is_cordoned && str_eq(ret.mark, DRAIN_CORDONED_FOR_LINKS))
		ret.out |= CORDON;
	if (str_eq(status, "False"))
		ret.links = LINKS_BAD;
	else if (str_eq(status, "Unknown"))
		ret.links = LINKS_UNKNOWN;
	read_rails(json_str_at(node, "metadata", "annotations", NODE_HEALTH_ANNOTATION), &ret);
	return ret;
}

static void plan_new_taints(struct plan *plan, const struct member *member, bool is_on)
{
	const json_t *taint;
	json_t *taints = json_array();
	size_t i;

	json_array_foreach (json_at(member->node, "spec", "taints"), i, taint)
		if (!str_eq(json_str_at(taint, "key"), HEALTH_TAINT))
			json_array_append(taints, (json_t *)taint);
	if (is_on)
		json_array_append_new(taints, json_pack("{s:s, s:s}", "key", HEALTH_TAINT, "effect",
							"NoSchedule"));
	plan_taints(plan, member->name, taints);
}

static void plan_measures(struct plan *plan, struct member *member, unsigned int wanted)
{
	size_t first = json_array_size(plan->ops);
	unsigned int changed = member->out ^ wanted;

	assert(changed);
	if (changed & TAINT)
		plan_new_taints(plan, member, wanted & TAINT);
	if (changed & CORDON)
		plan_cordon(plan, member->name, wanted & CORDON,
			    json_pack("{s:{s:s?}}", "annotations", DRAIN_CORDONED_ANNOTATION,
				      wanted & CORDON ? DRAIN_CORDONED_FOR_LINKS : NULL));
	/* A Node that may not be written keeps no other one from its turn. */
	plan_group(plan, first, member->name, NULL);
	member->out = wanted;
}

/* ---- one pool -------------------------------------------------------------------------------- */

static int compare_failures(const void *a, const void *b)
{
	const struct member *one = *(struct member *const *)a;
	const struct member *other = *(struct member *const *)b;
	int order = strcmp(one->since, other->since);

	return order ? order : strcmp(one->name, other->name);
}

static void find_common(struct group *group)
{
	for (int rail = 0; rail < RAILS_MAX; rail++) {
		uint64_t bit = UINT64_C(1) << rail;
		size_t having = 0, bad = 0;

		for (size_t i = 0; i < group->n; i++) {
			having += (group->members[i].rails & bit) != 0;
			bad += (group->members[i].bad_rails & bit) != 0;
		}
		if (bad >= HEALTH_TAINT_COMMON && (bad * 4 > having || bad > 4 * group->limit))
			group->common |= bit;
	}
}

/* Ports that are no rails count for the node alone. */
static bool is_common_alone(const struct group *group, const struct member *member)
{
	return member->bad_rails && !(member->bad_rails & ~group->common);
}

/* The cordon of an administrator, or of a drain, is not ours to take back; nor is an uncordon. */
static unsigned int wanted_of(const struct group *group, const struct member *member)
{
	bool is_theirs = (member->is_cordoned && !(member->out & CORDON)) || is_undone(member);

	return group->measures & ~(is_theirs ? (unsigned int)CORDON : 0U);
}

/* So that a cordon that comes after the uncordon is told from ours. */
static void note_undone(const struct group *group, const struct member *member, struct plan *plan)
{
	bool is_over = member->links == LINKS_GOOD || !(group->measures & CORDON);
	const char *mark = is_over ? NULL : DRAIN_CORDON_UNDONE;
	size_t first = json_array_size(plan->ops);

	if (!is_undone(member) || str_eq(member->mark, mark))
		return;
	plan_meta(plan, KIND_NODE, member->name,
		  json_pack("{s:{s:s?}}", "annotations", DRAIN_CORDONED_ANNOTATION, mark));
	plan_group(plan, first, member->name, NULL);
}

/* True when a Node has none any more: also of those that were the first when a rail failed. */
static bool take_back(struct group *group, struct member **bad, size_t n_bad, struct plan *plan)
{
	bool any = false;

	for (size_t i = 0; i < group->n; i++) {
		struct member *member = &group->members[i];
		bool is_freed = member->links == LINKS_GOOD || is_common_alone(group, member);
		unsigned int wanted = is_freed ? 0 : wanted_of(group, member);

		note_undone(group, member, plan);
		if (member->out && member->out != wanted && member->links != LINKS_UNKNOWN) {
			plan_measures(plan, member, wanted);
			any |= !wanted;
		}
		group->out += member->out != 0;
	}
	/* Who failed last goes first, then those whose links are not known. */
	for (size_t i = n_bad + group->n; i-- > 0 && group->out > group->limit;) {
		struct member *member = i < group->n ? &group->members[i] : bad[i - group->n];

		if (!member->out)
			continue;
		plan_measures(plan, member, 0);
		group->out--;
		any = true;
	}
	return any;
}

static void tell_common(const struct group *group, const char *pool, struct plan *plan)
{
	char rails[RAIL_NAMES_SIZE] = "";
	auto_free char *message = NULL;

	for (int rail = 0; rail < RAILS_MAX; rail++) {
		size_t len = strlen(rails);

		if (group->common & UINT64_C(1) << rail && len + 8 < sizeof(rails))
			(void)snprintf(rails + len, sizeof(rails) - len, "%s%d", len ? ", " : "",
				       rail);
	}
	if (group->common)
		message =
			str_printf("rail %s: links are bad on many nodes of the pool at once; look "
				   "at its switches, no node is tainted or cordoned for it",
				   rails);
	plan_finding(plan, KIND_POOL_CONFIG, pool, message ? "RailDown" : NULL, message);
}

static void decide_pool(struct group *group, struct plan *plan)
{
	auto_free struct member **bad = mem_calloc(group->n + 1, sizeof(struct member *));
	const json_t *pool = group->members[0].pool;
	auto_free char *key = pool ? json_key(pool) : NULL;
	size_t n_bad = 0, limit;

	for (size_t i = 0; i < ARRAY_LEN(measures); i++) {
		if (!json_at(pool, "metadata", "annotations", measures[i].annotation))
			continue;
		if (!pool_config_taint_limit(pool, measures[i].annotation, group->n, &limit))
			limit = 0;
		if (!group->measures || limit < group->limit)
			group->limit = limit;
		group->measures |= measures[i].bit;
	}
	for (size_t i = 0; i < group->n; i++)
		if (group->members[i].links == LINKS_BAD)
			bad[n_bad++] = &group->members[i];
	qsort(bad, n_bad, sizeof(struct member *), compare_failures);
	if (group->measures)
		find_common(group);
	if (key)
		tell_common(group, key, plan);
	if (take_back(group, bad, n_bad, plan))
		return;
	for (size_t i = 0; i < n_bad && group->out < group->limit; i++) {
		if (bad[i]->out || is_common_alone(group, bad[i]) || !wanted_of(group, bad[i]))
			continue;
		plan_measures(plan, bad[i], wanted_of(group, bad[i]));
		group->out++;
	}
	assert(group->out <= group->limit);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b)
{
	const struct member *one = a, *other = b;
	auto_free char *mine = one->pool ? json_key(one->pool) : str_dup("");
	auto_free char *theirs = other->pool ? json_key(other->pool) : str_dup("");
	int order = strcmp(mine, theirs);

	return order ? order : strcmp(one->name, other->name);
}

int health_taint_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err)
{
	const json_t *nodes = world_kind(world, KIND_NODE), *node;
	auto_free struct member *all =
		mem_calloc(json_object_size(nodes) + 1, sizeof(struct member));
	size_t n = 0, end, i;
	json_t *pool;
	const char *name;

	assert(plan);
	if (!str_eq(key, HEALTH_TAINT_KEY))
		return err_set(err, ERR_BUG, "BadKey", "\"%s\" is not " HEALTH_TAINT_KEY, key);
	json_each (nodes, name, node)
		all[n++] = read_member(world, name, node);
	qsort(all, n, sizeof(struct member), compare_members);
	for (size_t begin = 0; begin < n; begin = end) {
		struct group group = {.members = &all[begin]};

		for (end = begin + 1; end < n && all[end].pool == all[begin].pool;)
			end++;
		group.n = end - begin;
		decide_pool(&group, plan);
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
