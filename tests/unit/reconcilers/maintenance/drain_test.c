// SPDX-License-Identifier: Apache-2.0
/*
 * The scheduler of drains, one situation after the other. Random orders of them:
 * drain_random_test.c.
 */
#include "tests/unit/reconcilers/maintenance/drain_world.h"

/* ---- one situation after the other ----------------------------------------------------------- */

TEST(without_opt_in_nothing_is_written)
{
	static const char *const changes[] = {
		"no maxUnavailable", "disableDrain", "stop",
		"no pool",           "two pools",    "foreign namespace"};

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		json_auto_t *world = world_of_nodes(i == 0 ? NULL : "1", 2), *ops = NULL;
		json_t *pools = json_at(world, KIND_POOL_CONFIG);

		if (i == 1)
			json_put(world, "sriovoperatorconfigs",
				 json_pack("{s:{s:{s:s, s:s}, s:{s:b}}}", NS "/default", "metadata",
					   "name", "default", "namespace", NS, "spec",
					   "disableDrain", 1));
		for (int n = 0; n < 2 && i == 2; n++)
			json_put_str(json_need_object(
					     json_at(state_of(world, n ? "w1" : "w0"), "metadata"),
					     "annotations"),
				     DRAIN_STOP_ANNOTATION, "stop");
		if (i == 3)
			json_object_clear(pools);
		if (i == 4)
			json_put(pools, "kube-system/other", json_deep_copy(pool_of(world)));
		if (i == 5)
			json_put_str(json_at(pool_of(world), "metadata"), "namespace", "somebody");
		ops = decide(world);
		if (json_array_size(ops) > 0)
			fail_msg("%s: %s", changes[i], json_text(ops));
	}
}

/* It is about all nodes, as policies are. */
TEST(a_switch_in_an_untrusted_namespace_stops_nothing)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

	json_put(world, "sriovoperatorconfigs",
		 json_pack("{s:{s:{s:s, s:s}, s:{s:b}}}", "tenant/default", "metadata", "name",
			   "default", "namespace", "tenant", "spec", "disableDrain", 1));
	ops = decide(world);
	assert_true(json_array_size(ops) > 0);
}

TEST(one_node_after_the_other)
{
	json_auto_t *world = world_of_nodes("1", 3), *ops = NULL;

	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	assert_string_equal(current(world, "w0"), "Draining");
	assert_string_equal(
		json_str_at(node_of(world, "w0"), "metadata", "annotations", DRAIN_NODE_STATE),
		"Drain_Required");
	assert_string_equal(current(world, "w1"), "Idle");
	assert_reason(world, "w0", "WaitsForKubelet");
	assert_reason(world, "w1", "WaitsForSlot");
	json_decref(ops);

	/* The kubelet gives nothing away any more: now, and only its pods. */
	agent_withdraws(world, "w0");
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
	assert_int_equal(begun(world), 1);
	json_decref(ops);

	/* The pod has ended, the agent is at work, then done. */
	json_put(json_at(state_of(world, "w0"), "status"), "impact",
		 json_pack("{s:s}", "class", "none"));
	json_put(json_at(state_of(world, "w0"), "status"), "conditions",
		 json_pack("[{s:s, s:s}]", "type", "Progressing", "status", "True"));
	turns(world, 1);
	assert_string_equal(current(world, "w0"), "DrainComplete");
	assert_reason(world, "w0", "AgentWorks");
	assert_string_equal(current(world, "w1"), "Idle");
	json_put(json_at(state_of(world, "w0"), "status"), "conditions", json_array());
	json_put_str(json_at(state_of(world, "w0"), "status"), "syncStatus", "Succeeded");
	ops = turn(world);
	assert_string_equal(current(world, "w0"), "Idle");
	assert_null(json_at(state_of(world, "w0"), "status", "maintenance"));
	turns(world, 1);
	assert_string_equal(current(world, "w1"), "Draining");
	assert_string_equal(
		json_str_at(node_of(world, "w0"), "metadata", "annotations", DRAIN_NODE_STATE),
		"Idle");
}

