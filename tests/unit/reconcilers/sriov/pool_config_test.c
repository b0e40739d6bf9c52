// SPDX-License-Identifier: Apache-2.0
/* SriovNetworkPoolConfig: status, and the RDMA mode that it gives to nodes. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/core/conditions.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/labels.h"
#include "reconcilers/sriov/pool_config.h"
#include "tests/fakes/cluster.h"
#include "tests/support/reasons.h"
#include "tests/support/yaml.h"

static json_t *world_with(const char *pools)
{
	json_t *world = yaml("env: {now: '2026-01-31T10:00:00Z', namespace: sys}\n"
			     "nodes:\n"
			     "  w2: {metadata: {labels: {gpu: h100, zone: a}}}\n"
			     "  w1: {metadata: {labels: {gpu: h100}}}\n"
			     "  w3: {metadata: {labels: {zone: b}}}\n");
	json_t *named = yaml(pools), *pool;
	const char *key;

	json_put(world, KIND_POOL_CONFIG, named);
	json_put(world, KIND_POOL_REPORT,
		 yaml("{w1: {mode: shared, reboot: false}, w2: {mode: shared, reboot: false}}"));
	json_each (named, key, pool) {
		auto_free char *namespace = str_ndup(key, strcspn(key, "/"));

		json_put_str(json_need_object(pool, "metadata"), "namespace", namespace);
	}
	return world;
}

static void assert_ready(json_t *world, const char *status, const char *reason, const char *message)
{
	const json_t *conditions, *ready;

	assert_true(cluster_settle(world, "sys/a", pool_config_reconcile));
	conditions = json_at(world, KIND_POOL_CONFIG, "sys/a", "status", "conditions");
	ready = condition_find(conditions, "Ready");
	assert_string_equal(json_str_or(json_at(ready, "status"), ""), status);
	assert_string_equal(json_str_or(json_at(ready, "reason"), ""), reason);
	assert_string_equal(json_str_or(json_at(ready, "message"), ""), message);
	assert_string_not_equal(condition_status_of(conditions, "Degraded"), status);
}

TEST(a_good_pool_is_in_effect)
{
	json_auto_t *world =
		world_with("{sys/a: {spec: {maxUnavailable: '33%', rdmaMode: shared,"
			   " nodeSelector: {matchLabels: {gpu: h100}}}},"
			   " sys/b: {spec: {nodeSelector: {matchLabels: {zone: b}}}}}");

	assert_ready(world, "True", "InEffect", "2 of 2 nodes follow");
}

TEST(nodes_that_follow_wait_and_need_a_boot_are_counted)
{
	static const struct {
		const char *reports, *status, *reason, *message;
	} rows[] = {
		{"{w1: {mode: exclusive, reboot: false}}", "True", "InEffect",
		 "1 of 1 nodes follow"},
		{"{w1: {mode: exclusive, reboot: false}, w2: {mode: shared, reboot: false}}",
		 "False", "Syncing",
		 "1 of 2 nodes follow, w2 does not yet; wait, and if this lasts, see its "
		 "SriovNetworkNodeState"},
		{"{w1: {mode: shared, reboot: false}, w3: {mode: shared, reboot: true}, "
		 "w2: {mode: shared, reboot: true}}",
		 "False", "RebootRequired",
		 "0 of 3 nodes follow, 2 need a boot, w2 first by name; drain and reboot them when "
		 "it suits you"},
		{"{}", "False", "NoNode",
		 "no node that a SriovNetworkNodePolicy selects is in the pool; label a node or "
		 "correct nodeSelector"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_with("{sys/a: {spec: {rdmaMode: exclusive}}}");
		const json_t *conditions, *ready;

		json_put(world, KIND_POOL_REPORT, yaml(rows[i].reports));
		assert_true(cluster_settle(world, "sys/a", pool_config_reconcile));
		conditions = json_at(world, KIND_POOL_CONFIG, "sys/a", "status", "conditions");
		ready = condition_find(conditions, "Ready");
		assert_string_equal(json_str_at(ready, "status"), rows[i].status);
		assert_string_equal(json_str_at(ready, "reason"), rows[i].reason);
		assert_string_equal(json_str_at(ready, "message"), rows[i].message);
		/* Waiting is no failure; a pool without nodes waits for nobody. */
		assert_string_equal(condition_status_of(conditions, "Degraded"),
				    str_eq(rows[i].reason, "NoNode") ? "True" : "False");
		conditions_keep_the_rule(conditions);
	}
}

TEST(a_pool_that_sets_nothing_says_so)
{
	json_auto_t *world = world_with("{sys/a: {spec: {}}}");

	assert_ready(world, "True", "NothingSet",
		     "sets none of rdmaMode, guidPool, rails, roce and maxUnavailable, and changes "
		     "nothing: set "
		     "one, or delete it");
}

