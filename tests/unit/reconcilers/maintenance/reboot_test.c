// SPDX-License-Identifier: Apache-2.0
/*
 * Reboots by the scheduler of drains: one situation after the other, among them what users of the
 * SR-IOV network operator suffered from. Random orders of them: drain_random_test.c.
 */
#include "reconcilers/sriov/pool_config.h"
#include "tests/unit/reconcilers/maintenance/drain_world.h"

#define CAUSE "rdma-mode-exclusive"

/* ---- a node that has to boot ----------------------------------------------------------------- */

static json_t *annotations_of(json_t *object)
{
	return json_need_object(json_at(object, "metadata"), "annotations");
}

static const char *annotation_of(json_t *object, const char *name)
{
	return json_str_at(object, "metadata", "annotations", name);
}

/* What the agent says of a node that runs in this boot. */
static void must_boot(json_t *world, const char *node, const char *boot)
{
	json_t *status = json_at(state_of(world, node), "status");

	json_put(status, "impact",
		 json_pack("{s:s, s:s, s:s, s:s}", "class", "reboot", "reason", "RdmaModeNextBoot",
			   "message", "rdmaMode is shared", "cause", CAUSE));
	json_put(status, "boots", json_pack("{s:s}", "id", boot));
	json_put_str(status, "syncStatus", "InProgress");
}

/* It booted, and all is as wanted. */
static void has_booted(json_t *world, const char *node, const char *boot)
{
	json_t *status = json_at(state_of(world, node), "status");

	json_put(status, "impact", json_pack("{s:s}", "class", "none"));
	json_put(status, "boots", json_pack("{s:s}", "id", boot));
	json_put_str(status, "syncStatus", "Succeeded");
}

static bool is_cordoned(json_t *world, const char *node)
{
	return json_is_true(json_at(node_of(world, node), "spec", "unschedulable"));
}

/* The shell reads the node as it is, and the pods on it: takes the list, NULL: none. */
static void looks_on(json_t *world, const char *node, json_t *pods)
{
	json_t *copy = json_deep_copy(node_of(world, node));

	drain_project(copy);
	json_put(json_need_object(look_box(world), KIND_NODE), node, copy);
	json_put(json_need_object(look_box(world), BOX_PODS_OF_NODE), node,
		 pods ? pods : json_object());
}

static json_t *one_pod(const char *name, const char *node, const char *owner)
{
	json_t *pod = new_pod(name, node, owner != NULL);
	auto_free char *key = str_printf("ml/%s", name);

	if (owner)
		json_put_str(json_array_get(json_at(pod, "metadata", "ownerReferences"), 0), "kind",
			     owner);
	return json_pack("{s:o}", key, pod);
}

/* So many nodes have to boot for the mode that their pool wants, and pods were read: one each. */
static json_t *world_of_boots(const char *max_unavailable, int n)
{
	json_t *world = new_world(max_unavailable);

	json_put_str(json_at(pool_of(world), "spec"), "rdmaMode", "exclusive");
	for (int i = 0; i < n; i++) {
		auto_free char *node = str_printf("w%d", i), *pod = str_printf("p%d", i);

		add_node(world, node);
		must_boot(world, node, "boot-1");
		looks_on(world, node, one_pod(pod, node, "ReplicaSet"));
	}
	return world;
}

static const char *permission(json_t *world, const char *node)
{
	return json_str_or(
		json_at(state_of(world, node), "metadata", "annotations", DRAIN_REBOOT_ANNOTATION),
		"");
}

/* Is the status of the event's object written before `end`? */
static bool is_status_before(const json_t *ops, const json_t *event, size_t end)
{
	for (size_t i = 0; i < end; i++) {
		const json_t *op = json_array_get(ops, i);

		if (str_starts(json_str_or(json_at(op, "op"), ""), "status") &&
		    str_eq(json_str_at(op, "key"), json_str_at(event, "key")))
			return true;
	}
	return false;
}

