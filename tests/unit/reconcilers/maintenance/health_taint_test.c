// SPDX-License-Identifier: Apache-2.0
/*
 * Taints and cordons of nodes with bad links: one by one, and in a world that changes at random,
 * where they are never more than a pool allows, never stay where they should not, and leave those
 * of others alone.
 */
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/maintenance/health_taint.h"
#include "reconcilers/sriov/node_health.h"
#include "reconcilers/sriov/pool_config.h"
#include "tests/fakes/cluster.h"
#include "tests/support/yaml.h"

#define NODES 12

static json_t *world;
static char finding[256]; /* of the pool, as said last */

static int tear_down(void **state)
{
	json_decref(world);
	world = NULL;
	return 0;
}

/* A pool of all nodes, w0 … w11 of them. limit: NULL for no taints. */
static void begin(int nodes, const char *limit)
{
	world = yaml("{env: {namespace: orbweaver-system, now: '2026-01-31T10:00:00Z'}, nodes: {}, "
		     "sriovnetworkpoolconfigs: {orbweaver-system/all: {metadata: {name: all, "
		     "namespace: orbweaver-system, annotations: {}}, spec: {nodeSelector: "
		     "{matchLabels: {rdma: 'yes'}}}}}}");
	json_put_str(
		json_at(world, KIND_POOL_CONFIG, "orbweaver-system/all", "metadata", "annotations"),
		POOL_TAINT_DEGRADED, limit);
	for (int i = 0; i < nodes; i++) {
		auto_free char *name = str_printf("w%d", i);

		json_put(json_at(world, KIND_NODE), name,
			 json_pack("{s:{s:s, s:{s:s}, s:{}}, s:{}}", "metadata", "name", name,
				   "labels", "rdma", "yes", "annotations", "status"));
	}
}

/* status: of the condition, NULL: none. rails: of the annotation. */
static void set_links(int i, const char *status, const char *since, const char *rails)
{
	auto_free char *name = str_printf("w%d", i);
	json_t *node = json_at(world, KIND_NODE, name);

	(void)json_object_del(json_at(node, "status"), "conditions");
	if (status)
		json_put(json_at(node, "status"), "conditions",
			 json_pack("[{s:s, s:s, s:s}]", "type", NODE_HEALTH_CONDITION, "status",
				   status, "lastTransitionTime", since));
	(void)json_object_del(json_at(node, "metadata", "annotations"), NODE_HEALTH_ANNOTATION);
	json_put_str(json_at(node, "metadata", "annotations"), NODE_HEALTH_ANNOTATION, rails);
}

static json_t *node_at(int i)
{
	auto_free char *name = str_printf("w%d", i);

	return json_at(world, KIND_NODE, name);
}

static const char *mark_of(int i)
{
	return json_str_at(node_at(i), "metadata", "annotations", DRAIN_CORDONED_ANNOTATION);
}

static bool is_cordoned(int i)
{
	return json_is_true(json_at(node_at(i), "spec", "unschedulable"));
}

/* Has it the taint, or our cordon? */
static bool is_tainted(int i)
{
	bool ret = json_find(json_at(node_at(i), "spec", "taints"), "key", HEALTH_TAINT) ||
		   (is_cordoned(i) && str_eq(mark_of(i), DRAIN_CORDONED_FOR_LINKS));

	assert_true(health_taint_is_on(node_at(i)) || !ret);
	return ret;
}

static json_t *pool_annotations(void)
{
	return json_at(world, KIND_POOL_CONFIG, "orbweaver-system/all", "metadata", "annotations");
}

/* mark: of DRAIN_CORDONED_ANNOTATION; NULL: an administrator's. */
static void set_cordon(int i, bool is_cordoned, const char *mark)
{
	auto_free char *kept = mark ? str_dup(mark) : NULL; /* may be the node's own */
	json_t *node = node_at(i);

	(void)json_object_del(json_at(node, "metadata", "annotations"), DRAIN_CORDONED_ANNOTATION);
	json_put_str(json_at(node, "metadata", "annotations"), DRAIN_CORDONED_ANNOTATION, kept);
	json_put_bool(json_need_object(node, "spec"), "unschedulable", is_cordoned);
}

