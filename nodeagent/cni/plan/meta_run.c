// SPDX-License-Identifier: Apache-2.0
/*
 * A counter per network of plugins that were called and that are left; next_*() look for one whose
 * turn it is, ends move the counters. A failed ADD changes its command to DEL once nothing runs.
 * meta_call.c calls plugins in between.
 */
#include "nodeagent/cni/plan/meta_run.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "nodeagent/cni/plan/plugin_order.h"

struct progress {
	size_t called; /* ADD: plugins whose ADD was called, and could be started */
	size_t left;   /* DEL: plugins that are still to get it */
	bool running;
};

struct meta_run {
	const char *command; /* what runs now: a failed ADD becomes DEL */
	bool undoing;
	json_t *delegates;
	json_t *results;
	size_t n;
	struct progress *progress;
	size_t *done; /* plugins that ended well, going forward */
	bool *there;  /* networks of which DEL has something left to do */
	bool stopped; /* nothing more begins, going forward */
	bool failed, left;
	struct err failure;
};

static const char *const commands[] = {"ADD", "CHECK", "DEL", "GC", "STATUS"};

static const char *static_command(const char *command)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (str_eq(commands[i], command))
			return commands[i];
	assert(!"one of the commands above");
	return NULL;
}

static bool command_is(const struct meta_run *run, const char *command)
{
	return str_eq(run->command, command);
}

static const json_t *delegate_at(const struct meta_run *run, size_t i)
{
	return json_array_get(run->delegates, i);
}

struct meta_run *meta_run_new(const char *command, const json_t *delegates, const json_t *results)
{
	struct meta_run *run = mem_new(struct meta_run);

	run->command = static_command(command);
	run->delegates = json_incref((json_t *)delegates);
	run->results = json_array();
	run->n = json_array_size(delegates);
	run->progress = mem_calloc(run->n + 1, sizeof(*run->progress));
	run->done = mem_calloc(run->n + 1, sizeof(*run->done));
	run->there = mem_calloc(run->n + 1, sizeof(*run->there));
	for (size_t i = 0; i < run->n; i++) {
		json_t *result = json_array_get(results, i);

		json_array_append_new(run->results, result && !command_is(run, "ADD")
							    ? json_incref(result)
							    : json_null());
		run->progress[i].left = delegate_plugins(delegate_at(run, i));
	}
	return run;
}

void meta_run_free(struct meta_run *run)
{
	if (!run)
		return;
	json_decref(run->delegates);
	json_decref(run->results);
	mem_free(run->progress);
	mem_free(run->done);
	mem_free(run->there);
	mem_free(run);
}

/* ---- what comes next ------------------------------------------------------------------------- */

static bool any_runs(const struct meta_run *run)
{
	for (size_t i = 0; i < run->n; i++)
		if (run->progress[i].running)
			return true;
	return false;
}

static bool next_to_add(struct meta_run *run, struct meta_step *ret)
{
	for (size_t i = 0; !run->stopped && i < run->n; i++) {
		if (run->progress[i].running || !plugin_order_may_add(run->delegates, run->done, i))
			continue;
		*ret = (struct meta_step){i, run->done[i], run->command};
		run->progress[i].called = run->done[i] + 1;
		return true;
	}
	return false;
}

/* The last network first. */
static bool next_to_delete(struct meta_run *run, struct meta_step *ret)
{
	for (size_t i = 0; i < run->n; i++)
		run->there[i] = run->progress[i].left > 0 || run->progress[i].running;
	for (size_t i = run->n; i-- > 0;) {
		const struct progress *p = &run->progress[i];

		if (p->left == 0 || p->running ||
		    !plugin_order_may_delete(run->delegates, run->there, i))
			continue;
		*ret = (struct meta_step){i, p->left - 1, run->command};
		return true;
	}
	return false;
}

/* One after the other. */
static bool next_forward(struct meta_run *run, struct meta_step *ret)
{
	size_t n = command_is(run, "CHECK") ? run->n : run->n > 0;

	if (run->stopped || any_runs(run))
		return false;
	for (size_t i = 0; i < n; i++)
		if (delegate_has_command(delegate_at(run, i), run->command) &&
		    run->done[i] < delegate_plugins(delegate_at(run, i))) {
			*ret = (struct meta_step){i, run->done[i], run->command};
			return true;
		}
	return false;
}