/* Where the write of the status fails it has been told all the same. */
static bool has_event(const json_t *ops, const char *reason)
{
	const json_t *op;
	size_t i;

	json_array_foreach ((json_t *)ops, i, op)
		if (str_eq(json_str_at(op, "op"), "event") &&
		    str_eq(json_str_at(op, "reason"), reason))
			return !is_status_before(ops, op, i);
	return false;
}

/* As far as its agent is allowed to reboot it. */
static void empty_node(json_t *world, const char *node)
{
	turns(world, 2);
	looks_on(world, node, NULL);
	turns(world, 1);
	assert_string_equal(permission(world, node), "boot-1 " CAUSE);
}

/* ---- one situation after the other ----------------------------------------------------------- */

/* Complaint: there is no way to forbid reboots. */
TEST(without_opt_in_no_node_is_touched)
{
	static const char *const changes[] = {"no maxUnavailable",
					      "no rdmaMode in the pool",
					      "another mode in the pool",
					      "forbidden by the pool",
					      "forbidden by the node",
					      "disableDrain",
					      "stop",
					      "no pool",
					      "no boot id",
					      "another cause"};

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		json_auto_t *world = world_of_boots(i == 0 ? NULL : "1", 1), *ops = NULL;
		json_t *spec = json_at(pool_of(world), "spec");

		if (i == 1)
			json_object_del(spec, "rdmaMode");
		if (i == 2)
			json_put_str(spec, "rdmaMode", "shared");
		if (i == 3)
			json_put_str(annotations_of(pool_of(world)), POOL_ALLOW_REBOOT, "false");
		if (i == 4)
			json_put_str(annotations_of(node_of(world, "w0")), POOL_ALLOW_REBOOT,
				     "false");
		if (i == 5)
			json_put(world, "sriovoperatorconfigs",
				 json_pack("{s:{s:{s:s, s:s}, s:{s:b}}}", NS "/default", "metadata",
					   "name", "default", "namespace", NS, "spec",
					   "disableDrain", 1));
		if (i == 6)
			json_put_str(annotations_of(state_of(world, "w0")), DRAIN_STOP_ANNOTATION,
				     "stop");
		if (i == 7)
			json_object_clear(json_at(world, KIND_POOL_CONFIG));
		if (i == 8)
			json_object_del(json_at(state_of(world, "w0"), "status"), "boots");
		/* Complaint: reboot loops for a value of the firmware. It is not ours. */
		if (i == 9)
			json_put_str(json_at(state_of(world, "w0"), "status", "impact"), "cause",
				     "firmware-0000:3b:00.0-NUM_OF_VFS-8");
		ops = decide(world);
		if (json_array_size(ops) > 0)
			fail_msg("%s: %s", changes[i], json_text(ops));
	}
}

