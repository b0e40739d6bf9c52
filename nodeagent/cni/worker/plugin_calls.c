// SPDX-License-Identifier: Apache-2.0
/*
 * A queue: plugins whose turn it is come in, programs are begun at once, those of ours are called
 * the oldest first. So the interfaces of all networks are made before the first coordinator is
 * called. Between meta_call.c and external_ipam.c.
 */
#include "nodeagent/cni/worker/plugin_calls.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "nodeagent/cni/worker/external_ipam.h"

/* A plugin whose turn it is. A network has one at a time. */
struct call {
	struct meta_step step;
	struct attachment a;
	json_t *env, *config; /* what it borrows */
	bool is_ours;
	bool has_begun;                   /* the program or what is ours, or it could not */
	struct external_program *program; /* it runs; NULL: it is ours, waits or could not begin */
	struct err err;                   /* why it could not */
};

struct calls {
	const struct attachment *of;
	const json_t *delegates;
	struct meta_run *run;
	const struct own_plugins *own;
	struct call *queue; /* the oldest first */
	size_t n;           /* one for each network, at most */
};

static void queue_call(struct calls *calls, const struct meta_step *step)
{
	const json_t *delegate = json_array_get(calls->delegates, step->delegate);
	struct call *call = &calls->queue[calls->n++];

	*call = (struct call){.step = *step, .a = *calls->of};
	/* Our own environment, with the delegate's interface and arguments. */
	call->env = json_deep_copy(calls->of->env);
	json_put_str(call->env, "CNI_COMMAND", step->command);
	json_put_str(call->env, "CNI_IFNAME", json_str_at(delegate, "interface"));
	json_put_str(call->env, "CNI_ARGS", json_str_at(delegate, "args"));
	if (calls->of->netns < 0)
		json_put_str(call->env, "CNI_NETNS", "");
	call->config = meta_run_stdin(calls->run, step);
	call->a.key = (struct sandbox_key){delegate_plugin_type(delegate, step->plugin),
					   json_str_or(json_at(call->config, "name"), ""),
					   json_str_or(json_at(call->env, "CNI_IFNAME"), "")};
	call->a.config = call->config;
	call->a.env = call->env;
	call->a.kept = NULL;
	call->is_ours = calls->own->is_ours(&call->a);
}

static void begin_programs(struct calls *calls)
{
	for (size_t i = 0; i < calls->n; i++) {
		struct call *call = &calls->queue[i];

		if (call->is_ours || call->has_begun || !external_program_may_begin(&call->a))
			continue;
		call->has_begun = true;
		call->program = external_program_begin(
			&call->a, call->a.key.plugin, call->step.command, call->config, &call->err);
	}
}

/* What takes long goes on for all of them while the first is waited for. */
static void begin_own(struct calls *calls)
{
	for (size_t i = 0; i < calls->n; i++) {
		struct call *call = &calls->queue[i];

		/* The ADD fails: no other device is touched for it. */
		if (call->is_ours && call->err.class != ERR_NONE)
			return;
		if (!call->is_ours || call->has_begun || !str_eq(call->step.command, "ADD") ||
		    !calls->own->begins(call->a.key.plugin))
			continue;
		call->has_begun = true;
		if (calls->own->begin(&call->a, &call->err) < 0)
			return;
	}
}

static void remove_call(struct calls *calls, size_t i)
{
	json_decref(calls->queue[i].env);
	json_decref(calls->queue[i].config);
	calls->n--;
	memmove(&calls->queue[i], &calls->queue[i + 1], (calls->n - i) * sizeof(*calls->queue));
}

/* It failed. What waits in the queue for its ADD has nothing to undo, unless it has begun. */
static void end_failed(struct calls *calls, size_t i, bool has_run, const struct err *err)
{
	struct meta_step step = calls->queue[i].step;

	remove_call(calls, i);
	if (has_run)
		meta_run_failed(calls->run, &step, err);
	else
		meta_run_unstarted(calls->run, &step, err);
	for (i = calls->n; str_eq(step.command, "ADD") && i-- > 0;) {
		bool has_begun = calls->queue[i].has_begun;

		if (has_begun && !calls->queue[i].is_ours)
			continue;
		step = calls->queue[i].step;
		remove_call(calls, i);
		if (has_begun)
			meta_run_failed(calls->run, &step, err);
		else
			meta_run_unstarted(calls->run, &step, err);
	}
}

static void end_well(struct calls *calls, size_t i, const json_t *result)
{
	struct meta_step step = calls->queue[i].step;

	remove_call(calls, i);
	meta_run_succeeded(calls->run, &step, result);
}

