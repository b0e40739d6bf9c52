// SPDX-License-Identifier: Apache-2.0
/* Is there an agent on the node? By its pods, from one moment to the next. */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/plan.h"
#include "reconcilers/sriov/node_agent.h"
#include "reconcilers/sriov/node_state.h"
#include "tests/support/yaml.h"

#define NOW      "2026-01-31T10:00:00Z"
#define REPORTED "status: {syncStatus: Succeeded, agentPod: a-1}"
/* A pod of w1 that was made at 09:00. */
#define POD(name, status)                                                                          \
	name ": {metadata: {name: " name ", creationTimestamp: '2026-01-31T09:00:00Z'}, "          \
	     "spec: {nodeName: w1}, status: {" status "}}"
#define READY(status, since)                                                                       \
	"conditions: [{type: Ready, status: '" status "', lastTransitionTime: '2026-01-31T" since  \
	"Z'}]"
#define CONTAINER(restarts, state)                                                                 \
	"containerStatuses: [{restartCount: " restarts ", state: {" state "}}]"

struct row {
	const char *what;
	const char *state; /* members of the NodeState, in YAML */
	const char *pods;  /* NULL: nobody looks at them */
	const char *box;   /* since; NULL: nothing is in it */
	const char *want;  /* of the message; NULL: nothing is said */
	int64_t look_again_ms;
};

static const struct row rows[] = {
	{"a pod that is Ready", REPORTED, POD("a-1", READY("True", "09:01:00")), NULL, NULL, 0},
	{"a pod that runs and waits for something", REPORTED,
	 POD("a-1", READY("False", "09:01:00") ", " CONTAINER("0", "running: {}")), NULL, NULL, 0},
	{"no pod from now on", REPORTED, "", NULL, NULL, 61000},
	{"no pod for half a minute", REPORTED, "", "09:59:30", NULL, 31000},
	{"no pod for a minute", REPORTED, "", "09:59:00",
	 "away since 2026-01-31T09:59:00Z: the DaemonSet orbweaver-agent has no pod on the node; "
	 "see which nodes it selects: kubectl describe daemonset -n sys orbweaver-agent",
	 0},
	{"an agent that was never in a pod", "status: {syncStatus: Succeeded}", "", "09:00:00",
	 NULL, 0},
	{"pods of another node", REPORTED,
	 "a-2: {metadata: {name: a-2}, spec: {nodeName: w2}, status: {" READY("True",
									      "09:00:00") "}}",
	 "09:59:30", NULL, 31000},
	{"an update: the old pod ends, the new one is made", REPORTED,
	 "a-1: {metadata: {name: a-1, deletionTimestamp: '2026-01-31T09:59:40Z'}, spec: {nodeName: "
	 "w1}, status: {" READY("False", "09:59:20") "}}\n"
						     "a-2: {metadata: {name: a-2, "
						     "creationTimestamp: '2026-01-31T09:59:50Z'}, "
						     "spec: {nodeName: w1}, status: {}}",
	 NULL, NULL, 51000},
	{"an update that takes its pod before the other", REPORTED,
	 POD("a-2", READY("True", "09:59:50")) "\n"
					       "a-1: {metadata: {name: a-1, deletionTimestamp: "
					       "'2026-01-31T09:00:00Z'}, "
					       "spec: {nodeName: w1}, status: {}}",
	 NULL, NULL, 0},
	{"an image that nobody has", REPORTED,
	 POD("a-2", READY("False", "09:01:00") ", " CONTAINER("0", "waiting: {reason: "
								   "ImagePullBackOff}")),
	 NULL,
	 "away since 2026-01-31T09:01:00Z: its pod is ImagePullBackOff; see why: kubectl describe "
	 "pod -n sys a-2",
	 0},
	{"an agent that crashes, between two tries", REPORTED,
	 POD("a-1", READY("False", "09:50:00") ", " CONTAINER("7", "waiting: {reason: "
								   "CrashLoopBackOff}")),
	 NULL,
	 "away since 2026-01-31T09:50:00Z: its pod is CrashLoopBackOff; see why: kubectl describe "
	 "pod -n sys a-1",
	 0},
	{"the same in the middle of a try", REPORTED,
	 POD("a-1", READY("False", "09:50:00") ", " CONTAINER(
			    "7", "running: {startedAt: '2026-01-31T09:59:55Z'}")),
	 NULL,
	 "away since 2026-01-31T09:50:00Z: its pod is not Ready; see why: kubectl describe pod -n "
	 "sys a-1",
	 56000},
	{"the same once it has run for a minute", REPORTED,
	 POD("a-1", READY("False", "09:50:00") ", " CONTAINER(
			    "7", "running: {startedAt: '2026-01-31T09:59:00Z'}")),
	 NULL, NULL, 0},
	{"a pod that was evicted, and no other", REPORTED, POD("a-1", "phase: Failed"), "09:00:00",
	 "away since 2026-01-31T09:00:00Z: the DaemonSet orbweaver-agent has no pod on the node; "
	 "see which nodes it selects: kubectl describe daemonset -n sys orbweaver-agent",
	 0},
	{"what was said stays said after a start of the operator",
	 "status: {syncStatus: Succeeded, agentPod: a-1, agentSilentSince: '2026-01-31T08:00:00Z', "
	 "conditions: [{type: Ready, status: 'False', reason: NoAgent, message: x}]}",
	 "", NULL,
	 "away since 2026-01-31T08:00:00Z: the DaemonSet orbweaver-agent has no pod on the node; "
	 "see which nodes it selects: kubectl describe daemonset -n sys orbweaver-agent",
	 0},
	{"and no longer once the pod is back",
	 "status: {syncStatus: Succeeded, agentPod: a-1, agentSilentSince: '2026-01-31T08:00:00Z', "
	 "conditions: [{type: Ready, status: 'False', reason: NoAgent, message: x}]}",
	 POD("a-2", READY("True", "09:59:59")), NULL, NULL, 0},
	{"a time of long ago that an agent left",
	 "status: {syncStatus: Succeeded, agentPod: a-1, agentSilentSince: '2026-01-31T08:00:00Z'}",
	 "", "09:59:30", NULL, 31000},
	{"an agent that never reported and runs",
	 "metadata: {creationTimestamp: '2026-01-31T09:00:00Z'}",
	 POD("a-1", READY("True", "09:01:00")), NULL,
	 "silent since 2026-01-31T09:00:00Z although its pod runs; see its log: kubectl logs -n "
	 "sys a-1",
	 0},
	{"a NodeState that was just made", "metadata: {creationTimestamp: '2026-01-31T09:59:30Z'}",
	 "", NULL, NULL, 31000},
	{"nobody looks at pods, and it is said",
	 "status: {syncStatus: Succeeded, agentSilentSince: '2026-01-31T08:00:00Z', "
	 "conditions: [{type: Ready, status: 'False', reason: NoAgent, message: the agent is "
	 "away}]}",
	 NULL, NULL, "away", 0},
	{"nobody looks at pods, and nothing is said", REPORTED, NULL, NULL, NULL, 0},
};

