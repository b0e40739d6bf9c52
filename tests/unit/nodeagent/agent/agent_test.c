// SPDX-License-Identifier: Apache-2.0
/*
 * The state machine, between a host and a planner that are made up here: two PFs, "a" and "b", each
 * with a number of VFs. Real are the loop, the order of things, and what is told.
 */
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/agent/agent.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/host_plan/history.h"
#include "nodeagent/host_plan/planner.h"
#include "tests/support/yaml.h"

#define A "0000:0a:00.0"
#define B "0000:0b:00.0"
/* A VF of each. */
#define A_VF "0000:0a:10.0"
#define B_VF "0000:0b:10.0"
/* Who has them, in what the planner says. */
#define HOLDER "default/job"

/* ---- a host: requests are carried out in the next turn, in order ----------------------------- */

/* Steps may be under way side by side, nothing else. */
struct request {
	char kind;
	json_t *body;
	hostd_done_fn done;
	void *arg;
};

struct world {
	struct loop *loop;
	struct metrics *metrics;
	struct agent *agent;
	struct deferred *carry_out;
	/* The host. */
	json_t *vfs;         /* {pf: count} */
	json_t *disk;        /* the state file */
	const char *blocked; /* PF that somebody holds */
	bool reboot;
	bool away;   /* PF "a" */
	bool needed; /* PF "a" carries the default route */
	int mtu;     /* of the VF of "a"; 0: it has none, and no driver */
	/* What the planner was told last. */
	bool awaited;
	int looks, settings; /* of which some see settings of NICs */
	json_t *told_held;   /* what hostd was told last */
	/* What goes wrong. */
	const char *fail_pf; /* its steps */
	struct err fail;     /* with that */
	int fail_saves, fail_loads;
	size_t stuck;
	bool hold; /* steps wait until the test lets them go */
	bool hold_withdrawal;
	/* Devices that the kubelet may not give away; NULL: none. */
	json_t *withdrawn;
	struct deferred *let_withdraw;
	/* The requests under way. */
	struct request requests[HOSTD_PARALLEL_MAX];
	size_t done; /* how many */
	size_t most; /* that were under way at the same time */
	size_t parallel;
	struct strbuf order; /* what was asked for, a letter each: l o O v w s e */
	struct strbuf told;
	int steps;
	bool stopped;
};

static struct world *w;

static size_t clock_looks;