/* From the first write to the last. */
TEST(one_node_after_the_other_is_emptied_rebooted_and_given_back)
{
	json_auto_t *world = world_of_boots("1", 2), *ops = NULL;

	/* Its slot first, then the cordon, and only then anybody is asked to end. */
	ops = turn(world);
	assert_string_equal(current(world, "w0"), "Draining");
	assert_string_equal(annotation_of(node_of(world, "w0"), DRAIN_NODE_STATE),
			    "Reboot_Required");
	assert_string_equal(annotation_of(state_of(world, "w0"), DRAIN_DESIRED_STATE),
			    "Reboot_Required");
	assert_false(is_cordoned(world, "w0"));
	assert_int_equal(count_ops(ops, "evict"), 0);
	assert_reason(world, "w0", "CordonsNode");
	assert_reason(world, "w1", "WaitsForSlot");
	json_decref(ops);
	/* What it was cordoned for meanwhile, a bad link, may end before the drain does. */
	json_put_bool(json_need_object(node_of(world, "w0"), "spec"), "unschedulable", true);
	json_put_str(annotations_of(node_of(world, "w0")), DRAIN_CORDONED_ANNOTATION,
		     DRAIN_CORDONED_FOR_LINKS);
	ops = turn(world);
	assert_true(is_cordoned(world, "w0"));
	assert_string_equal(annotation_of(node_of(world, "w0"), DRAIN_CORDONED_ANNOTATION),
			    DRAIN_CORDONED_BY);
	assert_int_equal(count_ops(ops, "evict"), 0);
	json_decref(ops);

	/* What was read before the cordon does not count. */
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	json_decref(ops);
	looks_on(world, "w0", one_pod("p0", "w0", "ReplicaSet"));
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
	assert_string_equal(permission(world, "w0"), "");
	json_decref(ops);

	looks_on(world, "w0", NULL);
	ops = turn(world);
	assert_string_equal(current(world, "w0"), "DrainComplete");
	assert_string_equal(permission(world, "w0"), "boot-1 " CAUSE);
	assert_reason(world, "w0", "RebootUnderWay");
	assert_true(has_event(ops, "NodeReboots"));
	assert_string_equal(json_str_at(state_of(world, "w0"), "status", "maintenance", "state"),
			    "Rebooting");

	/* It goes down, and comes back in another boot. */
	set_ready(world, "w0", false);
	turns(world, 1);
	assert_reason(world, "w0", "RebootUnderWay");
	assert_int_equal(begun(world), 1);
	has_booted(world, "w0", "boot-2");
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_true(is_cordoned(world, "w0"));
	assert_string_equal(annotation_of(node_of(world, "w0"), DRAIN_NODE_STATE),
			    "Reboot_Required");
	set_ready(world, "w0", true);
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_false(is_cordoned(world, "w0"));
	assert_null(annotation_of(node_of(world, "w0"), DRAIN_CORDONED_ANNOTATION));
	assert_string_equal(current(world, "w0"), "Idle");
	assert_string_equal(permission(world, "w0"), "");
	assert_string_equal(annotation_of(node_of(world, "w0"), DRAIN_NODE_STATE), "Idle");
	turns(world, 1);
	assert_string_equal(current(world, "w1"), "Draining");
}

/* As the kubelet writes the object of its own static pod. */
static void make_static(json_t *world, json_t *pod)
{
	json_t *owner = json_array_get(json_at(pod, "metadata", "ownerReferences"), 0);

	json_put_str(json_at(node_of(world, "w0"), "metadata"), "uid", "u-w0");
	json_put_str(annotations_of(pod), "kubernetes.io/config.mirror", "x");
	json_put_str(owner, "apiVersion", "v1");
	json_put_str(owner, "kind", "Node");
	json_put_str(owner, "name", "w0");
	json_put_str(owner, "uid", "u-w0");
}

TEST(daemonsets_static_pods_and_the_operator_stay)
{
	json_auto_t *world = world_of_boots("1", 1), *ops = NULL;
	json_t *pods = one_pod("each", "w0", "DaemonSet"), *operator_pod;

	json_object_update_new(pods, one_pod("static", "w0", "Node"));
	make_static(world, json_object_get(pods, "ml/static"));
	json_object_update_new(pods, one_pod("over", "w0", "Job"));
	json_put_str(json_at(json_object_get(pods, "ml/over"), "status"), "phase", "Succeeded");
	json_object_update_new(pods, one_pod("op", "w0", "ReplicaSet"));
	operator_pod = json_object_get(pods, "ml/op");
	json_put_str(json_at(operator_pod, "metadata"), "namespace", NS);
	json_put_str(json_need_object(json_at(operator_pod, "metadata"), "labels"),
		     "app.kubernetes.io/name", "orbweaver-operator");
	turns(world, 2);
	looks_on(world, "w0", pods);
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 0);
	assert_string_equal(permission(world, "w0"), "boot-1 " CAUSE);
}

/* Any user can write it, and a reference to something like a Node; not its UID. */
TEST(a_pod_that_poses_as_a_static_one_keeps_no_node)
{
	static const char *const members[] = {"apiVersion", "kind", "name", "uid"};

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_auto_t *world = world_of_boots("1", 1), *ops = NULL;
		json_t *pods = one_pod("posing", "w0", "ReplicaSet");
		json_t *pod = json_object_get(pods, "ml/posing");

		make_static(world, pod);
		json_put_str(json_array_get(json_at(pod, "metadata", "ownerReferences"), 0),
			     members[i], "other");
		turns(world, 3);
		looks_on(world, "w0", pods);
		ops = turn(world);
		assert_int_equal(count_ops(ops, "evict"), 1);
	}
}