static json_t *world_of(const struct row *row)
{
	json_t *world = yaml("env: {now: '" NOW "', namespace: sys}");

	if (row->pods)
		json_put(world, KIND_AGENT_POD, *row->pods ? yaml(row->pods) : json_object());
	if (row->box)
		json_put(world, BOX_NO_AGENT_POD,
			 json_pack("{s:{s:o}}", "w1", "since",
				   json_fmt("2026-01-31T%sZ", row->box)));
	return world;
}

TEST(an_agent_is_away_when_none_of_its_pods_has_run_for_a_minute)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		json_auto_t *world = world_of(row), *node_state = yaml(row->state);
		auto_node_agent struct node_agent agent = {0};
		struct err err = {0};

		if (node_agent_judge(world, "w1", node_state, &agent, &err) < 0)
			fail_msg("%s: %s", row->what, err.text);
		if (!str_eq(agent.message, row->want) || agent.is_gone != (row->want != NULL) ||
		    agent.look_again_ms != row->look_again_ms)
			fail_msg("%s: \"%s\", again after %lld ms", row->what,
				 agent.message ? agent.message : "nothing",
				 (long long)agent.look_again_ms);
	}
}

/* As the node controller leaves the pod of a machine that lost its power. */
#define CUT_OFF POD("a-1", READY("False", "09:59:50") ", " CONTAINER("0", "running: {}"))
#define OUT_OF_REACH(since)                                                                        \
	"out of reach since 2026-01-31T" since                                                     \
	"Z, as its Node is, whose kubelet is silent; see why: kubectl describe node w1"
#define CUT_OFF_BOX "{w1: {since: '2026-01-31T09:59:50Z', cutOff: true}}"

