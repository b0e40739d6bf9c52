// SPDX-License-Identifier: Apache-2.0
/*
 * Reboots on simulated hosts: what the planner asks for is carried out by the real steps, and the
 * record is the real file. Between two looks the host boots, with or without what was wanted, loses
 * its power, or somebody changes a mind.
 */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host_plan/impact.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/host_plan/status.h"
#include "nodeagent/model/step.h"
#include "nodeagent/worker/execute.h"
#include "tests/support/reasons.h"

#define CAUSE "rdma-mode-exclusive"
#define FILE_ "etc/modprobe.d/zz-orbweaver-rdma.conf"

/* A node with a pod, whose pool wants the other mode. */
struct node {
	struct host_tree *tree;
	const char *mode; /* wanted; NULL: none */
	const char *boot;
	const char *retry;
	bool is_allowed, is_deaf; /* the NodeState's status does not arrive */
	json_t *refused, *plan, *told;
	int steps; /* executed, of the last rounds */
};

static int set_up(void **state)
{
	struct node *node = calloc(1, sizeof(*node));

	node->tree = host_tree_new();
	node->refused = json_array();
	node->mode = "exclusive";
	node->boot = "boot-one";
	host_tree_set_namespaces(node->tree, 1);
	*state = node;
	return 0;
}

static int tear_down(void **state)
{
	struct node *node = *state;

	host_tree_free(node->tree);
	json_decref(node->refused);
	json_decref(node->plan);
	json_decref(node->told);
	free(node);
	return 0;
}

static json_t *look(struct node *node)
{
	struct err err = {0};
	json_t *ret = host_observe(host_tree_host(node->tree), HOST_OBSERVE_HOLDERS, &err);

	if (!ret)
		fail_msg("observe: %s", err.text);
	return ret;
}

/* Look, plan, tell the API server, and do the first step. False: there is none. */
static bool round_of(struct node *node)
{
	json_auto_t *observed = look(node), *spec = json_object(), *result = NULL, *status = NULL;
	auto_free char *allowed = str_printf("%s " CAUSE, node->boot);
	struct err err = {0};
	const json_t *step;

	if (node->mode)
		json_put_str(json_need_object(spec, "system"), "rdmaMode", node->mode);
	json_decref(node->plan);
	node->plan = planner_plan(
		&(struct planner_input){
			.spec = spec,
			.observed = observed,
			.refused = node->refused,
			.reboot_allowed = node->is_allowed ? allowed : NULL,
			.reboot_retry = node->retry,
			.boots_reported = node->told,
		},
		&err);
	assert_non_null(node->plan);
	status = status_compose(&(struct status_input){.generation = 1,
						       .observed = observed,
						       .plan = node->plan,
						       .now = "2026-01-31T10:00:00Z"});
	conditions_keep_the_rule(json_at(status, "conditions"));
	if (!node->is_deaf) {
		json_decref(node->told);
		node->told = json_incref(json_at(status, "boots"));
	}
	step = json_at(json_array_get(json_at(node->plan, "steps"), 0), "step");
	if (!step)
		return false;
	node->steps++;
	if (host_execute(host_tree_host(node->tree), step, &result, &err) < 0)
		json_array_append(node->refused, (json_t *)step);
	return true;
}

/* Until nothing is left that can be done. The last look is one with what it told. */
static void rounds(struct node *node)
{
	int n = 0;

	node->steps = 0;
	while (round_of(node) || round_of(node))
		if (++n > 12)
			fail_msg("does not come to rest: %s", json_text(node->plan));
}

static void boot(struct node *node, const char *id, bool is_exclusive)
{
	node->boot = id;
	host_tree_boot(node->tree, id, is_exclusive);
	json_array_clear(node->refused);
}

static const char *problem(const struct node *node)
{
	return json_str_or(json_at(json_array_get(json_at(node->plan, "problems"), 0), "reason"),
			   "");
}

static const char *problem_text(const struct node *node)
{
	return json_str_or(json_at(json_array_get(json_at(node->plan, "problems"), 0), "message"),
			   "");
}

static json_t *asked(struct node *node)
{
	json_auto_t *observed = look(node);

	return json_deep_copy(json_at(observed, "boots", "asked"));
}

static void assert_rebooted(struct node *node, int times)
{
	if (host_tree_reboots(node->tree) != times)
		fail_msg("asked for %d reboots, wanted %d: %s", host_tree_reboots(node->tree),
			 times, json_text(node->plan));
}

/* ---- one situation after the other ----------------------------------------------------------- */

TEST_WITH(asks_for_nothing_that_is_not_allowed_for_this_boot, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *impact = NULL, *list = NULL;

	rounds(node);
	assert_rebooted(node, 0);
	impact = plan_impact(node->plan, false);
	assert_string_equal(json_str_at(impact, "class"), "reboot");
	assert_string_equal(json_str_at(impact, "cause"), CAUSE);
	node->is_allowed = true;
	node->boot = "boot-before";
	rounds(node);
	assert_rebooted(node, 0);
	list = asked(node);
	assert_int_equal(json_array_size(list), 0);
}