TEST(a_pod_that_nobody_makes_anew_keeps_the_node_from_being_begun)
{
	json_auto_t *world = world_of_boots("1", 2);

	looks_on(world, "w0", one_pod("bare", "w0", NULL));
	turns(world, 1);
	assert_reason(world, "w0", "UnmanagedPod");
	turns(world, 1);
	assert_false(is_cordoned(world, "w0"));
	assert_true(is_cordoned(world, "w1"));
}

/* Complaint: the node stays SchedulingDisabled, and the pod's name is in a log alone. */
TEST(who_keeps_a_cordoned_node_is_named_with_the_numbers)
{
	json_auto_t *world = world_of_boots("1", 1), *ops = NULL;

	turns(world, 2);
	looks_on(world, "w0", one_pod("p0", "w0", "ReplicaSet"));
	json_put(json_need_object(world, BOX_EVICTIONS), "ml/p0",
		 json_pack("{s:s, s:i, s:i, s:s, s:s}", "uid", "uid-p0", "atMs", 100000, "tries", 1,
			   "reason", "PdbRefuses", "message",
			   "The disruption budget train needs 3 healthy pods and has 3 currently"));
	ops = turn(world);
	assert_reason(world, "w0", "PdbRefuses");
	assert_non_null(strstr(json_str_at(draining(world, "w0"), "message"),
			       "pod ml/p0: The disruption budget train needs 3"));
	assert_int_equal(count_ops(ops, "event"), 1);
	assert_string_equal(permission(world, "w0"), "");
}

/* Complaint: a budget that can never be met. Nothing is forced; a deadline gives the node back. */
TEST(a_deadline_gives_the_node_back_and_never_forces)
{
	json_auto_t *world = world_of_boots("1", 1), *ops = NULL;

	json_put_str(annotations_of(pool_of(world)), "orbweaver.io/drain-timeout", "30m");
	turns(world, 2);
	looks_on(world, "w0", one_pod("p0", "w0", "ReplicaSet"));
	turns(world, 1);
	json_put_str(json_at(world, "env"), "now", "2026-01-31T10:29:59Z");
	turns(world, 1);
	assert_string_equal(current(world, "w0"), "Draining");
	json_put_str(json_at(world, "env"), "now", "2026-01-31T10:30:00Z");
	ops = turn(world);
	assert_string_equal(current(world, "w0"), "Idle");
	assert_reason(world, "w0", "DrainTimedOut");
	assert_false(is_cordoned(world, "w0"));
	json_decref(ops);
	ops = turn(world);
	assert_reason(world, "w0", "DrainTimedOut");
	assert_string_equal(json_str_at(state_of(world, "w0"), "status", "maintenance", "state"),
			    "TimedOut");
	assert_int_equal(count_ops(ops, "meta") + count_ops(ops, "cordon"), 0);

	/* orbweaver drain retry. */
	json_object_del(annotations_of(state_of(world, "w0")), DRAIN_STOP_ANNOTATION);
	turns(world, 1);
	assert_string_equal(current(world, "w0"), "Draining");
}

/* Complaint: a partial drain was taken for a whole one, so a node rebooted with pods on it. */
TEST(a_node_that_was_drained_for_less_is_emptied_before_it_reboots)
{
	json_auto_t *world = world_of_boots("1", 1), *ops = NULL;

	json_put_str(annotations_of(state_of(world, "w0")), DRAIN_CURRENT_STATE, "DrainComplete");
	json_put_str(annotations_of(state_of(world, "w0")), DRAIN_DESIRED_STATE, "Drain_Required");
	ops = turn(world);
	assert_string_equal(permission(world, "w0"), "");
	assert_string_equal(current(world, "w0"), "Draining");
	assert_true(is_cordoned(world, "w0"));
	json_decref(ops);
	looks_on(world, "w0", one_pod("p0", "w0", "ReplicaSet"));
	ops = turn(world);
	assert_int_equal(count_ops(ops, "evict"), 1);
	assert_string_equal(permission(world, "w0"), "");
}

