// SPDX-License-Identifier: Apache-2.0
/* What a Node says of its links: the condition and the annotation, as verdicts come and go. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/sriov/node_health.h"
#include "tests/support/yaml.h"

#define NOW   "2026-01-31T10:00:00Z"
#define LATER "2026-01-31T11:00:00Z"

/* As its cache has it; writes are carried out. */
static json_t *node;

static int set_up(void **state)
{
	node = yaml(
		"{metadata: {name: w1}, status: {conditions: [{type: Ready, status: 'True'}]}}");
	return 0;
}

static int tear_down(void **state)
{
	json_decref(node);
	return 0;
}

#define PORT(n, verdict, reason)                                                                   \
	"{pciAddress: '0000:0" #n ":00.0', verdict: " verdict ", reason: " reason                  \
	", message: port " #n "}"

/* ports: of the NodeState; NULL: there is none. Returns how many operations it took. */
static size_t decide(const char *ports, bool is_away, const char *now)
{
	auto_free char *text = str_printf("{status: {rails: {list: [{rail: 0, pciAddress: "
					  "'0000:01:00.0'}, {rail: 1, pciAddress: '0000:02:00.0'}, "
					  "{rail: 2, missing: true}]}, linkHealth: {ports: [%s]}}}",
					  ports ? ports : "");
	json_auto_t *state = ports ? yaml(text) : NULL;
	struct plan plan = {0};
	size_t n;
	json_t *op;
	size_t i;

	node_health_plan(&plan, node, state, is_away, now);
	n = json_array_size(plan.ops);
	json_array_foreach (plan.ops, i, op) {
		json_auto_t *copy = json_deep_copy(op);

		assert_string_equal(json_str_at(op, "subresource"), "status");
		assert_string_equal(json_str_at(op, "group"), "health");
		json_merge_patch(json_need_object(node, "metadata"), json_at(copy, "metadata"));
		plan_put_condition(node, copy);
	}
	plan_done(&plan);
	return n;
}

static const char *member(const char *name)
{
	return json_str_or(json_at(json_find(json_at(node, "status", "conditions"), "type",
					     NODE_HEALTH_CONDITION),
				   name),
			   "-");
}

static const char *rails(void)
{
	return json_str_or(json_at(node, "metadata", "annotations", NODE_HEALTH_ANNOTATION), "-");
}

TEST_WITH(a_node_is_as_ready_as_its_worst_port, set_up, tear_down)
{
	assert_int_equal(decide(PORT(1, "healthy", "LinkHealthy"), false, NOW), 1);
	assert_string_equal(member("status"), "True");
	assert_string_equal(member("message"), "the links of all 1 ports are healthy");
	assert_string_equal(rails(), "0=LinkHealthy");
	assert_int_equal(decide(PORT(1, "healthy", "LinkHealthy"), false, LATER), 0);
	assert_int_equal(
		decide(PORT(1, "degraded", "LinkFlapping") ", " PORT(2, "failed", "LinkDown"),
		       false, LATER),
		1);
	assert_string_equal(member("status"), "False");
	assert_string_equal(member("reason"), "LinkDown");
	assert_string_equal(member("message"), "port 1; port 2");
	assert_string_equal(member("lastTransitionTime"), LATER);
	assert_string_equal(rails(), "0=LinkFlapping,1=LinkDown");
	/* Another reason of the same status is no transition. */
	assert_int_equal(decide(PORT(1, "degraded", "LinkFlapping"), false, NOW), 1);
	assert_string_equal(member("reason"), "LinkFlapping");
	assert_string_equal(member("lastTransitionTime"), LATER);
	assert_string_equal(rails(), "0=LinkFlapping");
	assert_int_equal(json_array_size(json_at(node, "status", "conditions")), 2);
}

TEST_WITH(a_node_without_ports_that_count_says_nothing, set_up, tear_down)
{
	assert_int_equal(decide("", false, NOW), 0);
	assert_int_equal(decide(NULL, false, NOW), 0);
	assert_int_equal(decide(NULL, true, NOW), 0);
	(void)decide(PORT(1, "failed", "LinkDown"), false, NOW);
	assert_int_equal(decide("", false, NOW), 1);
	assert_string_equal(member("status"), "-");
	assert_string_equal(rails(), "-");
	assert_int_equal(json_array_size(json_at(node, "status", "conditions")), 1);
	assert_int_equal(decide("", false, NOW), 0);
}

TEST_WITH(without_an_agent_it_is_unknown, set_up, tear_down)
{
	(void)decide(PORT(1, "failed", "LinkDown"), false, NOW);
	assert_int_equal(decide(PORT(1, "failed", "LinkDown"), true, LATER), 1);
	assert_string_equal(member("status"), "Unknown");
	assert_string_equal(member("reason"), "NoAgent");
	assert_string_equal(rails(), "0=LinkDown");
	assert_int_equal(decide(PORT(1, "failed", "LinkDown"), true, LATER), 0);
	/* Removed, with its NodeState. */
	(void)decide(NULL, false, LATER);
	assert_string_equal(member("status"), "-");
}

TEST_WITH(many_bad_ports_are_counted, set_up, tear_down)
{
	(void)decide(
		PORT(1, "failed", "LinkDown") ", " PORT(2, "failed", "LinkDown") ", " PORT(
			3, "failed", "LinkDown") ", " PORT(4, "failed",
							   "LinkDown") ", " PORT(5, "healthy",
										 "LinkHealthy"),
		false, NOW);
	assert_string_equal(member("message"), "port 1; port 2; port 3; and 1 more");
}