static int name_network(const struct calls *calls, const struct call *call, struct err *err)
{
	const json_t *delegate = json_array_get(calls->delegates, call->step.delegate);

	return err_in(err, "network %s (%s): %s", json_str_at(delegate, "name"),
		      json_str_at(delegate, "interface"), call->a.key.plugin);
}

/*
 * A coordinator does not see the networks after its own; the first one looks on the network for all
 * NICs whose coordinators come next. Interfaces of the former, new.
 */
static json_t *prepare_coordinator(const struct calls *calls, const struct call *call)
{
	struct attachment_shared *shared = call->a.shared;
	json_t *later = json_array(), *delegate;
	size_t i;

	json_decref(shared->nics);
	shared->nics = json_array();
	json_array_foreach ((json_t *)calls->delegates, i, delegate) {
		json_t *ifname = json_at(delegate, "interface");
		struct meta_step next;

		if (i > call->step.delegate)
			json_array_append(later, ifname);
		if (meta_run_coming(calls->run, i, &next) &&
		    str_eq(delegate_plugin_type(delegate, next.plugin), "coordinator"))
			json_array_append_new(shared->nics,
					      json_pack("{s:O, s:o}", "ifname", ifname, "config",
							meta_run_stdin(calls->run, &next)));
	}
	return later;
}

static void call_own(struct calls *calls, size_t i)
{
	struct call *call = &calls->queue[i];
	json_auto_t *result = NULL, *later = NULL;
	struct err err = {0};

	if (str_eq(call->step.command, "ADD") && str_eq(call->a.key.plugin, "coordinator"))
		call->a.later = later = prepare_coordinator(calls, call);
	if (call->err.class != ERR_NONE) {
		err = call->err;
	} else if (calls->own->call(&call->a, call->step.command, &result, &err) == 0) {
		end_well(calls, i, result);
		return;
	}
	(void)name_network(calls, call, &err);
	end_failed(calls, i, true, &err);
}

static void end_program(struct calls *calls, size_t i)
{
	struct call *call = &calls->queue[i];
	const json_t *delegate = json_array_get(calls->delegates, call->step.delegate);
	struct err err = call->err;
	json_auto_t *end = call->program ? external_program_end(call->program, &err) : NULL;
	const char *out = json_str_or(json_at(end, "stdout"), "");
	json_int_t status = json_integer_value(json_at(end, "status"));
	json_auto_t *result = NULL;

	if (end && status != 0) {
		delegate_failure(delegate, call->step.plugin, call->step.command, (int)status, out,
				 json_str_at(end, "stderr"), &err);
		end_failed(calls, i, external_ipam_has_run(end), &err);
		return;
	}
	if (end && str_eq(call->step.command, "ADD"))
		result = delegate_result(delegate, out, strlen(out), &err);
	if (end && (result || !str_eq(call->step.command, "ADD"))) {
		end_well(calls, i, result);
		return;
	}
	(void)name_network(calls, call, &err);
	end_failed(calls, i, true, &err);
}

/* The oldest one that neither runs nor waits, else a program that has ended. */
static size_t next_to_end(const struct calls *calls)
{
	auto_free struct external_program **programs =
		mem_calloc(calls->n, sizeof(struct external_program *));
	auto_free size_t *places = mem_calloc(calls->n, sizeof(*places));
	size_t n = 0;

	for (size_t i = 0; i < calls->n; i++) {
		const struct call *call = &calls->queue[i];

		if (!call->program && (call->is_ours || call->has_begun))
			return i;
		if (!call->program)
			continue;
		programs[n] = call->program;
		places[n++] = i;
	}
	return places[external_program_wait(programs, n)];
}

void plugin_calls_run(const struct attachment *of, const json_t *delegates, struct meta_run *run,
		      const struct own_plugins *own)
{
	struct calls calls = {.of = of, .delegates = delegates, .run = run, .own = own};
	struct meta_step step;

	calls.queue = mem_calloc(json_array_size(delegates) + 1, sizeof(*calls.queue));
	for (;;) {
		size_t i;

		while (meta_run_next(run, &step))
			queue_call(&calls, &step);
		begin_programs(&calls);
		begin_own(&calls);
		if (calls.n == 0)
			break;
		i = next_to_end(&calls);
		if (calls.queue[i].is_ours)
			call_own(&calls, i);
		else
			end_program(&calls, i);
	}
	mem_free(calls.queue);
}