/* Complaint: reboot loops. The permission is worth nothing in another boot. */
TEST(what_was_allowed_counts_in_one_boot_only)
{
	json_auto_t *world = world_of_boots("1", 1);

	empty_node(world, "w0");
	/* Somebody pulled the plug, and its agent still wants to reboot. */
	must_boot(world, "w0", "boot-2");
	turns(world, 1);
	assert_string_equal(permission(world, "w0"), "boot-2 " CAUSE);
	looks_on(world, "w0", one_pod("p9", "w0", "ReplicaSet"));
	must_boot(world, "w0", "boot-3");
	turns(world, 1);
	assert_string_equal(permission(world, "w0"), "");
	assert_string_equal(current(world, "w0"), "Draining");
}

/* Complaint: reboot loops. The agent says that it was in vain; no other node suffers the same. */
TEST(a_reboot_in_vain_frees_the_node_and_keeps_the_slot)
{
	json_auto_t *world = world_of_boots("1", 2), *ops = NULL;
	json_t *status = NULL;

	empty_node(world, "w0");
	has_booted(world, "w0", "boot-2");
	status = json_at(state_of(world, "w0"), "status");
	json_put_str(json_at(status, "boots"), "inVain", CAUSE);
	json_put_str(status, "syncStatus", "Failed");
	json_put_str(status, "lastSyncError", "rdmaMode is still shared; see the initramfs");
	ops = turn(world);
	assert_reason(world, "w0", "RebootDidNotHelp");
	assert_non_null(strstr(json_str_at(draining(world, "w0"), "message"), "initramfs"));
	assert_int_equal(count_ops(ops, "event"), 1);
	assert_false(is_cordoned(world, "w0"));
	turns(world, 3);
	assert_false(is_cordoned(world, "w0"));
	assert_string_equal(current(world, "w0"), "DrainComplete");
	assert_string_equal(current(world, "w1"), "Idle");

	/* orbweaver drain retry: its agent wants to reboot once more. */
	must_boot(world, "w0", "boot-2");
	turns(world, 1);
	assert_true(is_cordoned(world, "w0"));
	assert_string_equal(permission(world, "w0"), "");
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_string_equal(permission(world, "w0"), "boot-2 " CAUSE);
}

/* Complaint: what an administrator had cordoned was uncordoned. */
TEST(what_somebody_else_cordoned_stays_so)
{
	json_auto_t *world = world_of_boots("1", 1);

	json_put_bool(json_at(node_of(world, "w0"), "spec"), "unschedulable", true);
	turns(world, 1);
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_string_equal(permission(world, "w0"), "boot-1 " CAUSE);
	assert_null(annotation_of(node_of(world, "w0"), DRAIN_CORDONED_ANNOTATION));
	has_booted(world, "w0", "boot-2");
	turns(world, 2);
	assert_string_equal(current(world, "w0"), "Idle");
	assert_true(is_cordoned(world, "w0"));
}

/* Complaint: a request that is not needed any more goes on to its end. */
TEST(a_reboot_that_became_unnecessary_is_withdrawn_at_any_time)
{
	static const char *const when[] = {"waiting", "cordoned", "allowed"};
	static const char *const how[] = {"wish", "pool", "stop", "forbidden"};

	for (size_t i = 0; i < ARRAY_LEN(when) * ARRAY_LEN(how); i++) {
		json_auto_t *world = world_of_boots("1", 1);

		if (i % 3 == 1)
			turns(world, 2);
		if (i % 3 == 2)
			empty_node(world, "w0");
		if (i / 3 == 0)
			has_booted(world, "w0", "boot-1");
		if (i / 3 == 1)
			json_object_del(json_at(pool_of(world), "spec"), "maxUnavailable");
		if (i / 3 == 2)
			json_put_str(annotations_of(state_of(world, "w0")), DRAIN_STOP_ANNOTATION,
				     "stop");
		if (i / 3 == 3)
			json_put_str(annotations_of(pool_of(world)), POOL_ALLOW_REBOOT, "false");
		looks_on(world, "w0", NULL);
		turns(world, 2);
		looks_on(world, "w0", NULL);
		turns(world, 1);
		if (is_cordoned(world, "w0") || *permission(world, "w0") || begun(world))
			fail_msg("%s, when %s", how[i / 3], when[i % 3]);
	}
}