/* "taint", "cordon by MARK", "cordon", joined by blanks. */
static void assert_node(int i, const char *want)
{
	const char *mark = mark_of(i);
	auto_strbuf struct strbuf got = {0};

	if (json_find(json_at(node_at(i), "spec", "taints"), "key", HEALTH_TAINT))
		strbuf_adds(&got, "taint ");
	if (is_cordoned(i))
		strbuf_adds(&got, "cordon ");
	if (mark)
		strbuf_addf(&got, "by %s ", mark);
	assert_string_equal(strbuf_str(&got), want);
}

/*
 * One decision, its writes one by one; each of them keeps the budget. Returns how many there are.
 */
static size_t decide(size_t limit, bool keeps_budget)
{
	struct plan plan = {0};
	struct err err = {0};
	size_t n = 0, i;
	json_t *op;

	assert_int_equal(health_taint_reconcile(world, HEALTH_TAINT_KEY, &plan, &err), 0);
	json_array_foreach (plan.ops, i, op) {
		size_t tainted = 0;

		if (str_eq(json_str_at(op, "op"), "finding")) {
			(void)snprintf(finding, sizeof(finding), "%s %s",
				       json_str_or(json_at(op, "reason"), ""),
				       json_str_or(json_at(op, "message"), ""));
			continue;
		}
		n++;
		cluster_carry_out_op(world, op);
		for (int k = 0; k < NODES; k++)
			tainted += is_tainted(k);
		if (keeps_budget)
			assert_true(tainted <= limit);
	}
	plan_done(&plan);
	return n;
}

static void assert_taints(const char *want)
{
	auto_strbuf struct strbuf got = {0};

	while (decide(0, false) > 0)
		;
	for (int i = 0; i < NODES; i++)
		if (is_tainted(i))
			strbuf_addf(&got, "w%d ", i);
	assert_string_equal(strbuf_str(&got), want);
}

TEST_WITH(who_failed_first_is_tainted_until_it_is_well, NULL, tear_down)
{
	begin(4, "2");
	set_links(0, "False", "2026-01-31T09:03:00Z", "0=LinkDown");
	set_links(1, "False", "2026-01-31T09:01:00Z", "1=LinkDown");
	set_links(2, "False", "2026-01-31T09:02:00Z", "2=LinkFlapping");
	set_links(3, "True", "2026-01-31T09:00:00Z", "0=LinkHealthy");
	assert_taints("w1 w2 ");
	set_links(1, "True", "2026-01-31T09:10:00Z", "1=LinkHealthy");
	assert_taints("w0 w2 ");
	/* Nobody knows: it stays, and counts. */
	set_links(2, "Unknown", "2026-01-31T09:11:00Z", "2=LinkFlapping");
	set_links(3, "False", "2026-01-31T09:12:00Z", "3=LinkDown");
	assert_taints("w0 w2 ");
	/* Its agent is gone for good. */
	set_links(2, NULL, NULL, NULL);
	assert_taints("w0 w3 ");
}

TEST_WITH(taints_of_others_stay, NULL, tear_down)
{
	json_auto_t *taints = yaml("[{key: other, effect: NoExecute, value: x}]");

	begin(1, "1");
	json_put(json_need_object(json_at(world, KIND_NODE, "w0"), "spec"), "taints",
		 json_deep_copy(taints));
	set_links(0, "False", "2026-01-31T09:03:00Z", NULL);
	assert_taints("w0 ");
	assert_int_equal(json_array_size(json_at(world, KIND_NODE, "w0", "spec", "taints")), 2);
	set_links(0, "True", "2026-01-31T09:04:00Z", NULL);
	assert_taints("");
	assert_true(json_same(json_at(world, KIND_NODE, "w0", "spec", "taints"), taints));
}