TEST(a_node_in_two_pools_is_named_on_both)
{
	json_auto_t *world =
		world_with("{sys/a: {spec: {nodeSelector: {matchLabels: {gpu: h100}}}},"
			   " sys/b: {spec: {nodeSelector: {matchExpressions:"
			   " [{key: zone, operator: Exists}]}}}}");

	assert_ready(world, "False", "NodeInTwoPools",
		     "pool sys/a: spec.nodeSelector: node w2 is in pool sys/b too; let one pool "
		     "select each node, until then these nodes keep their rdmaMode, GUIDs and RoCE "
		     "settings");
}

TEST(many_conflicts_are_counted)
{
	json_auto_t *world = world_with("{sys/a: {}, sys/b: {spec: {}}}");

	for (int i = 10; i < 20; i++) {
		auto_free char *node = str_printf("n%d", i);

		json_put(json_at(world, KIND_NODE), node, json_object());
	}
	assert_ready(world, "False", "NodeInTwoPools",
		     "pool sys/a: spec.nodeSelector: node n10 is in pool sys/b too, node n11 is in "
		     "pool sys/b too, node n12 is in pool sys/b too, node n13 is in pool sys/b too "
		     "and 9 nodes more; let one pool select each node, until then these nodes keep "
		     "their rdmaMode, GUIDs and RoCE settings");
}