int64_t clock_us(void)
{
	struct timespec now;

	clock_looks++;
	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void ask(const char *kind, json_t *body, hostd_done_fn done, void *arg)
{
	/* Beside a step there are steps. */
	assert_true(w->done == 0 || (kind[0] == 's' && w->requests[0].kind == 's'));
	assert_true(w->done < ARRAY_LEN(w->requests));
	strbuf_adds(&w->order, kind);
	w->requests[w->done++] = (struct request){kind[0], body, done, arg};
	w->most = w->done > w->most ? w->done : w->most;
	if (!(w->hold && kind[0] == 's'))
		deferred_run(w->carry_out);
}

void hostd_load(struct hostd *hostd, hostd_done_fn done, void *arg)
{
	ask("l", NULL, done, arg);
}

void hostd_save(struct hostd *hostd, const json_t *state, hostd_done_fn done, void *arg)
{
	ask("v", json_incref((json_t *)state), done, arg);
}

void hostd_observe(struct hostd *hostd, unsigned int flags, hostd_done_fn done, void *arg)
{
	w->looks++;
	w->settings += (flags & HOST_OBSERVE_SETTINGS) != 0;
	ask(flags & HOST_OBSERVE_HOLDERS ? "O" : "o", NULL, done, arg);
}

void hostd_step(struct hostd *hostd, const json_t *step, int deadline_ms, hostd_done_fn done,
		void *arg)
{
	ask("s", json_incref((json_t *)step), done, arg);
}

void hostd_set_node_addresses(struct hostd *hostd, const json_t *addresses)
{
}

void hostd_set_held(struct hostd *hostd, const json_t *held)
{
	json_decref(w->told_held);
	w->told_held = json_deep_copy(held);
}

size_t hostd_stuck(const struct hostd *hostd, const json_t **ret_request)
{
	return w->stuck;
}

static json_t *observe(void)
{
	json_t *observed = json_pack("{s:O, s:[], s:{s:s, s:[]}}", "vfs", w->vfs, "interfaces",
				     "node", "bootId", "one", "protected");

	if (!w->away)
		json_array_append_new(json_at(observed, "interfaces"),
				      json_pack("{s:s, s:s, s:[{s:s}]}", "pciAddress", A, "name",
						"ens1", "Vfs", "pciAddress", A_VF));
	if (w->mtu && !w->away)
		json_put_str(
			json_array_get(
				json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"),
				0),
			"driver", "mlx5_core");
	if (w->needed)
		json_array_append_new(json_at(observed, "node", "protected"),
				      json_pack("{s:s, s:s}", "pciAddress", A, "reason", "needed"));
	return observed;
}

static json_t *execute(const json_t *step, struct err *err)
{
	const char *pf = json_str_at(step, "pf");

	w->steps++;
	if (str_eq(json_str_at(step, "step"), "set-mtu")) {
		w->mtu = (int)json_integer_value(json_at(step, "mtu"));
		return json_pack("{s:b, s:i}", "changed", 1, "tookMs", 1);
	}
	if (str_eq(pf, w->fail_pf)) {
		*err = w->fail;
		return NULL;
	}
	json_object_set(w->vfs, pf, json_at(step, "count"));
	return json_pack("{s:b, s:i}", "changed", 1, "tookMs", 1);
}

static int fails(int *times, const char *reason, struct err *err)
{
	if (*times == 0)
		return 0;
	(*times)--;
	return err_set(err, ERR_HOST, reason, "as the test wants");
}

static void carry_out(void *arg)
{
	struct request request = w->requests[0];
	json_auto_t *body = request.body, *result = NULL;
	struct err err = {0};

	w->done--;
	for (size_t i = 0; i < w->done; i++)
		w->requests[i] = w->requests[i + 1];
	if (w->done > 0)
		deferred_run(w->carry_out);
	if (request.kind == 'o' || request.kind == 'O')
		result = observe();
	else if (request.kind == 's')
		result = execute(body, &err);
	else if (request.kind == 'l' && fails(&w->fail_loads, "StateDamaged", &err) == 0)
		result = json_incref(w->disk);
	else if (request.kind == 'v' && fails(&w->fail_saves, "StateNotSaved", &err) == 0) {
		json_decref(w->disk);
		w->disk = json_incref(body);
		result = json_object();
	}
	request.done(request.arg, result, result ? NULL : &err);
}

/* ---- a planner: spec.interfaces[].numVfs against the host ------------------------------------ */

static bool is_refused(const struct planner_input *input, const json_t *step)
{
	const json_t *refused;
	size_t i;

	json_array_foreach (input->refused, i, refused)
		if (json_same(refused, step))
			return true;
	return false;
}

static void plan_pf(const struct planner_input *input, json_t *plan, const json_t *entry)
{
	const char *pf = json_str_at(entry, "pciAddress");
	json_auto_t *step = json_pack("{s:s, s:s, s:O}", "step", "set-num-vfs", "pf", pf, "count",
				      json_at(entry, "numVfs"));

	if (json_same(json_at(entry, "numVfs"), json_at(input->observed, "vfs", pf)))
		return;
	if (str_eq(pf, w->blocked) || json_at(input->held, str_eq(pf, A) ? A_VF : B_VF)) {
		json_array_append_new(json_at(plan, "blocked"),
				      json_pack("{s:s, s:s, s:s, s:s, s:b}", "pf", pf, "reason",
						"VfInUse", "holder", HOLDER, "message",
						"a pod has it", "all", 1));
		return;
	}
	json_object_set_new(json_at(plan, "found"), pf, json_true());
	if (!is_refused(input, step))
		json_array_append_new(json_at(plan, "steps"),
				      json_pack("{s:O, s:s, s:s, s:s}", "step", step, "pf", pf,
						"impact", "pf", "why", "the number differs"));
}

/* spec.mtu, of the VF of "a", unless a pod has it. */
static void plan_mtu(const struct planner_input *input, json_t *plan)
{
	const json_t *mtu = json_at(input->spec, "mtu");

	if (mtu && json_integer_value(mtu) != w->mtu && !json_at(input->held, A_VF))
		json_array_append_new(json_at(plan, "steps"),
				      json_pack("{s:{s:s, s:s, s:O}, s:s, s:s, s:s, s:s}", "step",
						"step", "set-mtu", "device", A_VF, "mtu", mtu, "pf",
						A, "vf", A_VF, "impact", "none", "why",
						"the MTU differs"));
}

json_t *planner_plan(const struct planner_input *input, struct err *err)
{
	json_t *plan = json_pack("{s:[], s:[], s:[], s:o}", "steps", "blocked", "problems", "found",
				 input->found ? json_deep_copy(input->found) : json_object());
	const json_t *entry;
	size_t i;

	w->awaited = input->is_held_awaited;
	if (json_at(input->spec, "bad")) {
		json_decref(plan);
		(void)err_set(err, ERR_INVALID, "BadSpec", "spec.bad: must not be");
		return NULL;
	}
	json_array_foreach (json_at(input->spec, "interfaces"), i, entry)
		plan_pf(input, plan, entry);
	plan_mtu(input, plan);
	if (w->reboot)
		json_put(plan, "reboot", json_pack("{s:s, s:s}", "reason", "R", "message", "m"));
	return plan;
}

/* ---- the test's side ------------------------------------------------------------------------- */

static void on_any(void *arg)
{
}

static void on_told(void *arg, bool warning, const char *reason, const char *message)
{
	strbuf_addf(&w->told, "%s: %s\n", reason, message);
}

static void on_stopped(void *arg)
{
	w->stopped = true;
}

static void let_withdraw(void *arg)
{
	agent_withdrawn(w->agent);
}

static void on_withdraw(void *arg, const json_t *devices)
{
	strbuf_adds(&w->order, devices ? "w" : "e");
	json_decref(w->withdrawn);
	w->withdrawn = json_incref((json_t *)devices);
	if (devices && !w->hold_withdrawal)
		deferred_run(w->let_withdraw);
}

static struct agent *start(void)
{
	return w->agent = agent_new(&(struct agent_config){
		       .loop = w->loop,
		       .metrics = w->metrics,
		       .parallel = w->parallel ? w->parallel : 1,
		       .looked = on_any,
		       .withdraw = on_withdraw,
		       .changed = on_any,
		       .emit = on_told,
	       });
}

static int setup(void **state)
{
	w = mem_zalloc(sizeof(*w));
	w->loop = loop_new();
	w->metrics = metrics_new();
	w->carry_out = deferred_new(w->loop, carry_out, NULL);
	w->let_withdraw = deferred_new(w->loop, let_withdraw, NULL);
	w->vfs = json_pack("{s:i, s:i}", A, 0, B, 0);
	w->disk = json_object();
	return 0;
}

static int teardown(void **state)
{
	agent_free(w->agent);
	deferred_free(w->carry_out);
	deferred_free(w->let_withdraw);
	json_decref(w->withdrawn);
	loop_free(w->loop);
	json_decref(w->vfs);
	json_decref(w->disk);
	for (size_t i = 0; i < w->done; i++)
		json_decref(w->requests[i].body);
	json_decref(w->told_held);
	strbuf_done(&w->order);
	strbuf_done(&w->told);
	metrics_free(w->metrics);
	free(w);
	return 0;
}

static void want(int generation, int a, int b)
{
	json_auto_t *object =
		json_pack("{s:{s:s, s:i}, s:{s:[{s:s, s:i}, {s:s, s:i}]}}", "metadata", "uid", "u",
			  "generation", generation, "spec", "interfaces", "pciAddress", A, "numVfs",
			  a, "pciAddress", B, "numVfs", b);

	agent_set_node_state(w->agent, object);
}

/* Turn the loop until it is so; the test's own limit ends it if it never is. */
#define until(condition)                                                                           \
	do {                                                                                       \
		while (!(condition))                                                               \
			loop_turn(w->loop, true);                                                  \
	} while (0)

static int count(const char *pf)
{
	return (int)json_integer_value(json_at(w->vfs, pf));
}

static bool plan_is_empty(void)
{
	struct agent_view view = agent_view(w->agent);

	return view.plan && json_array_size(json_at(view.plan, "steps")) == 0 && !view.activity;
}

static bool was_told(const char *reason)
{
	return strstr(strbuf_str(&w->told), reason) != NULL;
}

TEST_WITH(nics_are_configured_side_by_side, setup, teardown)
{
	w->parallel = 2;
	w->hold = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->done == 2);
	assert_non_null(strstr(agent_view(w->agent).activity, "; 1 more beside it"));
	w->hold = false;
	deferred_run(w->carry_out);
	until(was_told("Configured"));
	assert_int_equal(count(A), 4);
	assert_int_equal(count(B), 2);
	assert_non_null(strstr(strbuf_str(&w->order), "OvwssO"));
}