TEST_WITH(a_pool_that_asks_for_none_or_fewer_gets_them_back, NULL, tear_down)
{
	json_t *annotations;

	begin(4, "3");
	set_links(0, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
	set_links(1, "False", "2026-01-31T09:02:00Z", "1=LinkDown");
	assert_taints("w0 w1 ");
	annotations = pool_annotations();
	json_put_str(annotations, POOL_TAINT_DEGRADED, "25%");
	assert_taints("w0 ");
	json_put_str(annotations, POOL_TAINT_DEGRADED, "many");
	assert_taints("");
	json_put_str(annotations, POOL_TAINT_DEGRADED, "2");
	assert_taints("w0 w1 ");
	(void)json_object_del(annotations, POOL_TAINT_DEGRADED);
	assert_taints("");
}

TEST_WITH(what_many_nodes_have_is_said_once_and_taints_none, NULL, tear_down)
{
	begin(NODES, "2");
	for (int i = 0; i < 4; i++)
		set_links(i, "False", "2026-01-31T09:01:00Z", "0=LinkHealthy,3=LinkDown");
	for (int i = 4; i < NODES; i++)
		set_links(i, "True", "2026-01-31T09:00:00Z", "0=LinkHealthy,3=LinkHealthy");
	assert_taints("");
	assert_string_equal(
		finding, "RailDown rail 3: links are bad on many nodes of the pool at once; look "
			 "at its switches, no node is tainted or cordoned for it");
	/* One that has a fault of its own besides. */
	set_links(2, "False", "2026-01-31T09:01:00Z", "0=LinkErrors,3=LinkDown");
	assert_taints("w2 ");
	(void)json_object_del(pool_annotations(), POOL_TAINT_DEGRADED);
	assert_taints("");
	assert_string_equal(finding, " ");
	json_put_str(pool_annotations(), POOL_TAINT_DEGRADED, "2");
	assert_taints("w2 ");
	assert_string_not_equal(finding, " ");
	for (int i = 0; i < 4; i++)
		set_links(i, "True", "2026-01-31T09:05:00Z", "0=LinkHealthy,3=LinkHealthy");
	assert_taints("");
	assert_string_equal(finding, " ");
}

TEST_WITH(a_pool_without_nodes_has_no_rail, NULL, tear_down)
{
	begin(NODES, "2");
	for (int i = 0; i < NODES; i++)
		set_links(i, "False", "2026-01-31T09:01:00Z", "3=LinkDown");
	assert_taints("");
	assert_string_not_equal(finding, " ");
	json_object_clear(json_at(world, KIND_NODE));
	assert_taints("");
	assert_string_equal(finding, " ");
}

/* Agents report one after the other. */
TEST_WITH(who_was_tainted_before_the_rail_was_known_gets_it_back, NULL, tear_down)
{
	begin(NODES, "2");
	for (int i = 0; i < NODES; i++)
		set_links(i, "True", "2026-01-31T09:00:00Z", "3=LinkHealthy");
	set_links(0, "False", "2026-01-31T09:01:00Z", "3=LinkDown");
	assert_taints("w0 ");
	for (int i = 1; i < 4; i++)
		set_links(i, "False", "2026-01-31T09:01:01Z", "3=LinkDown");
	assert_taints("");
	/* The port that is no rail is its own. */
	set_links(5, "False", "2026-01-31T09:02:00Z", "3=LinkHealthy");
	assert_taints("w5 ");
}

/* 100 of 1000 nodes lose rail 3. */
TEST_WITH(a_switch_of_a_tenth_of_all_nodes_is_a_common_cause, NULL, tear_down)
{
	begin(1000, "10");
	for (int i = 0; i < 1000; i++)
		set_links(i, i % 10 ? "True" : "False", "2026-01-31T09:01:00Z",
			  i % 10 ? "3=LinkHealthy" : "3=LinkDown");
	set_links(5, "False", "2026-01-31T09:01:00Z", "2=LinkDown,3=LinkHealthy");
	assert_taints("w5 ");
	assert_true(strstr(finding, "RailDown rail 3:") == finding);
}

#define OUR_CORDON "cordon by " DRAIN_CORDONED_FOR_LINKS " "

TEST_WITH(a_pool_asks_for_cordons_instead_or_besides, NULL, tear_down)
{
	begin(3, NULL);
	json_put_str(pool_annotations(), POOL_CORDON_DEGRADED, "1");
	for (int i = 0; i < 2; i++)
		set_links(i, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
	assert_taints("w0 ");
	assert_node(0, OUR_CORDON);
	/* The smaller number of both. */
	json_put_str(pool_annotations(), POOL_TAINT_DEGRADED, "2");
	assert_taints("w0 ");
	assert_node(0, "taint " OUR_CORDON);
	(void)json_object_del(pool_annotations(), POOL_CORDON_DEGRADED);
	assert_taints("w0 w1 ");
	assert_node(0, "taint ");
	for (int i = 0; i < 2; i++)
		set_links(i, "True", "2026-01-31T09:02:00Z", "0=LinkHealthy");
	assert_taints("");
	assert_node(0, "");
}

/* Another client removes one of both again and again. */
TEST_WITH(a_node_that_loses_its_taint_blocks_no_other, NULL, tear_down)
{
	begin(3, "2");
	json_put_str(pool_annotations(), POOL_CORDON_DEGRADED, "2");
	set_links(0, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
	assert_taints("w0 ");
	(void)json_object_del(json_at(world, KIND_NODE, "w0", "spec"), "taints");
	set_links(1, "False", "2026-01-31T09:02:00Z", "0=LinkDown");
	(void)decide(0, false);
	assert_node(0, "taint " OUR_CORDON);
	assert_node(1, "taint " OUR_CORDON);
}

TEST_WITH(a_cordon_of_others_stays_and_so_does_an_uncordon, NULL, tear_down)
{
	begin(3, NULL);
	json_put_str(pool_annotations(), POOL_CORDON_DEGRADED, "2");
	for (int i = 0; i < 2; i++)
		set_links(i, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
	set_cordon(0, true, NULL);
	assert_taints("w1 ");
	assert_node(0, "cordon ");
	set_cordon(1, false, DRAIN_CORDONED_FOR_LINKS);
	assert_taints("");
	assert_node(1, "by " DRAIN_CORDON_UNDONE " ");
	/* A drain has taken it over. */
	set_cordon(1, true, DRAIN_CORDONED_BY);
	for (int i = 0; i < 2; i++)
		set_links(i, "True", "2026-01-31T09:02:00Z", "0=LinkHealthy");
	assert_taints("");
	assert_node(0, "cordon ");
	assert_node(1, "cordon by " DRAIN_CORDONED_BY " ");
}

TEST_WITH(a_cordon_after_an_uncordon_is_not_ours, NULL, tear_down)
{
	static const char *const ends[] = {"True", NULL, "no annotation"};

	for (size_t k = 0; k < ARRAY_LEN(ends); k++) {
		begin(2, NULL);
		json_put_str(pool_annotations(), POOL_CORDON_DEGRADED, "1");
		for (int i = 0; i < 2; i++)
			set_links(i, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
		assert_taints("w0 ");
		set_cordon(0, false, DRAIN_CORDONED_FOR_LINKS);
		/* While no agent reports, too. The place is free for another node. */
		set_links(0, "Unknown", "2026-01-31T09:02:00Z", "0=LinkDown");
		assert_taints("w1 ");
		set_cordon(0, true, mark_of(0));
		set_links(0, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
		assert_taints("w1 ");
		assert_node(0, "cordon by " DRAIN_CORDON_UNDONE " ");
		if (k < 2)
			set_links(0, ends[k], "2026-01-31T09:03:00Z", "0=LinkHealthy");
		else
			(void)json_object_del(pool_annotations(), POOL_CORDON_DEGRADED);
		assert_taints(k < 2 ? "w1 " : "");
		assert_node(0, "cordon ");
		json_decref(take_ptr(world));
	}
}

/* An admission policy refuses one Node for good. */
TEST_WITH(a_write_that_fails_holds_up_no_other_node, NULL, tear_down)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};
	size_t n = 0, i;
	json_t *op;

	begin(4, "2");
	for (int k = 0; k < 2; k++)
		set_links(k, "False", "2026-01-31T09:01:00Z", "0=LinkDown");
	assert_int_equal(health_taint_reconcile(world, HEALTH_TAINT_KEY, &plan, &err), 0);
	json_array_foreach (plan.ops, i, op) {
		if (str_eq(json_str_at(op, "op"), "finding"))
			continue;
		assert_string_equal(json_str_at(op, "group"), json_str_at(op, "key"));
		n++;
	}
	assert_int_equal(n, 2);
}

/* ---- at random ------------------------------------------------------------------------------- */

static void limit_at_random(size_t *limit)
{
	static const char *const annotations[] = {POOL_TAINT_DEGRADED, POOL_CORDON_DEGRADED};
	int both = 1 + rand() % 3;

	*limit = 5;
	for (int i = 0; i < 2; i++) {
		size_t one = (size_t)(rand() % 5);
		auto_free char *text = str_printf("%zu", one);

		(void)json_object_del(pool_annotations(), annotations[i]);
		if (!(both & 1 << i))
			continue;
		json_put_str(pool_annotations(), annotations[i], text);
		*limit = one < *limit ? one : *limit;
	}
	/* Those that are too many go; from then on the budget holds. */
	(void)decide(*limit, false);
}

/*
 * Cordons of an administrator ("1") and of a drain ("2") come and go, as kubectl and drain_write.c
 * write them: the former knows no marks. An uncordon and a cordon between two looks of the operator
 * are nothing to it; a node that is cordoned is not cordoned again.
 */
static void cordon_at_random(char *theirs)
{
	int i = rand() % NODES, what = rand() % 3;
	bool is_ours = str_eq(mark_of(i), DRAIN_CORDONED_FOR_LINKS);
	bool is_drains = theirs[i] == '2';

	if (what == 1 && (is_ours || is_drains))
		return;
	theirs[i] = (char)('0' + what);
	set_cordon(i, what != 0, what == 2 ? DRAIN_CORDONED_BY : is_drains ? NULL : mark_of(i));
}

static void change_at_random(size_t *limit, char *theirs)
{
	static const char *const statuses[] = {"True", "False", "False", "Unknown", NULL};
	static const char *const reasons[] = {"LinkHealthy", "LinkDown", "LinkFlapping"};
	auto_free char *since = str_printf("2026-01-31T09:%02d:00Z", rand() % 60);
	auto_free char *rails = str_printf("%d=%s,%d=%s", rand() % 4, reasons[rand() % 3],
					   4 + rand() % 4, reasons[rand() % 3]);

	if (rand() % 50 == 0)
		limit_at_random(limit);
	else if (rand() % 8 == 0)
		cordon_at_random(theirs);
	else
		set_links(rand() % NODES, statuses[rand() % 5], since, rand() % 3 ? rails : NULL);
}

TEST_WITH(never_too_many_and_never_stuck, NULL, tear_down)
{
	int steps = getenv("LONG") ? 1000000 : 5000;
	char theirs[NODES + 1] = "000000000000";
	size_t limit = 3;

	srand(7);
	begin(NODES, "3");
	for (int step = 0; step < steps; step++) {
		int turns = 0;

		change_at_random(&limit, theirs);
		/* A write may be lost, and a decision come late. */
		if (rand() % 4 == 0)
			continue;
		while (decide(limit, true) > 0)
			assert_true(++turns < 4);
		for (int i = 0; i < NODES; i++) {
			const char *status = json_str_at(
				json_array_get(json_at(node_at(i), "status", "conditions"), 0),
				"status");

			assert_false(is_tainted(i) && (!status || str_eq(status, "True")));
			if (theirs[i] != '0')
				assert_true(is_cordoned(i));
		}
	}
	/* All is well: nothing is left. */
	for (int i = 0; i < NODES; i++)
		set_links(i, "True", "2026-01-31T09:00:00Z", "0=LinkHealthy");
	assert_taints("");
	for (int i = 0; i < NODES; i++)
		assert_node(i, theirs[i] == '0'   ? ""
			       : theirs[i] == '1' ? "cordon "
						  : "cordon by " DRAIN_CORDONED_BY " ");
}