TEST_WITH(is_recorded_and_told_before_it_is_asked_for_and_asked_for_once, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *recorded = NULL, *after = NULL;

	node->is_allowed = true;
	node->is_deaf = true;
	rounds(node);
	assert_rebooted(node, 0);
	recorded = asked(node);
	assert_int_equal(json_array_size(recorded), 1);
	assert_null(json_at(json_array_get(recorded, 0), "requested"));

	node->is_deaf = false;
	rounds(node);
	assert_rebooted(node, 1);
	after = asked(node);
	assert_true(json_is_true(json_at(json_array_get(after, 0), "requested")));
	rounds(node);
	rounds(node);
	assert_rebooted(node, 1);

	boot(node, "boot-two", true);
	rounds(node);
	assert_string_equal(problem(node), "");
	assert_null(json_at(node->plan, "reboot"));
	assert_rebooted(node, 1);
	json_decref(after);
	after = asked(node);
	assert_true(json_is_true(json_at(json_array_get(after, 0), "closed")));
}

/* Complaint: a value that never reaches the kernel reboots the node for ever. */
/* Complaint: reboot loops, because what is wanted never reaches the kernel. */
TEST_WITH(the_same_cause_never_reboots_twice_without_effect, set_up, tear_down)
{
	struct node *node = *state;

	host_tree_file(node->tree, "etc/modprobe.d/stale.conf",
		       "install ib_core /sbin/modprobe -i ib_core netns_mode=1\n");
	node->is_allowed = true;
	rounds(node);
	assert_rebooted(node, 1);
	boot(node, "boot-two", false);
	rounds(node);
	assert_string_equal(problem(node), "RebootDidNotHelp");
	assert_non_null(strstr(problem_text(node), "/etc/modprobe.d/stale.conf"));
	assert_non_null(strstr(problem_text(node), "orbweaver drain retry"));
	assert_string_equal(json_str_at(node->told, "inVain"), CAUSE);
	assert_null(json_at(node->plan, "reboot"));
	rounds(node);
	assert_rebooted(node, 1);
	/* Nor after a boot that somebody else asked for. */
	boot(node, "boot-three", false);
	rounds(node);
	assert_string_equal(problem(node), "RebootDidNotHelp");
	assert_rebooted(node, 1);
}

/* Who manages the host's files takes ours away, so that it is always new. */
TEST_WITH(nor_when_its_file_is_written_anew_in_each_boot, set_up, tear_down)
{
	struct node *node = *state;

	node->is_allowed = true;
	rounds(node);
	boot(node, "boot-two", false);
	host_tree_remove(node->tree, FILE_);
	rounds(node);
	assert_string_equal(problem(node), "RebootDidNotHelp");
	assert_rebooted(node, 1);
}

/* hostd itself refuses, whatever it is told. */
TEST_WITH(hostd_refuses_what_the_record_forbids, set_up, tear_down)
{
	static const char *const steps[][2] = {
		{"record-reboot", "RebootDidNotHelp"},
		{"reboot", "RebootNotRecorded"},
	};
	struct node *node = *state;

	node->is_allowed = true;
	rounds(node);
	boot(node, "boot-two", false);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		json_auto_t *step = json_pack("{s:s, s:s, s:s}", "step", steps[i][0], "cause",
					      CAUSE, "boot", "boot-two");
		json_auto_t *result = NULL;
		struct err err = {0};

		assert_int_equal(host_execute(host_tree_host(node->tree), step, &result, &err), -1);
		assert_string_equal(err.reason, steps[i][1]);
		json_put_str(step, "boot", "boot-one");
		assert_int_equal(host_execute(host_tree_host(node->tree), step, &result, &err), -1);
		assert_string_equal(err.reason, "BootChanged");
	}
	assert_rebooted(node, 1);
}

TEST_WITH(is_tried_once_more_when_somebody_wants_it_in_this_boot, set_up, tear_down)
{
	struct node *node = *state;

	node->is_allowed = true;
	rounds(node);
	boot(node, "boot-two", false);
	rounds(node);
	node->retry = "boot-two";
	rounds(node);
	assert_rebooted(node, 2);
	/* The word holds for one boot. */
	boot(node, "boot-three", false);
	rounds(node);
	assert_string_equal(problem(node), "RebootDidNotHelp");
	assert_rebooted(node, 2);
}

TEST_WITH(another_wish_ends_what_was_in_vain, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *list = NULL;

	node->is_allowed = true;
	rounds(node);
	boot(node, "boot-two", false);
	rounds(node);
	node->mode = "shared";
	rounds(node);
	assert_string_equal(problem(node), "");
	list = asked(node);
	assert_true(json_is_true(json_at(json_array_get(list, 0), "closed")));
}