TEST_WITH(a_link_that_is_lost_while_steps_run_is_seen_at_once, setup, teardown)
{
	w->hold = true;
	agent_set_may_execute(start(), true);
	want(1, 0, 2);
	until(w->done == 1 && w->requests[0].kind == 's');
	for (int is_up = 1; is_up >= 0; is_up--) {
		const json_t *host;

		agent_set_link(w->agent, A, is_up, -1);
		host = json_at(
			json_array_get(json_at(agent_view(w->agent).observed, "interfaces"), 0),
			"host");
		assert_int_equal(json_is_true(json_at(host, "noLink")), !is_up);
	}
	w->hold = false;
	deferred_run(w->carry_out);
	until(was_told("Configured"));
}

TEST_WITH(one_after_the_other_when_that_is_asked_for, setup, teardown)
{
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(was_told("Configured"));
	assert_int_equal(w->most, 1);
}

/* One fails while another runs: that one is waited for, and nothing is looked at before. */
TEST_WITH(the_round_ends_when_the_last_of_them_is_done, setup, teardown)
{
	w->parallel = 2;
	w->hold = true;
	w->fail_pf = A;
	(void)err_set(&w->fail, ERR_HOST, "VfCountRefused", "no");
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->done == 2);
	/* What is wanted changes, and the agent is asked to end. */
	want(2, 5, 2);
	agent_stop(w->agent, on_stopped, NULL);
	loop_turn(w->loop, false);
	assert_int_equal(w->done, 2);
	assert_false(w->stopped);
	deferred_run(w->carry_out);
	until(w->stopped);
	assert_int_equal(w->done, 0);
	assert_int_equal(w->steps, 2);
	assert_int_equal(count(B), 2);
	assert_true(was_told("VfCountRefused"));
}