/* The minute is for updates; the kubelet's silence took long enough to show. */
TEST(an_agent_is_out_of_reach_with_its_node)
{
	static const struct {
		const char *what, *node, *state, *pods, *box, *want;
		bool cut_off;
	} cases[] = {
		{"a pod that runs and waits, on a Node that is Ready", "True", REPORTED, CUT_OFF,
		 "{}", NULL, false},
		{"the kubelet has something to say", "False", REPORTED, CUT_OFF, "{}", NULL, false},
		{"the kubelet is silent", "Unknown", REPORTED, CUT_OFF, "{}",
		 OUT_OF_REACH("09:59:50"), true},
		{"the kubelet is silent, and its pods are still Ready", "Unknown", REPORTED,
		 POD("a-1", READY("True", "09:01:00")), "{}", NULL, false},
		{"what was said stays said", "Unknown",
		 "status: {syncStatus: Succeeded, agentPod: a-1, agentSilentSince: "
		 "'2026-01-31T09:59:50Z', conditions: [{type: Ready, status: 'False', reason: "
		 "NoAgent, message: x}]}",
		 CUT_OFF, CUT_OFF_BOX, OUT_OF_REACH("09:59:50"), true},
		{"an agent that lives without its kubelet", "Unknown", REPORTED, CUT_OFF,
		 CUT_OFF_BOX, NULL, true},
		{"a pod that is made for a node that is silent", "Unknown", REPORTED,
		 POD("a-2", ""), "{w1: {since: '2026-01-31T09:59:50Z'}}", OUT_OF_REACH("09:00:00"),
		 true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *world = yaml("env: {now: '" NOW "', namespace: sys}");
		json_auto_t *node_state = yaml(cases[i].state);
		auto_node_agent struct node_agent agent = {0};

		json_put(world, KIND_AGENT_POD, yaml(cases[i].pods));
		json_put(world, BOX_NO_AGENT_POD, yaml(cases[i].box));
		json_put(world, KIND_NODE,
			 json_pack("{s:{s:{s:[{s:s, s:s}]}}}", "w1", "status", "conditions", "type",
				   "Ready", "status", cases[i].node));
		assert_int_equal(node_agent_judge(world, "w1", node_state, &agent, NULL), 0);
		if (!str_eq(agent.message, cases[i].want) || agent.cut_off != cases[i].cut_off ||
		    agent.is_gone != (cases[i].want != NULL) || agent.look_again_ms)
			fail_msg("%s: \"%s\"", cases[i].what,
				 agent.message ? agent.message : "nothing");
	}
}

static size_t place_of(const struct plan *plan, const char *what)
{
	const json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op)
		if (str_eq(json_str_at(op, "op"), what))
			return i;
	fail_msg("no %s in the plan", what);
	return 0;
}

/* Were the write to fail, the next decision would take the agent for one that wrote over it. */
TEST(what_is_said_comes_before_what_is_remembered_of_it)
{
	json_auto_t *world = yaml(
		"{env: {now: '" NOW "', namespace: sys}, "
		"nodes: {w1: {metadata: {name: w1}, status: {conditions: [{type: Ready, status: "
		"Unknown}]}}}, sriovnetworknodepolicies: {}, sriovnetworkpoolconfigs: {}, "
		"sriovnetworknodestates: {sys/w1: {metadata: {name: w1, namespace: sys}, " REPORTED
		"}}}");
	auto_plan struct plan plan = {0};
	struct err err = {0};

	json_put(world, KIND_AGENT_POD, yaml(CUT_OFF));
	json_put(world, BOX_NO_AGENT_POD, json_object());
	if (node_state_reconcile(world, "w1", &plan, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(place_of(&plan, "status-part") < place_of(&plan, "post"));
}

TEST(what_is_kept_of_a_pod_gives_the_same_judgement)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *world = world_of(&rows[i]), *node_state = yaml(rows[i].state);
		auto_node_agent struct node_agent agent = {0};
		const char *key;
		json_t *pod;

		json_each (json_at(world, KIND_AGENT_POD), key, pod) {
			json_put(pod, "secrets", json_object());
			node_agent_project(pod);
			assert_int_equal(json_object_size(pod), 3);
		}
		assert_int_equal(node_agent_judge(world, "w1", node_state, &agent, NULL), 0);
		if (!str_eq(agent.message, rows[i].want))
			fail_msg("%s: \"%s\"", rows[i].what, agent.message);
	}
}

TEST(of_a_pod_that_is_ready_little_is_kept)
{
	json_auto_t *pod = yaml(
		"apiVersion: v1\nmetadata: {name: a, namespace: sys, labels: {x: y}, "
		"resourceVersion: '7'}\nspec: {nodeName: w1, containers: [{name: agent}]}\n"
		"status: {phase: Running, conditions: [{type: Initialized, status: 'True'}, {type: "
		"Ready, status: 'True', lastTransitionTime: '" NOW "', lastProbeTime: null}], "
		"containerStatuses: [{restartCount: 0, state: {running: {}}}]}");
	json_auto_t *want =
		yaml("metadata: {name: a, namespace: sys, resourceVersion: '7'}\n"
		     "spec: {nodeName: w1}\nstatus: {conditions: [{type: Ready, status: 'True', "
		     "lastTransitionTime: '" NOW "'}]}");

	node_agent_project(pod);
	assert_true(json_same(pod, want));
}

TEST(without_a_clock_nothing_is_judged)
{
	json_auto_t *world = yaml("{env: {}, agentpods: {}}"), *node_state = yaml("{" REPORTED "}");
	auto_node_agent struct node_agent agent = {0};
	struct err err = {0};

	assert_int_equal(node_agent_judge(world, "w1", node_state, &agent, &err), -1);
	assert_string_equal(err.reason, "NoClock");
}