/* Complaint: all nodes at once. And 10 % of 5 is one, not none. */
TEST(budgets_hold_for_reboots_with_nodes_that_are_down)
{
	static const struct {
		const char *max;
		int down;
		size_t begun;
	} cases[] = {{"10%", 0, 1}, {"2", 0, 2}, {"2", 1, 1}, {"1", 1, 0}, {"0", 0, 0}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *world = world_of_boots(cases[i].max, 5);

		if (cases[i].down)
			set_ready(world, "w4", false);
		turns(world, 2);
		if (begun(world) != cases[i].begun)
			fail_msg("case %zu: %zu begun", i, begun(world));
	}
}

/* What costs less comes first. */
TEST(a_node_that_needs_no_reboot_goes_before_those_that_do)
{
	json_auto_t *world = world_of_boots("1", 2);

	json_put(json_at(state_of(world, "w1"), "status"), "impact", json_object());
	must_end(world, "w1", "ml/p1");
	looked_at_pod(world, "ml/p1", new_pod("p1", "w1", true));
	turns(world, 1);
	assert_string_equal(current(world, "w1"), "Draining");
	assert_string_equal(annotation_of(node_of(world, "w1"), DRAIN_NODE_STATE),
			    "Drain_Required");
	assert_string_equal(current(world, "w0"), "Idle");
}

TEST(a_node_that_does_not_come_back_is_told_and_keeps_its_slot)
{
	json_auto_t *world = world_of_boots("1", 2), *ops = NULL;

	empty_node(world, "w0");
	set_ready(world, "w0", false);
	turns(world, 1);
	json_put_str(json_at(world, "env"), "now", "2026-01-31T10:15:00Z");
	ops = turn(world);
	assert_reason(world, "w0", "NodeNotBack");
	assert_int_equal(count_ops(ops, "event"), 1);
	assert_int_equal(count_ops(ops, "requeue"), 1);
	assert_string_equal(current(world, "w1"), "Idle");
}

TEST(an_agent_that_cannot_reboot_stops_it)
{
	json_auto_t *world = world_of_boots("1", 1);
	json_t *status = NULL;

	empty_node(world, "w0");
	status = json_at(state_of(world, "w0"), "status");
	json_put(status, "problems",
		 json_pack("[{s:s, s:s, s:s}]", "type", "Degraded", "reason", "RebootDidNotStart",
			   "message", "a reboot was asked for, and this boot still runs"));
	turns(world, 1);
	assert_reason(world, "w0", "DrainStopped");
	assert_true(is_cordoned(world, "w0"));
	json_object_del(status, "problems");
	turns(world, 1);
	assert_reason(world, "w0", "RebootUnderWay");
}

/* It was asked for in vain in this boot, given up, and is allowed again: its agent tries again. */
TEST(what_did_not_start_once_may_be_tried_again_in_the_same_boot)
{
	json_auto_t *world = world_of_boots("1", 1);

	json_put(json_at(state_of(world, "w0"), "status"), "problems",
		 json_pack("[{s:s, s:s, s:s}]", "type", "Degraded", "reason", "RebootDidNotStart",
			   "message", "a reboot was asked for, and this boot still runs"));
	turns(world, 2);
	assert_string_equal(permission(world, "w0"), "");
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_reason(world, "w0", "DrainStopped");
	assert_string_equal(permission(world, "w0"), "boot-1 " CAUSE);
}