/* So that the link that it takes is nobody's fault. */
TEST_WITH(what_it_acts_on_is_known_during_a_step_and_for_a_while, setup, teardown)
{
	const json_t *acted;

	w->parallel = 2;
	w->hold = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->done == 2);
	acted = agent_view(w->agent).acted;
	assert_true(history_is_ours(acted, A, clock_ms() + HISTORY_NO_LINK_MS));
	w->hold = false;
	deferred_run(w->carry_out);
	until(was_told("Configured"));
	acted = agent_view(w->agent).acted;
	assert_true(history_is_ours(acted, A, clock_ms()));
	assert_false(history_is_ours(acted, A, clock_ms() + HISTORY_NO_LINK_MS));
	assert_false(history_is_ours(acted, "0000:99:00.0", clock_ms()));
}

TEST_WITH(does_nothing_before_the_nodestate_was_seen, setup, teardown)
{
	agent_set_may_execute(start(), true);
	until(agent_view(w->agent).observed && !w->done);
	assert_int_equal(w->steps, 0);
	assert_null(strchr(strbuf_str(&w->order), 's'));
	assert_int_equal(w->order.data[0], 'l');
}

TEST_WITH(keeps_how_it_was_found_before_the_first_step_and_looks_after_the_last, setup, teardown)
{
	const char *order;

	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(was_told("Configured"));
	assert_true(was_told("Configured: ens1: 4 VFs made; " B ": 2 VFs made (2 steps, "));
	assert_int_equal(count(A), 4);
	assert_int_equal(count(B), 2);
	order = strbuf_str(&w->order);
	/* A close look, the file, off the kubelet's list, both steps, a close look, and on it. */
	assert_non_null(strstr(order, "OvwssO"));
	assert_non_null(strchr(order, 'e'));
	assert_null(w->withdrawn);
	assert_non_null(json_at(w->disk, "found", A));
	assert_int_equal(json_integer_value(json_at(w->disk, "nodeState", "generation")), 1);
	assert_true(plan_is_empty());
	assert_int_equal(agent_view(w->agent).generation, 1);
}

/* Wanted, or to be put back: also by the look that is under way when that becomes known. */
TEST_WITH(settings_of_nics_are_looked_at_where_they_matter, setup, teardown)
{
	json_auto_t *object = yaml("{metadata: {uid: u, generation: 2}, spec: {interfaces: [], "
				   "nicSettings: [{pciAddress: '" A "', settings: {pfc: [3]}}]}}");

	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(was_told("Configured") && plan_is_empty());
	assert_int_equal(w->settings, 0);
	agent_set_node_state(w->agent, object);
	until(w->settings > 0 && plan_is_empty() && !w->done);
	agent_free(w->agent);
	w->settings = 0;
	json_replace(&w->disk, yaml("{found: {settings: {'" A "': {values: {pfc: []}}}}}"));
	start();
	until(w->settings > 0 && !w->done);
}

TEST_WITH(executes_only_while_it_may, setup, teardown)
{
	start();
	want(1, 4, 2);
	until(agent_view(w->agent).observed && !w->done);
	assert_int_equal(w->steps, 0);
	assert_null(strchr(strbuf_str(&w->order), 'v'));
	agent_set_may_execute(w->agent, true);
	until(count(A) == 4 && count(B) == 2);
}