/* Complaint: the state flips to and fro. */
TEST(nothing_is_written_twice)
{
	json_auto_t *world = world_of_nodes("1", 3), *ops = NULL;

	turns(world, 2);
	ops = decide(world);
	assert_int_equal(count_ops(ops, "meta") + count_ops(ops, "status-part") +
				 count_ops(ops, "event"),
			 0);
}

/* Its annotations were written, its status was not: somebody else had changed it meanwhile. */
TEST(the_beginning_is_told_also_by_the_next_plan)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL, *again = NULL;

	json_decref(turn(world));
	json_object_del(json_at(state_of(world, "w0"), "status"), "maintenance");
	ops = turn(world);
	assert_int_equal(count_ops(ops, "event"), 1);
	again = turn(world);
	assert_int_equal(count_ops(again, "event"), 0);
}

/* Complaint: all nodes at once. And 10 % of 5 is one, not none. */
TEST(budgets_round_to_one_and_count_who_is_away)
{
	static const struct {
		const char *max;
		int nodes, down, cordoned;
		size_t begun;
	} cases[] = {
		{"10%", 5, 0, 0, 1},
		{"50%", 5, 0, 0, 2},
		{"0", 5, 0, 0, 0},
		{"2", 5, 0, 0, 2},
		{"2", 5, 1, 0, 1},
		{"2", 5, 2, 0, 0},
		{"1", 5, 1, 0, 0},
		{"9", 5, 0, 0, 5},
		/* A cordoned node is away already: it costs nothing. */
		{"1", 5, 0, 1, 1},
		{"1", 5, 0, 2, 0},
		{"3", 5, 1, 1, 2},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *world = world_of_nodes(cases[i].max, cases[i].nodes);

		for (int n = 0; n < cases[i].cordoned; n++)
			json_put_bool(json_at(node_of(world, n ? "w1" : "w0"), "spec"),
				      "unschedulable", true);
		for (int n = 0; n < cases[i].down; n++)
			set_ready(world, n ? "w4" : "w3", false);
		turns(world, 1);
		if (begun(world) != cases[i].begun)
			fail_msg("case %zu: %zu begun, wanted %zu", i, begun(world),
				 cases[i].begun);
	}
}

TEST(a_cordon_for_links_takes_no_slot)
{
	json_auto_t *world = world_of_nodes("1", 3);

	for (int n = 0; n < 2; n++) {
		json_t *node = node_of(world, n ? "w1" : "w0");

		json_put_bool(json_at(node, "spec"), "unschedulable", true);
		json_put_str(json_need_object(json_at(node, "metadata"), "annotations"),
			     DRAIN_CORDONED_ANNOTATION, DRAIN_CORDONED_FOR_LINKS);
	}
	turns(world, 1);
	assert_int_equal(begun(world), 1);
}

TEST(the_cheapest_goes_first_and_who_has_begun_before_it)
{
	json_auto_t *world = world_of_nodes("1", 3);

	must_end(world, "w0", "ml/p0-b");
	looked_at_pod(world, "ml/p0-b", new_pod("p0-b", "w0", true));
	turns(world, 1);
	assert_string_equal(current(world, "w1"), "Draining");
	must_end(world, "w1", "ml/p1-b");
	must_end(world, "w1", "ml/p1-c");
	turns(world, 2);
	assert_string_equal(current(world, "w1"), "Draining");
	assert_int_equal(begun(world), 1);
}

TEST(what_became_unnecessary_is_withdrawn_at_any_time)
{
	static const char *const reasons[] = {"the wish is gone", "the pool forbids it", "stop"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

		turns(world, 1);
		agent_withdraws(world, "w0");
		if (i == 0) {
			json_put(json_at(state_of(world, "w0"), "status"), "impact",
				 json_pack("{s:s}", "class", "none"));
			json_put_str(json_at(state_of(world, "w0"), "status"), "syncStatus",
				     "Succeeded");
		} else if (i == 1) {
			json_object_del(json_at(pool_of(world), "spec"), "maxUnavailable");
		} else {
			json_put_str(json_at(state_of(world, "w0"), "metadata", "annotations"),
				     DRAIN_STOP_ANNOTATION, "stop");
		}
		ops = turn(world);
		assert_int_equal(count_ops(ops, "evict"), 0);
		assert_string_equal(current(world, "w0"), "Idle");
		assert_reason(world, "w0", "NothingToDrain");
	}
}