/* Its status is merged into what it had: what was said of pods and of the boot goes with them. */
TEST(who_has_ended_is_not_named_any_more)
{
	json_auto_t *world = world_of_boots("1", 1);
	const json_t *said = NULL;

	turns(world, 2);
	looks_on(world, "w0", one_pod("p0", "w0", "ReplicaSet"));
	turns(world, 1);
	said = json_at(state_of(world, "w0"), "status", "maintenance");
	assert_int_equal(json_array_size(json_at(said, "pods")), 1);
	looks_on(world, "w0", NULL);
	turns(world, 1);
	said = json_at(state_of(world, "w0"), "status", "maintenance");
	assert_string_equal(json_str_at(said, "state"), "Rebooting");
	assert_null(json_at(said, "pods"));
	has_booted(world, "w0", "boot-2");
	set_ready(world, "w0", false);
	looks_on(world, "w0", NULL);
	turns(world, 1);
	said = json_at(state_of(world, "w0"), "status", "maintenance");
	assert_string_equal(json_str_at(said, "state"), "Working");
	assert_null(json_at(said, "cause"));
}

TEST(a_node_whose_node_state_is_deleted_half_way_is_uncordoned)
{
	json_auto_t *world = world_of_boots("1", 1), *ops = NULL;

	empty_node(world, "w0");
	json_object_clear(json_at(world, KIND_NODE_STATE));
	turns(world, 1);
	assert_false(is_cordoned(world, "w0"));
	ops = decide(world);
	assert_int_equal(json_array_size(ops), 0);
}

TEST(a_node_that_is_deleted_half_way_frees_its_slot_for_a_reboot)
{
	json_auto_t *world = world_of_boots("1", 2);

	empty_node(world, "w0");
	json_object_del(json_at(world, KIND_NODE), "w0");
	looks_on(world, "w1", NULL);
	turns(world, 2);
	assert_string_equal(current(world, "w1"), "Draining");
}

TEST(the_boot_that_the_kubelet_knows_is_the_agents)
{
	json_auto_t *world = world_of_boots("1", 1);

	empty_node(world, "w0");
	has_booted(world, "w0", "boot-2");
	json_put_str(json_need_object(json_at(node_of(world, "w0"), "status"), "nodeInfo"),
		     "bootID", "boot-1");
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_true(is_cordoned(world, "w0"));
	json_put_str(json_at(node_of(world, "w0"), "status", "nodeInfo"), "bootID", "boot-2");
	looks_on(world, "w0", NULL);
	turns(world, 1);
	assert_false(is_cordoned(world, "w0"));
}

/* It empties the node; whether and how often the node then reboots is still ours to say. */
TEST(another_drainer_empties_the_node_and_the_agent_reboots_it)
{
	json_auto_t *world = world_of_boots("1", 1), *ops = NULL;

	json_put_str(annotations_of(state_of(world, "w0")), DRAIN_EXTERNAL, "true");
	ops = turn(world);
	assert_reason(world, "w0", "ExternalDrainer");
	assert_string_equal(annotation_of(state_of(world, "w0"), DRAIN_DESIRED_STATE),
			    "Reboot_Required");
	assert_string_equal(permission(world, "w0"), "");
	json_put_str(annotations_of(state_of(world, "w0")), DRAIN_CURRENT_STATE, "Draining");
	turns(world, 1);
	assert_string_equal(permission(world, "w0"), "");
	json_put_str(annotations_of(state_of(world, "w0")), DRAIN_CURRENT_STATE, "DrainComplete");
	turns(world, 1);
	assert_string_equal(permission(world, "w0"), "boot-1 " CAUSE);
	assert_false(is_cordoned(world, "w0"));
	has_booted(world, "w0", "boot-2");
	looks_on(world, "w0", NULL);
	turns(world, 2);
	assert_string_equal(annotation_of(state_of(world, "w0"), DRAIN_DESIRED_STATE), "Idle");
	assert_string_equal(current(world, "w0"), "DrainComplete");
	assert_string_equal(permission(world, "w0"), "");
}

TEST(nothing_is_written_twice_about_a_reboot)
{
	json_auto_t *world = world_of_boots("1", 3), *ops = NULL;

	empty_node(world, "w0");
	turns(world, 1);
	ops = decide(world);
	assert_int_equal(count_ops(ops, "meta") + count_ops(ops, "cordon") +
				 count_ops(ops, "status-part") + count_ops(ops, "event"),
			 0);
}