TEST_WITH(who_takes_over_reads_what_the_other_one_has_written, setup, teardown)
{
	start();
	want(1, 4, 2);
	until(agent_view(w->agent).observed && !w->done);
	/* The agent that executed meanwhile. */
	json_decref(w->disk);
	w->disk = json_pack("{s:{s:b}}", "found", "another", 1);
	agent_set_may_execute(w->agent, true);
	until(count(A) == 4 && count(B) == 2);
	assert_non_null(json_at(w->disk, "found", "another"));
	assert_non_null(json_at(w->disk, "found", A));
}

TEST_WITH(the_mtu_of_a_vf_is_not_set_once_a_pod_has_it, setup, teardown)
{
	json_auto_t *object = json_pack("{s:{s:s, s:i}, s:{s:[], s:i}}", "metadata", "uid", "u",
					"generation", 1, "spec", "interfaces", "mtu", 9000);
	json_auto_t *held = json_pack("{s:s}", A_VF, "ns/pod");

	w->mtu = 1500;
	w->hold_withdrawal = true;
	agent_set_may_execute(start(), true);
	agent_set_node_state(w->agent, object);
	until(w->withdrawn);
	assert_true(json_is_true(json_at(w->withdrawn, A_VF)));
	/* Given away just before the kubelet heard of it. */
	agent_set_held(w->agent, held);
	agent_withdrawn(w->agent);
	until(!w->withdrawn && !w->done);
	assert_int_equal(w->mtu, 1500);
	assert_int_equal(w->steps, 0);
}

TEST_WITH(what_pods_were_given_is_on_the_disk_and_known_to_the_next, setup, teardown)
{
	json_auto_t *given = json_pack("{s:{}}", "spidernet.io/x");

	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(was_told("Configured"));
	assert_null(agent_view(w->agent).given);
	agent_set_given(w->agent, given);
	until(json_at(w->disk, "given"));
	assert_true(json_same(json_at(w->disk, "given"), given));
	until(!w->done);
	agent_free(w->agent);
	start();
	until(agent_view(w->agent).given);
	assert_true(json_same(agent_view(w->agent).given, given));
}

TEST_WITH(what_fails_is_told_and_the_other_pf_done, setup, teardown)
{
	struct agent_view view;

	w->fail_pf = A;
	(void)err_set(&w->fail, ERR_HOST, "VfCountRefused", "no");
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(count(B) == 2 && plan_is_empty());
	assert_int_equal(count(A), 0);
	assert_int_equal(w->steps, 2);
	assert_true(was_told("VfCountRefused"));
	assert_false(was_told("Configured"));
	view = agent_view(w->agent);
	assert_int_equal(json_array_size(view.failures), 1);
	assert_string_equal(json_str_at(json_array_get(view.failures, 0), "pf"), A);
	assert_true(metric_get(metric_counter(w->metrics, "orbweaver_agent_failures_total",
					      "Looks, steps and saves that failed.", "reason"),
			       "VfCountRefused") == 1);
	/* Another wish, another chance. */
	w->fail_pf = NULL;
	want(2, 3, 2);
	until(was_told("Configured"));
	assert_int_equal(count(A), 3);
	assert_int_equal(json_array_size(agent_view(w->agent).failures), 0);
}

TEST_WITH(what_failed_is_tried_again_by_itself, setup, teardown)
{
	w->fail_pf = A;
	(void)err_set(&w->fail, ERR_CONFLICT, "VfCountChanged", "no");
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(w->steps == 3);
	w->fail_pf = NULL;
	until(count(A) == 4);
	/* What passes by itself is not told. */
	assert_false(was_told("VfCountChanged"));
}

TEST_WITH(a_new_wish_ends_the_plan_after_the_step_that_runs, setup, teardown)
{
	w->hold = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->done && w->order.data[w->order.len - 1] == 's');
	want(2, 5, 0);
	w->hold = false;
	deferred_run(w->carry_out);
	until(was_told("Configured"));
	assert_int_equal(count(A), 5);
	/* B was never asked for under the old wish. */
	assert_int_equal(w->steps, 2);
	assert_int_equal(count(B), 0);
}

TEST_WITH(a_vf_that_a_pod_got_while_a_plan_ran_stays_with_it, setup, teardown)
{
	json_auto_t *held = json_pack("{s:s}", B_VF, "default/job");

	json_object_set_new(w->vfs, B, json_integer(4));
	w->hold = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 8);
	until(w->done && w->order.data[w->order.len - 1] == 's');
	agent_set_held(w->agent, held);
	w->hold = false;
	deferred_run(w->carry_out);
	until(w->steps == 2 || was_told("VfInUse"));
	assert_int_equal(count(A), 4);
	assert_int_equal(count(B), 4);
	/* It is free again. */
	agent_set_held(w->agent, NULL);
	until(count(B) == 8);
}