/* Whoever flips a switch all day long. */
/* Complaint: reboot loops although the mode is right, because the command line says another one. */
TEST_WITH(a_mode_that_is_right_needs_no_boot, set_up, tear_down)
{
	struct node *node = *state;

	boot(node, "boot-two", true);
	node->is_allowed = true;
	host_tree_file(node->tree, "proc/cmdline", "quiet ib_core.netns_mode=1\n");
	rounds(node);
	assert_rebooted(node, 0);
	assert_null(json_at(node->plan, "reboot"));
}

TEST_WITH(three_boots_a_day_are_the_most, set_up, tear_down)
{
	struct node *node = *state;
	char id[] = "boot-a";

	node->is_allowed = true;
	for (int i = 0; i < HOST_BOOTS_A_DAY; i++) {
		rounds(node);
		assert_rebooted(node, i + 1);
		id[5]++;
		boot(node, id, true);
		rounds(node);
		assert_string_equal(problem(node), "");
		/* By hand back to the other. */
		host_tree_boot(node->tree, id, false);
		host_tree_remove(node->tree, FILE_);
	}
	rounds(node);
	assert_string_equal(problem(node), "RebootsTooOften");
	assert_null(json_at(node->plan, "reboot"));
	assert_rebooted(node, HOST_BOOTS_A_DAY);
}

/* The record is on disk, nobody was asked, and the power goes. */
TEST_WITH(a_power_cut_between_record_and_reboot_counts_as_the_boot, set_up, tear_down)
{
	struct node *node = *state;

	node->is_allowed = true;
	node->is_deaf = true;
	rounds(node);
	boot(node, "boot-two", true);
	rounds(node);
	assert_string_equal(problem(node), "");
	assert_rebooted(node, 0);
	/* The same, and the boot did not bring it. */
	host_tree_boot(node->tree, "boot-two", false);
	host_tree_remove(node->tree, FILE_);
	rounds(node);
	boot(node, "boot-three", false);
	rounds(node);
	assert_string_equal(problem(node), "RebootDidNotHelp");
	assert_rebooted(node, 0);
}

TEST_WITH(a_reboot_that_does_not_start_is_told_and_asked_for_again, set_up, tear_down)
{
	struct node *node = *state;

	node->is_allowed = true;
	rounds(node);
	host_tree_file(node->tree, HOST_BOOTS_FILE,
		       "{\"asked\": [{\"cause\": \"" CAUSE "\", \"bootID\": \"boot-one\", "
		       "\"at\": \"2026-01-31T10:00:00Z\", \"requests\": 1, "
		       "\"requestedAt\": \"2026-01-31T10:00:01Z\"}]}");
	(void)round_of(node);
	assert_string_equal(problem(node), "RebootDidNotStart");
	assert_string_equal(json_str_at(node->plan, "reboot", "cause"), CAUSE);
	assert_rebooted(node, 2);
	rounds(node);
	assert_rebooted(node, 2);
}

TEST_WITH(a_first_process_that_refuses_is_no_boot, set_up, tear_down)
{
	struct node *node = *state;
	json_auto_t *list = NULL;

	host_tree_refuse_reboots(node->tree, true);
	node->is_allowed = true;
	rounds(node);
	assert_rebooted(node, 0);
	list = asked(node);
	assert_null(json_at(json_array_get(list, 0), "requested"));
	host_tree_refuse_reboots(node->tree, false);
	json_array_clear(node->refused);
	rounds(node);
	assert_rebooted(node, 1);
}

TEST_WITH(without_a_record_that_can_be_read_nothing_reboots, set_up, tear_down)
{
	static const char *const texts[] = {"", "{\"asked\": 3}", "[1", "\xff"};
	struct node *node = *state;

	node->is_allowed = true;
	rounds(node);
	boot(node, "boot-two", false);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_array_clear(node->refused);
		host_tree_file(node->tree, HOST_BOOTS_FILE, texts[i]);
		host_tree_remove(node->tree, FILE_);
		rounds(node);
		assert_string_equal(problem(node), "BootsUnreadable");
		assert_null(json_at(node->plan, "reboot"));
	}
	assert_rebooted(node, 1);
}

TEST_WITH(without_a_record_that_can_be_written_nothing_reboots, set_up, tear_down)
{
	json_auto_t *step = json_pack("{s:s, s:s, s:s}", "step", "record-reboot", "cause", CAUSE,
				      "boot", "boot-one");
	json_auto_t *result = NULL;
	struct node *node = *state;
	struct err err = {0};

	host_tree_file(node->tree, "var/lib/orbweaver", "no folder\n");
	assert_int_equal(host_execute(host_tree_host(node->tree), step, &result, &err), -1);
	assert_string_equal(err.reason, "BootsNotWritten");
	node->is_allowed = true;
	rounds(node);
	assert_rebooted(node, 0);
}