TEST(what_is_wrong_is_named_with_the_remedy)
{
	static const struct {
		const char *spec, *reason, *message;
	} rows[] = {
		{"{maxUnavailable: -1}", "BadMaxUnavailable",
		 "pool sys/a: spec.maxUnavailable: -1 is negative, must be 0 or more nodes"},
		{"{maxUnavailable: '0%'}", "BadMaxUnavailable",
		 "pool sys/a: spec.maxUnavailable: \"0%\" must be a number of nodes or a "
		 "percentage "
		 "from \"1%\" to \"100%\""},
		{"{maxUnavailable: '7'}", "BadMaxUnavailable",
		 "pool sys/a: spec.maxUnavailable: \"7\" must be a number of nodes or a percentage "
		 "from \"1%\" to \"100%\""},
		{"{maxUnavailable: true}", "BadMaxUnavailable",
		 "pool sys/a: spec.maxUnavailable: a boolean, must be a number of nodes or a "
		 "percentage from \"1%\" to \"100%\""},
		{"{rdmaMode: exclusiv}", "BadRdmaMode",
		 "pool sys/a: spec.rdmaMode: \"exclusiv\" must be shared or exclusive; the nodes "
		 "keep the mode they have"},
		{"{rails: ['0000:1b:00.0', '00000000:1B:00.0']}", "BadRails",
		 "pool sys/a: spec.rails: entry 1, \"00000000:1B:00.0\", is listed before; name "
		 "each NIC once, by interface name, alternative name or PCI address; until then "
		 "the nodes keep the rails they have"},
		{"{nodeSelector: {matchLabels: {rdma.orbweaver.io/rail.model: mixed}}}",
		 "BadSelector",
		 "pool sys/a: spec.nodeSelector: \"rdma.orbweaver.io/rail.model\" is written by "
		 "the operator and follows from rails; select the nodes by another label"},
		{"{nodeSelector: {matchExpressions: [{key: rdma.orbweaver.io/capable, operator: "
		 "Exists}]}}",
		 "BadSelector",
		 "pool sys/a: spec.nodeSelector: \"rdma.orbweaver.io/capable\" is written by the "
		 "operator and follows from rails; select the nodes by another label"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *pools = str_printf("{sys/a: {spec: %s}}", rows[i].spec);
		json_auto_t *world = world_with(pools);

		assert_ready(world, "False", rows[i].reason, rows[i].message);
	}
}

TEST(a_drain_timeout_is_a_number_with_a_unit)
{
	static const struct {
		const char *text;
		int64_t seconds; /* 0: BadDrainTimeout */
	} rows[] = {{"90s", 90}, {"30m", 1800}, {"2h", 7200}, {"", 0},
		    {"30", 0},   {"m", 0},      {"0m", 0},    {"-1h", 0},
		    {"1d", 0},   {"1.5h", 0},   {"1h30m", 0}, {"99999999999999999999s", 0}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *pools = str_printf(
			"{sys/a: {metadata: {annotations: {" POOL_DRAIN_TIMEOUT ": '%s'}}, "
			"spec: {maxUnavailable: 1}}}",
			rows[i].text);
		auto_free char *wrong = str_printf(
			"pool sys/a: metadata.annotations[" POOL_DRAIN_TIMEOUT "]: \"%s\" must be "
			"a number with s, m or h, such as \"30m\"; until then drains have no "
			"deadline",
			rows[i].text);
		json_auto_t *world = world_with(pools);
		int64_t seconds = 0;

		(void)pool_config_drain_timeout(json_at(world, KIND_POOL_CONFIG, "sys/a"),
						&seconds);
		assert_int_equal(rows[i].seconds ? seconds : 0, rows[i].seconds);
		if (rows[i].seconds)
			assert_ready(world, "True", "InEffect", "2 of 2 nodes follow");
		else
			assert_ready(world, "False", "BadDrainTimeout", wrong);
	}
}

TEST(so_many_nodes_may_be_tainted)
{
	static const struct {
		const char *text;
		size_t limit;
		bool is_good;
	} rows[] = {{"3", 3, true}, {"0", 0, true},     {"10%", 2, true}, {"1%", 1, true},
		    {"", 7, false}, {"many", 7, false}, {"-1", 7, false}, {"101%", 7, false}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *pools = str_printf(
			"{sys/a: {metadata: {annotations: {" POOL_TAINT_DEGRADED ": '%s'}}, "
			"spec: {}}}",
			rows[i].text);
		auto_free char *wrong = str_printf(
			"pool sys/a: metadata.annotations[" POOL_TAINT_DEGRADED "]: \"%s\" must be "
			"a number of nodes, or a percentage such as \"10%%\"; until then no node "
			"is tainted or cordoned",
			rows[i].text);
		json_auto_t *world = world_with(pools);
		size_t limit = 7;

		assert_int_equal(pool_config_taint_limit(json_at(world, KIND_POOL_CONFIG, "sys/a"),
							 POOL_TAINT_DEGRADED, 20, &limit),
				 rows[i].is_good);
		assert_int_equal(limit, rows[i].limit);
		if (rows[i].is_good)
			assert_ready(world, "True", "InEffect", "2 of 2 nodes follow");
		else
			assert_ready(world, "False", "BadTaintLimit", wrong);
	}
}

TEST(selectors_follow_the_api_reference)
{
	static const struct {
		const char *selector;
		bool matches;
	} rows[] = {
		{"{}", true},
		{"{matchLabels: {gpu: h100}}", true},
		{"{matchLabels: {gpu: a100}}", false},
		{"{matchLabels: {gpu: h100, zone: a}}", false},
		{"{matchExpressions: [{key: gpu, operator: In, values: [a100, h100]}]}", true},
		{"{matchExpressions: [{key: zone, operator: In, values: [a]}]}", false},
		{"{matchExpressions: [{key: gpu, operator: NotIn, values: [h100]}]}", false},
		{"{matchExpressions: [{key: zone, operator: NotIn, values: [a]}]}", true},
		{"{matchExpressions: [{key: gpu, operator: Exists}]}", true},
		{"{matchExpressions: [{key: zone, operator: Exists}]}", false},
		{"{matchExpressions: [{key: zone, operator: DoesNotExist}]}", true},
		{"{matchExpressions: [{key: gpu, operator: DoesNotExist}]}", false},
		{"{matchExpressions: [{key: gpu, operator: Exists}, {key: gpu, operator: "
		 "DoesNotExist}]}",
		 false},
	};
	json_auto_t *labels = yaml("{gpu: h100}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *selector = yaml(rows[i].selector);

		if (label_selector_matches(selector, labels) != rows[i].matches)
			fail_msg("%s", rows[i].selector);
	}
}

/* The pools, all in a namespace that is trusted. */
static json_t *world_of(const char *pools)
{
	json_t *world = json_object(), *named = yaml(pools), *pool;
	const char *name;

	json_each (named, name, pool)
		json_put_str(json_need_object(pool, "metadata"), "namespace", "kube-system");
	json_put(world, KIND_POOL_CONFIG, named);
	return world;
}

TEST(the_mode_changes_only_when_there_is_one_answer)
{
	static const struct {
		const char *pools, *current, *mode;
	} rows[] = {
		{"{}", "exclusive", ""},
		{"{a: {spec: {rdmaMode: shared}}}", "exclusive", "shared"},
		{"{a: {spec: {}}}", "exclusive", ""},
		{"{a: {spec: {rdmaMode: shared}}, b: {spec: {rdmaMode: shared}}}", "exclusive",
		 "exclusive"},
		{"{a: {spec: {rdmaMode: wrong}}}", "exclusive", "exclusive"},
		{"{a: {spec: {rdmaMode: wrong}}}", "", ""},
		{"{a: {spec: {rdmaMode: shared, nodeSelector: {matchLabels: {no: 'no'}}}}}",
		 "exclusive", ""},
		{"{a: {spec: {nodeSelector: []}}}", "exclusive", "exclusive"},
		{"{a: {spec: {nodeSelector: []}}, b: {spec: {rdmaMode: shared}}}", "exclusive",
		 "shared"},
		{"{a: {spec: {rdmaMode: shared, nodeSelector: {matchLabels: "
		 "{rdma.orbweaver.io/rail.count: '8'}}}}}",
		 "exclusive", "exclusive"},
		{"{a: {spec: {rdmaMode: shared, ovsHardwareOffloadConfig: {name: x}}}}", "", ""},
	};
	json_auto_t *labels = yaml("{gpu: h100}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_of(rows[i].pools);

		assert_string_equal(pool_config_rdma_mode(world, labels, rows[i].current),
				    rows[i].mode);
	}
}

TEST(the_block_of_guids_changes_only_when_there_is_one_answer)
{
#define GUIDS                                                                                      \
	"guidPool: {rangeStart: '06:00:00:00:00:00:00:00', rangeEnd: '06:ff:ff:ff:ff:ff:ff:ff'}"
	static const struct {
		const char *pools;
		int current, block;
	} rows[] = {
		{"{}", 2, 0},
		{"{a: {spec: {" GUIDS "}}}", 2, 6},
		{"{a: {spec: {}}}", 2, 0},
		{"{a: {spec: {" GUIDS "}}, b: {spec: {" GUIDS "}}}", 2, 2},
		{"{a: {spec: {guidPool: {rangeStart: x}}}}", 2, 2},
		{"{a: {spec: {guidPool: {rangeStart: x}}}}", 0, 0},
		{"{a: {spec: {" GUIDS ", nodeSelector: {matchLabels: {no: 'no'}}}}}", 2, 0},
		{"{a: {spec: {" GUIDS ", nodeSelector: []}}}", 2, 2},
	};
	json_auto_t *labels = yaml("{gpu: h100}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_of(rows[i].pools);

		assert_int_equal(pool_config_guid_block(world, labels, rows[i].current),
				 rows[i].block);
	}
}

TEST(a_deleted_pool_is_let_go)
{
	json_auto_t *world = world_with(
		"{sys/a: {metadata: {deletionTimestamp: '2026-01-31T09:00:00Z', finalizers:"
		" [poolconfig.finalizers.sriovnetwork.openshift.io, of/others]}, spec: {}}}");
	auto_plan struct plan first = {0}, second = {0};
	json_auto_t *rest = yaml("[of/others]");
	struct err err = {0};
	const json_t *op;

	assert_int_equal(pool_config_reconcile(world, "sys/a", &first, &err), 0);
	assert_int_equal(json_array_size(first.ops), 1);
	op = json_array_get(first.ops, 0);
	assert_string_equal(json_str_at(op, "op"), "meta");
	assert_true(json_same(json_at(op, "metadata", "finalizers"), rest));

	json_object_set(json_at(world, KIND_POOL_CONFIG, "sys/a", "metadata"), "finalizers", rest);
	assert_int_equal(pool_config_reconcile(world, "sys/a", &second, &err), 0);
	assert_true(plan_is_empty(&second));
}

TEST(a_node_follows_when_its_nics_have_the_settings)
{
	static const struct {
		const char *nic, *settings, *ready;
		bool unmet;
	} rows[] = {
		{"settings: {pfc: [3]}", "{pfc: [3]}", "False", false},
		{"settings: {pfc: [3]}", "{pfc: []}", "True", true},
		{"settings: {ecn: [3]}", "{pfc: []}", "True", true},
		{"settings: {ecn: [3]}, ifSupported: [ecn]", "{pfc: []}", "False", false},
		{"settings: {pfc: [3]}, unlessProtected: true", "{pfc: []}", "False", true},
		{"settings: {pfc: [3]}, unlessProtected: true", "{pfc: []}", "True", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = str_printf(
			"{metadata: {generation: 2}, spec: {nicSettings: [{pciAddress: a, %s}]}, "
			"status: {observedGeneration: 2, conditions: [{type: Ready, status: "
			"'%s'}], "
			"interfaces: [{pciAddress: a, settings: %s}]}}",
			rows[i].nic, rows[i].ready, rows[i].settings);
		json_auto_t *world = world_with("{sys/a: {spec: {}}}"), *node_state = yaml(text);
		json_auto_t *reports = json_object(), *labels = json_object();

		pool_config_put_report(world, labels, node_state, reports);
		if ((json_at(json_object_iter_value(json_object_iter(reports)), "unmet") != NULL) !=
		    rows[i].unmet)
			fail_msg("%zu: %s", i, json_text(reports));
	}
}