TEST_WITH(no_step_before_the_kubelet_lets_go_of_the_vfs, setup, teardown)
{
	json_auto_t *held = json_pack("{s:s}", A_VF, "default/job");

	w->hold_withdrawal = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->withdrawn);
	assert_non_null(json_at(w->withdrawn, A_VF));
	loop_turn(w->loop, false);
	assert_int_equal(w->steps, 0);
	/* The kubelet had given one away before it heard of it. */
	agent_set_held(w->agent, held);
	w->hold_withdrawal = false;
	let_withdraw(NULL);
	until(was_told("VfInUse") && !w->done);
	assert_int_equal(count(A), 0);
	assert_int_equal(count(B), 2);
	/* What is not changed any more can be given away again. */
	assert_null(w->withdrawn);
}

/* What the operator says of the node, beside its spec. */
static void want_while(const char *drain_state, int a)
{
	json_auto_t *object =
		json_pack("{s:{s:s, s:i, s:{s:s}}, s:{s:[{s:s, s:i}]}}", "metadata", "uid", "u",
			  "generation", 1, "annotations", "sriovnetwork.openshift.io/current-state",
			  drain_state, "spec", "interfaces", "pciAddress", A, "numVfs", a);

	agent_set_node_state(w->agent, object);
}

TEST_WITH(what_pods_give_back_goes_to_no_other_pod, setup, teardown)
{
	json_auto_t *held = json_pack("{s:s}", A_VF, "default/job");
	json_auto_t *nobody = json_object();

	agent_set_held(start(), held);
	agent_set_may_execute(w->agent, true);
	want_while("Idle", 4);
	until(was_told("VfInUse") && !w->done);
	assert_null(w->withdrawn);

	w->hold_withdrawal = true;
	want_while("Draining", 4);
	until(w->withdrawn);
	assert_true(json_is_true(json_at(w->withdrawn, A_VF)));
	assert_false(agent_view(w->agent).withdrawn);
	let_withdraw(NULL);
	assert_true(agent_view(w->agent).withdrawn);
	assert_int_equal(count(A), 0);

	/* The pod has ended. */
	w->hold_withdrawal = false;
	agent_set_held(w->agent, nobody);
	until(count(A) == 4 && !w->withdrawn);
	assert_false(agent_view(w->agent).withdrawn);
}

TEST_WITH(what_is_asked_back_no_more_is_given_away_again, setup, teardown)
{
	json_auto_t *held = json_pack("{s:s}", A_VF, "default/job");

	agent_set_held(start(), held);
	agent_set_may_execute(w->agent, true);
	want_while("Draining", 4);
	until(agent_view(w->agent).withdrawn);
	want_while("Idle", 4);
	until(!w->withdrawn);
	assert_int_equal(count(A), 0);
}

TEST_WITH(stops_while_it_waits_for_the_kubelet, setup, teardown)
{
	w->hold_withdrawal = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->withdrawn);
	agent_stop(w->agent, on_stopped, NULL);
	until(w->stopped);
	agent_withdrawn(w->agent);
	assert_int_equal(w->steps, 0);
}

TEST_WITH(no_step_before_the_state_file_is_written, setup, teardown)
{
	w->fail_saves = 1;
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(was_told("StateNotSaved"));
	assert_int_equal(w->steps, 0);
	until(count(A) == 4);
	assert_int_equal(w->fail_saves, 0);
}

TEST_WITH(a_damaged_state_file_is_told_and_done_without, setup, teardown)
{
	w->fail_loads = 1;
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(count(A) == 4);
	assert_true(was_told("StateDamaged"));
}

TEST_WITH(waits_asleep_for_the_next_try_of_the_state_file, setup, teardown)
{
	clock_looks = 0;
	w->fail_loads = 1;
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(agent_view(w->agent).observed);
	/* Who spins for a second asks what time it is a million times. */
	assert_in_range(clock_looks, 1, 1000);
}

TEST_WITH(what_somebody_else_changed_is_repaired_and_told, setup, teardown)
{
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(was_told("Configured"));
	json_object_set_new(w->vfs, A, json_integer(0));
	agent_wake(w->agent);
	until(was_told("Repaired: ens1: 4 VFs made (1 step, "));
	assert_int_equal(count(A), 4);
}

TEST_WITH(trouble_is_believed_when_it_was_seen_twice, setup, teardown)
{
	size_t asked;

	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(was_told("Configured"));
	w->blocked = A;
	asked = w->order.len;
	want(2, 2, 0);
	until(strchr(strbuf_str(&w->order) + asked, 'O') && !w->done);
	assert_false(was_told("VfInUse"));
	/* It was nothing. */
	w->blocked = NULL;
	until(count(A) == 2);
	assert_false(was_told("VfInUse"));
	w->blocked = A;
	want(3, 3, 0);
	until(was_told("VfInUse"));
	assert_int_equal(json_array_size(json_at(agent_view(w->agent).plan, "blocked")), 1);
	assert_int_equal(count(A), 2);
}