TEST(nothing_is_asked_of_what_the_agent_has_not_seen)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

	turns(world, 1);
	agent_withdraws(world, "w0");
	json_put_int(json_at(state_of(world, "w0"), "metadata"), "generation", 2);
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	assert_reason(world, "w0", "WaitsForAgent");
	assert_string_equal(current(world, "w0"), "Draining");
}

/* Complaint: it hangs, and does not say why. */
TEST(a_budget_that_refuses_is_named_with_its_numbers)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

	turns(world, 1);
	agent_withdraws(world, "w0");
	json_put(json_need_object(world, BOX_EVICTIONS), "ml/p0",
		 json_pack("{s:s, s:i, s:i, s:s, s:s}", "uid", "uid-p0", "atMs", 100000, "tries", 1,
			   "reason", "PdbRefuses", "message",
			   "The disruption budget train needs 3 healthy pods and has 3 currently"));
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	assert_int_equal(count_ops(ops, "event"), 1);
	assert_reason(world, "w0", "PdbRefuses");
	assert_string_equal(
		json_str_at(draining(world, "w0"), "message"),
		"pod ml/p0: The disruption budget train needs 3 healthy pods and has 3 currently");
	assert_string_equal(json_str_at(json_array_get(json_at(state_of(world, "w0"), "status",
							       "maintenance", "pods"),
						       0),
					"reason"),
			    "PdbRefuses");
	json_decref(ops);

	/* Again, and again later and later. */
	json_put_int(json_at(world, "env"), "nowMs", 105000);
	look_box(world);
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
	assert_int_equal(count_ops(ops, "event"), 0);
	json_decref(ops);
	json_put_int(json_at(world, BOX_EVICTIONS, "ml/p0"), "tries", 4);
	json_put_int(json_at(world, "env"), "nowMs", 139999);
	look_box(world);
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	json_decref(ops);
	json_put_int(json_at(world, "env"), "nowMs", 140000);
	look_box(world);
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
}

TEST(pods_that_nobody_makes_anew_stay_unless_the_pool_says_so)
{
	json_auto_t *world = world_of_nodes("1", 2);

	looked_at_pod(world, "ml/p0", new_pod("p0", "w0", false));
	turns(world, 1);
	assert_string_equal(current(world, "w0"), "Idle");
	assert_reason(world, "w0", "UnmanagedPod");
	/* The slot is another's. */
	assert_string_equal(current(world, "w1"), "Draining");
	json_put(json_at(state_of(world, "w1"), "status"), "impact", json_object());
	json_put_str(json_at(state_of(world, "w1"), "status"), "syncStatus", "Succeeded");
	json_put_str(json_need_object(json_at(pool_of(world), "metadata"), "annotations"),
		     DRAIN_UNMANAGED_ANNOTATION, "true");
	turns(world, 2);
	assert_string_equal(current(world, "w0"), "Draining");
}

/* Complaint: a pod that is elsewhere by now is asked again and again. */
TEST(a_pod_that_ends_or_is_another_is_not_asked)
{
	static const char *const reasons[] = {"PodTerminating", "PodTerminating", "AsksPods",
					      "AsksPods",       "AsksPods",       "AsksPods"};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
		json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;
		json_t *pod = NULL;

		turns(world, 1);
		agent_withdraws(world, "w0");
		pod = new_pod("p0", i == 2 ? "w9" : "w0", true);
		if (i < 2)
			json_put_str(json_at(pod, "metadata"), "deletionTimestamp", NOW);
		if (i == 1)
			json_put(json_at(pod, "metadata"), "finalizers",
				 json_pack("[s]", "example.com/x"));
		if (i == 3 || i == 4)
			json_put_str(json_at(pod, "status"), "phase",
				     i == 3 ? "Succeeded" : "Failed");
		looked_at_pod(world, "ml/p0", pod);
		if (i == 5)
			looked_at_pod(world, "ml/p0", NULL);
		ops = turn(world);
		assert_int_equal(count_ops(ops, "evict"), 0);
		assert_reason(world, "w0", reasons[i]);
	}
}