bool meta_run_next(struct meta_run *run, struct meta_step *ret)
{
	bool there = command_is(run, "ADD")   ? next_to_add(run, ret)
		     : command_is(run, "DEL") ? next_to_delete(run, ret)
					      : next_forward(run, ret);

	if (!there)
		return false;
	assert(ret->delegate < run->n && !run->progress[ret->delegate].running);
	assert(ret->plugin < delegate_plugins(delegate_at(run, ret->delegate)));
	run->progress[ret->delegate].running = true;
	return true;
}

bool meta_run_coming(const struct meta_run *run, size_t delegate, struct meta_step *ret)
{
	assert(delegate < run->n);
	if (!command_is(run, "ADD") || run->stopped ||
	    run->done[delegate] >= delegate_plugins(delegate_at(run, delegate)))
		return false;
	*ret = (struct meta_step){delegate, run->done[delegate], run->command};
	return true;
}

json_t *meta_run_stdin(const struct meta_run *run, const struct meta_step *step)
{
	const json_t *result = json_array_get(run->results, step->delegate);
	bool known = json_is_object(result) && !str_eq(step->command, "GC") &&
		     !str_eq(step->command, "STATUS");

	assert(step->delegate < run->n);
	return delegate_stdin(delegate_at(run, step->delegate), step->plugin, step->command,
			      known ? result : NULL);
}

/* ---- how it went ----------------------------------------------------------------------------- */

/* Once nothing runs any more, what was called is undone. */
static void begin_undoing(struct meta_run *run)
{
	assert(!run->undoing || command_is(run, "DEL"));
	if (!command_is(run, "ADD") || !run->failed || any_runs(run))
		return;
	run->command = static_command("DEL");
	run->undoing = true;
	for (size_t i = 0; i < run->n; i++)
		run->progress[i].left = run->progress[i].called;
}

static void end_step(struct meta_run *run, const struct meta_step *step)
{
	struct progress *p = &run->progress[step->delegate];

	assert(step->delegate < run->n && p->running);
	assert(str_eq(step->command, "DEL") ? step->plugin + 1 == p->left
					    : step->plugin == run->done[step->delegate]);
	p->running = false;
	if (str_eq(step->command, "DEL"))
		p->left--;
}

void meta_run_succeeded(struct meta_run *run, const struct meta_step *step, const json_t *result)
{
	end_step(run, step);
	if (!str_eq(step->command, "DEL"))
		run->done[step->delegate]++;
	if (result)
		json_array_set_new(run->results, step->delegate, json_deep_copy(result));
	begin_undoing(run);
}

void meta_run_unstarted(struct meta_run *run, const struct meta_step *step, const struct err *err)
{
	assert(step->delegate < run->n && run->progress[step->delegate].running);
	if (str_eq(step->command, "ADD"))
		run->progress[step->delegate].called = step->plugin;
	meta_run_failed(run, step, err);
}

void meta_run_failed(struct meta_run *run, const struct meta_step *step, const struct err *err)
{
	end_step(run, step);
	run->left |= run->undoing;
	if (!run->failed)
		run->failure = *err;
	run->failed = true;
	if (command_is(run, "GC"))
		run->done[step->delegate]++;
	else if (!command_is(run, "DEL"))
		run->stopped = true;
	begin_undoing(run);
}

bool meta_run_has_ended(const struct meta_run *run)
{
	if (any_runs(run))
		return false;
	if (run->stopped && !run->undoing)
		return true;
	for (size_t i = 0; i < run->n; i++) {
		const json_t *delegate = delegate_at(run, i);

		if (command_is(run, "DEL") && run->progress[i].left > 0)
			return false;
		if (command_is(run, "ADD") && run->done[i] < delegate_plugins(delegate))
			return false;
		if ((command_is(run, "CHECK") ||
		     ((command_is(run, "GC") || command_is(run, "STATUS")) && i == 0)) &&
		    delegate_has_command(delegate, run->command) &&
		    run->done[i] < delegate_plugins(delegate))
			return false;
	}
	return true;
}

int meta_run_outcome(const struct meta_run *run, bool *ret_left, struct err *err)
{
	if (ret_left)
		*ret_left = run->left;
	if (!run->failed)
		return 0;
	*err = run->failure;
	return -1;
}

json_t *meta_run_results(struct meta_run *run)
{
	return run->results;
}