/* How often the message was logged of A and HOLDER. */
static int logged(int fd, const char *msg)
{
	char text[16384];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	char *rest = text, *line;
	int found = 0;

	text[n > 0 ? n : 0] = '\0';
	while ((line = strsep(&rest, "\n"))) {
		json_auto_t *entry = json_loads(line, 0, NULL);

		found += str_eq(json_str_at(entry, "msg"), msg) &&
			 str_eq(json_str_at(entry, "pf"), A) &&
			 str_eq(json_str_at(entry, "for"), HOLDER);
	}
	return found;
}

TEST_WITH(the_log_says_who_is_waited_for_and_when_no_more, setup, teardown)
{
	json_auto_t *held = json_pack("{s:s}", A_VF, HOLDER);
	auto_close int log = memfd_create("log", MFD_CLOEXEC);

	log_set_fd(log);
	agent_set_held(start(), held);
	agent_set_may_execute(w->agent, true);
	want(1, 4, 0);
	until(was_told("VfInUse") && !w->done);
	/* Looked at once more, and still the same. */
	want(2, 4, 0);
	until(agent_view(w->agent).generation == 2 && !w->done);
	assert_int_equal(logged(log, "a change waits"), 1);
	assert_int_equal(logged(log, "a change no longer waits"), 0);
	agent_set_held(w->agent, NULL);
	until(was_told("Configured"));
	log_set_fd(STDERR_FILENO);
	assert_int_equal(logged(log, "a change waits"), 1);
	assert_int_equal(logged(log, "a change no longer waits"), 1);
}

TEST_WITH(a_pf_whose_step_hangs_is_left_alone_while_it_does, setup, teardown)
{
	int steps;

	w->fail_pf = A;
	(void)err_set(&w->fail, ERR_HOST, "HostHung", "asleep");
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->steps == 1);
	w->stuck = 1;
	until(count(B) == 2 && plan_is_empty());
	steps = w->steps;
	/* Its pause ends, and the worker is still asleep. */
	until(json_array_size(json_at(agent_view(w->agent).plan, "steps")) == 1);
	assert_int_equal(w->steps, steps);
	w->stuck = 0;
	w->fail_pf = NULL;
	agent_wake(w->agent);
	until(count(A) == 4);
}

TEST_WITH(a_request_for_a_reboot_stands_for_the_refusal_behind_it, setup, teardown)
{
	w->fail_pf = A;
	(void)err_set(&w->fail, ERR_HOST, "RdmaModeBusy", "pods");
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(was_told("RdmaModeBusy"));
	until(plan_is_empty());
	assert_int_equal(json_array_size(agent_view(w->agent).failures), 1);
	w->reboot = true;
	agent_wake(w->agent);
	until(was_told("R: m"));
	assert_int_equal(json_array_size(agent_view(w->agent).failures), 0);
	assert_int_equal(w->steps, 1);
}

TEST_WITH(a_spec_of_the_wrong_shape_is_a_failure_that_names_it, setup, teardown)
{
	json_auto_t *object = json_pack("{s:{s:s, s:i}, s:{s:i}}", "metadata", "uid", "u",
					"generation", 1, "spec", "bad", 1);

	agent_set_may_execute(start(), true);
	agent_set_node_state(w->agent, object);
	until(was_told("BadSpec"));
	assert_int_equal(w->steps, 0);
	want(2, 1, 0);
	until(count(A) == 1 && plan_is_empty());
	assert_int_equal(json_array_size(agent_view(w->agent).failures), 0);
}

TEST_WITH(stops_after_the_step_that_runs, setup, teardown)
{
	w->hold = true;
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->done && w->order.data[w->order.len - 1] == 's');
	agent_stop(w->agent, on_stopped, NULL);
	loop_turn(w->loop, false);
	assert_false(w->stopped);
	deferred_run(w->carry_out);
	until(w->stopped);
	assert_int_equal(w->steps, 1);
	assert_int_equal(count(A), 4);
}

TEST_WITH(stops_at_once_when_no_step_runs, setup, teardown)
{
	start();
	agent_stop(w->agent, on_stopped, NULL);
	until(w->stopped);
}

TEST_WITH(stops_after_a_save_even_when_something_else_is_wanted_now, setup, teardown)
{
	size_t asked;

	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(w->done && w->order.data[w->order.len - 1] == 'v');
	asked = w->order.len;
	want(2, 5, 2);
	agent_stop(w->agent, on_stopped, NULL);
	until(w->stopped);
	assert_int_equal(w->order.len, asked);
}