TEST(who_is_no_pod_keeps_the_others_from_being_asked)
{
	json_auto_t *world = world_of_nodes("1", 2);

	json_put(json_at(state_of(world, "w0"), "status", "impact"), "others",
		 json_pack("[{s:s, s:s}]", "holder", "dpdk (pid 7)", "device", "0000:3b:00.3"));
	turns(world, 1);
	assert_reason(world, "w0", "HeldByOthers");
	assert_string_equal(current(world, "w0"), "Idle");
	assert_string_equal(current(world, "w1"), "Draining");
}

/* Complaint: more is evicted than needed, and the node is cordoned for it. */
TEST(only_pods_that_hold_what_changes_are_asked)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;
	const json_t *op;
	size_t i;

	looked_at_pod(world, "ml/other", new_pod("other", "w0", true));
	turns(world, 1);
	agent_withdraws(world, "w0");
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
	assert_int_equal(count_ops(ops, "cordon"), 0);
	json_array_foreach (ops, i, op)
		if (str_eq(json_str_at(op, "op"), "evict"))
			assert_string_equal(json_str_at(op, "key"), "ml/p0");
}

/* Complaint: pods of DaemonSets stay, and lose their VF without a word. */
TEST(a_daemonsets_pod_is_asked_like_others)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;
	json_t *pod = new_pod("p0", "w0", true);

	json_put_str(json_array_get(json_at(pod, "metadata", "ownerReferences"), 0), "kind",
		     "DaemonSet");
	looked_at_pod(world, "ml/p0", pod);
	turns(world, 1);
	agent_withdraws(world, "w0");
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
	/* Its successor gets no VF of those, so it waits. */
	assert_string_equal(json_str_at(json_array_get(json_at(state_of(world, "w0"), "status",
							       "maintenance", "pods"),
						       0),
					"pod"),
			    "ml/p0");
}

/* Complaint: a node is drained again and again. */
TEST(a_node_that_is_through_is_not_begun_again)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;
	json_t *status = NULL;

	turns(world, 1);
	status = json_at(state_of(world, "w0"), "status");
	json_put(status, "impact", json_pack("{s:s}", "class", "none"));
	json_put_str(status, "syncStatus", "Succeeded");
	turns(world, 2);
	assert_string_equal(current(world, "w0"), "Idle");
	looked_at_pod(world, "ml/p0", new_pod("p0", "w0", true));
	ops = decide(world);
	assert_int_equal(json_array_size(ops), 0);
}

TEST(waits_until_the_node_offers_less)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

	turns(world, 1);
	agent_withdraws(world, "w0");
	json_put(json_at(state_of(world, "w0"), "status"), "resources",
		 json_pack("[{s:s, s:i}]", "name", "spidernet.io/x", "healthy", 2));
	json_put(json_at(world, BOX_DRAIN_LOOK, DRAIN_KEY, KIND_NODE), "w0",
		 json_pack("{s:{s:{s:s}}}", "status", "allocatable", "spidernet.io/x", "1k"));
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	assert_reason(world, "w0", "WaitsForKubelet");
	json_decref(ops);
	json_put(json_at(world, BOX_DRAIN_LOOK, DRAIN_KEY, KIND_NODE), "w0",
		 json_pack("{s:{s:{s:s}}}", "status", "allocatable", "spidernet.io/x", "2"));
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
}

TEST(a_node_that_is_not_ready_is_not_begun)
{
	json_auto_t *world = world_of_nodes("5", 1);

	set_ready(world, "w0", false);
	turns(world, 1);
	assert_reason(world, "w0", "NodeNotReady");
	assert_string_equal(current(world, "w0"), "Idle");
}

TEST(a_node_whose_agent_fails_keeps_its_slot)
{
	json_auto_t *world = world_of_nodes("1", 2), *ops = NULL;

	turns(world, 1);
	json_put(json_at(state_of(world, "w0"), "status"), "impact",
		 json_pack("{s:s}", "class", "none"));
	json_put_str(json_at(state_of(world, "w0"), "status"), "syncStatus", "Failed");
	json_put_str(json_at(state_of(world, "w0"), "status"), "lastSyncError",
		     "the kernel said no");
	ops = turn(world);
	assert_reason(world, "w0", "DrainStopped");
	assert_int_equal(count_ops(ops, "event"), 1);
	turns(world, 2);
	assert_string_equal(current(world, "w0"), "DrainComplete");
	assert_string_equal(current(world, "w1"), "Idle");
}

TEST(another_drainer_is_asked_and_left_alone)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;
	json_t *annotations = NULL;

	annotations = json_need_object(json_at(state_of(world, "w0"), "metadata"), "annotations");
	json_put_str(annotations, DRAIN_EXTERNAL, "true");
	turns(world, 1);
	assert_reason(world, "w0", "ExternalDrainer");
	annotations = json_at(state_of(world, "w0"), "metadata", "annotations");
	assert_string_equal(json_str_at(annotations, DRAIN_DESIRED_STATE), "Drain_Required");
	assert_string_equal(json_str_at(annotations, DRAIN_CURRENT_STATE), "Idle");
	json_put_str(annotations, DRAIN_CURRENT_STATE, "Draining");
	agent_withdraws(world, "w0");
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict") + count_ops(ops, "meta"), 0);
}

TEST(asks_so_many_at_a_time)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

	for (int i = 0; i < 20; i++) {
		auto_free char *name = str_printf("q%d", i), *key = str_printf("ml/q%d", i);
		json_t *pod = new_pod(name, "w0", true);

		must_end(world, "w0", key);
		if (i < 3)
			json_put_str(json_at(pod, "metadata"), "deletionTimestamp", NOW);
		looked_at_pod(world, key, pod);
	}
	turns(world, 1);
	agent_withdraws(world, "w0");
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), DRAIN_WINDOW - 3);
}

TEST(what_was_read_long_ago_is_read_again_first)
{
	json_auto_t *world = world_of_nodes("1", 1), *ops = NULL;

	json_put_int(json_at(world, "env"), "nowMs", 100000 + DRAIN_LOOK_OLD_MS + 1);
	ops = turn(world);
	assert_string_equal(current(world, "w0"), "Idle");
	assert_reason(world, "w0", "LooksAtPods");
	assert_int_equal(count_ops(ops, "post"), 1);
	assert_int_equal(count_ops(ops, "requeue"), 1);
}

TEST(a_node_that_is_deleted_half_way_frees_its_slot)
{
	json_auto_t *world = world_of_nodes("1", 2);

	turns(world, 1);
	assert_string_equal(current(world, "w0"), "Draining");
	json_object_del(json_at(world, KIND_NODE), "w0");
	turns(world, 1);
	assert_string_equal(current(world, "w1"), "Draining");
}

/* What the server refuses about one node keeps no other from being drained or given back. */
TEST(what_is_written_about_a_node_is_a_group_of_its_own)
{
	json_auto_t *world = world_of_nodes("2", 3), *ops = NULL, *evictions = NULL;
	json_t *op;
	size_t i;

	ops = turn(world);
	json_array_foreach (ops, i, op) {
		const char *key = json_str_or(json_at(op, "key"), "");
		const char *group = json_str_or(json_at(op, "group"), "");
		const char *slash = strrchr(key, '/');

		if (str_eq(json_str_at(op, "op"), "meta") ||
		    str_eq(json_str_at(op, "op"), "status-part")) {
			assert_string_equal(group, slash ? slash + 1 : key);
			assert_true(json_list_has(json_at(op, "needs"), group));
		}
	}
	agent_withdraws(world, "w0");
	evictions = turn(world);
	assert_int_equal(count_ops(evictions, "evict"), 1);
	json_array_foreach (evictions, i, op)
		if (str_eq(json_str_at(op, "op"), "evict"))
			assert_true(json_list_has(json_at(op, "needs"), "w0"));
}