TEST_WITH(a_node_that_boots_without_a_server_gets_its_vfs, setup, teardown)
{
	agent_set_may_execute(start(), true);
	want(1, 4, 2);
	until(was_told("Configured"));
	agent_free(w->agent);
	json_object_set_new(w->vfs, A, json_integer(0));
	agent_set_may_execute(start(), true);
	until(count(A) == 4);
	assert_int_equal(agent_view(w->agent).generation, 1);
}

TEST_WITH(knows_the_interfaces_of_nics, setup, teardown)
{
	start();
	until(agent_view(w->agent).observed);
	assert_true(agent_knows_interface(w->agent, "ens1"));
	assert_false(agent_knows_interface(w->agent, "veth1"));
}

/* ---- what earlier looks have seen ------------------------------------------------------------ */

static size_t size_of(const char *list)
{
	return json_array_size(json_at(agent_view(w->agent).observed, list));
}

TEST_WITH(a_pf_that_is_away_stays_in_view, setup, teardown)
{
	agent_set_may_execute(start(), true);
	want(1, 4, 0);
	until(was_told("Configured"));
	assert_int_equal(size_of("missing"), 0);
	w->away = true;
	agent_wake(w->agent);
	until(size_of("interfaces") == 0);
	assert_int_equal(size_of("missing"), 1);
	w->away = false;
	agent_wake(w->agent);
	until(size_of("interfaces") == 1);
	assert_int_equal(size_of("missing"), 0);
}

/* Also before the next look: a status is written as soon as the NodeState is known. */
TEST_WITH(a_pf_that_is_away_at_the_start_is_known_from_the_status, setup, teardown)
{
	json_auto_t *object =
		json_pack("{s:{s:s, s:i}, s:{s:[{s:s, s:i}]}, s:{s:[{s:s}]}}", "metadata", "uid",
			  "u", "generation", 1, "spec", "interfaces", "pciAddress", A, "numVfs", 4,
			  "status", "interfaces", "pciAddress", A);

	w->away = true;
	start();
	until(agent_view(w->agent).observed && !w->done);
	assert_int_equal(size_of("missing"), 0);
	agent_set_node_state(w->agent, object);
	assert_int_equal(size_of("missing"), 1);
	agent_free(w->agent);
	agent_set_node_state(start(), object);
	until(agent_view(w->agent).observed);
	assert_int_equal(size_of("missing"), 1);
}

TEST_WITH(what_the_node_needs_is_known_to_the_next_agent, setup, teardown)
{
	w->needed = true;
	agent_set_may_execute(start(), true);
	want(1, 0, 0);
	until(json_array_size(json_at(w->disk, "node", "protected")) == 1);
	until(!w->done);
	agent_free(w->agent);
	w->needed = false;
	start();
	until(agent_view(w->agent).observed);
	assert_string_equal(
		json_str_at(json_array_get(json_at(agent_view(w->agent).observed, "interfaces"), 0),
			    "host", "protected"),
		"needed");
}

TEST_WITH(the_planner_knows_whether_the_kubelet_was_heard, setup, teardown)
{
	json_auto_t *nobody = json_object();

	start();
	want(1, 4, 0);
	until(agent_view(w->agent).plan);
	assert_true(w->awaited);
	agent_set_held(w->agent, nobody);
	until(!w->awaited);
	/* It cannot be known any more. */
	agent_set_held(w->agent, NULL);
	until(w->awaited);
}

TEST_WITH(hostd_knows_what_pods_have_before_the_next_step, setup, teardown)
{
	json_auto_t *held = json_pack("{s:s}", A, "ml/trainer");

	agent_set_held(start(), held);
	assert_true(json_same(w->told_held, held));
}

TEST_WITH(addresses_that_people_wrote_are_read_in_any_case, setup, teardown)
{
	json_auto_t *object = json_pack("{s:{s:s, s:i}, s:{s:[i, {s:s, s:i}]}}", "metadata", "uid",
					"u", "generation", 1, "spec", "interfaces", 3, "pciAddress",
					"0000:0A:00.0", "numVfs", 4);
	json_auto_t *unchanged = json_deep_copy(object);

	agent_set_may_execute(start(), true);
	agent_set_node_state(w->agent, object);
	until(count(A) == 4);
	assert_true(json_same(object, unchanged));
	assert_string_equal(
		json_str_at(json_array_get(json_at(agent_view(w->agent).offered, "interfaces"), 1),
			    "pciAddress"),
		A);
}
