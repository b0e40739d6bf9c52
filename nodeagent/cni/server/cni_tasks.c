// SPDX-License-Identifier: Apache-2.0
/*
 * A task for each thing to be done, in one list in the order in which they came; tasks_schedule()
 * starts what may start. All that is known of the disk came from workers: their last frames, and
 * the survey at the start. Below cni_server.c, between plugin_connection.c and worker_process.c.
 */
#include "nodeagent/cni/server/cni_tasks.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/server/cni_error.h"
#include "nodeagent/cni/worker/attachment.h"
#include "nodeagent/cni/worker/external_ipam.h"
#include "nodeagent/cni/worker/meta_call.h"

enum { TELL_MS = 50 };

bool tasks_have_notes(const struct cni_server *server)
{
	for (const struct task *t = server->tasks; t; t = t->next)
		if (t->note)
			return true;
	return false;
}

bool task_is_del(const struct task *task)
{
	return task->has_call && task->call.command == CALL_DEL;
}

/* The runtime waits for its answer. */
static bool is_call(const struct task *task)
{
	return task->kind == CNI_JOB_CALL || task->kind == CNI_JOB_CLUSTER;
}

/* A DEL that waited would keep its pod from ending. */
bool task_may_wait(const struct task *task)
{
	return task->kind == CNI_JOB_CALL && !task_is_del(task);
}

/* ---- the agent hears ------------------------------------------------------------------------- */

static void say(struct cni_server *server, const char *key, json_t *value)
{
	json_auto_t *message = json_object();

	json_put(message, key, value);
	if (server->agent)
		channel_send(server->agent, message);
}

/* UIDs of the pods that get something now. Returns new. */
static json_t *pods_at_work(const struct cni_server *server)
{
	json_t *uids = json_array();

	for (const struct task *t = server->tasks; t; t = t->next)
		if (t->state == TASK_RUNS && t->has_call && t->call.command == CALL_ADD &&
		    t->call.pod_uid)
			json_array_append_new(uids, json_string(t->call.pod_uid));
	return uids;
}

/* After a while, so that many pods are one message. */
void tasks_tell(void *arg)
{
	struct cni_server *server = arg;
	json_auto_t *message = json_object();
	auto_strbuf struct strbuf text = {0};

	metrics_render(server->metrics.all, &text);
	/* In one: a pod is in the one list before it is out of the other. */
	json_put(message, "attachments", attachment_index_list(server->ledger));
	json_put(message, "adding", pods_at_work(server));
	json_put(message, "podNetworks", json_incref(server->networks));
	if (server->agent)
		channel_send(server->agent, message);
	say(server, "metrics", json_string(strbuf_str(&text)));
	/* What many pods at once needed goes back. */
	if (!server->tasks)
		mem_trim();
}

void tasks_tell_soon(struct cni_server *server)
{
	if (!timer_is_active(server->telling))
		timer_start(server->telling, TELL_MS);
}

/* One sentence that stands alone: who, what, why, what to do. */
static void report_failure(struct cni_server *server, const struct task *task,
			   const struct err *err)
{
	const struct cni_call *call = &task->call;
	json_t *event;

	log_warn("call of a plugin failed", F_STR("command", cni_command_name(call->command)),
		 F_STR("plugin", call->plugin ? call->plugin : ""),
		 F_STR("container", call->container), F_STR("interface", call->ifname),
		 F_STR("network", call->network),
		 F_STR("namespace", call->pod_namespace ? call->pod_namespace : ""),
		 F_STR("pod", call->pod_name ? call->pod_name : ""), F_ERR(err));
	if (!call->pod_namespace || !call->pod_name)
		return;
	event = json_pack("{s:{s:s, s:s}, s:s}", "pod", "namespace", call->pod_namespace, "name",
			  call->pod_name, "reason", err->reason);
	json_put_str(json_object_get(event, "pod"), "uid", call->pod_uid);
	json_put(event, "message",
		 json_fmt("interface %s of network %s: %s %s: %s", call->ifname, call->network,
			  call->plugin, cni_command_name(call->command), err->text));
	say(server, "event", event);
}

/* ---- a task's end ---------------------------------------------------------------------------- */

static void accept_again(struct cni_server *server)
{
	if (!timer_is_active(server->accepting))
		return;
	timer_stop(server->accepting);
	poller_want(server->listening, POLL_READ);
}

void task_free(struct task *task)
{
	struct cni_server *server = task->server;

	for (struct task **t = &server->tasks; *t; t = &(*t)->next) {
		if (*t != task)
			continue;
		*t = task->next;
		server->n_tasks--;
		break;
	}
	plugin_connection_free(task->conversation);
	worker_process_free(task->run);
	if (task->has_call)
		cni_call_done(&task->call);
	timer_free(task->patience);
	json_decref(task->question);
	free(task->container);
	free(task->note);
	mem_free(task);
	accept_again(server);
}

static void measure(const struct task *task, const struct err *err)
{
	const struct cni_server *server = task->server;
	const char *command = cni_command_name(task->call.command);
	/* Names of plugins come from links on the disk; ours are few. */
	const char *plugin = task->call.plugin && attachment_knows(task->call.plugin)
				     ? task->call.plugin
				     : "other";

	metric_add(server->metrics.calls, 1, plugin, command, err ? err->reason : "ok");
	metric_observe(server->metrics.seconds, (double)(clock_us() - task->came_us) / 1e6, plugin,
		       command);
}

/* The plugin prints it; then the task ends when the connection does. */
static void answer(struct task *task, const json_t *result, const struct err *err)
{
	json_auto_t *object = NULL;
	auto_free char *text = NULL;

	measure(task, err);
	if (err) {
		report_failure(task->server, task, err);
		object = cni_error(task->call.version, err);
	}
	if (object || result)
		text = json_dumps(object ? object : result, JSON_COMPACT);
	tasks_tell_soon(task->server);
	task->state = TASK_ANSWERED;
	if (task->conversation)
		plugin_connection_done(task->conversation, text, err ? 1 : 0);
	else
		task_free(task);
}

static void wait_for(struct cni_server *server, const char *container, bool has_left)
{
	if (!*container)
		return;
	if (!has_left) {
		(void)json_object_del(server->unfinished, container);
		return;
	}
	json_put_bool(server->unfinished, container, true);
	if (timer_is_active(server->again))
		return;
	timer_start(server->again, server->again_ms);
	server->again_ms = server->again_ms * 2 < SERVER_AGAIN_MAX_MS ? server->again_ms * 2
								      : SERVER_AGAIN_MAX_MS;
}

/* A deadline that is `ms` where an ADD has SERVER_ADD_MS. */
int64_t tasks_scaled_ms(const struct cni_server *server, int64_t ms)
{
	return ms * server->config.add_ms / SERVER_ADD_MS;
}

int64_t cni_server_del_ms(size_t devices)
{
	size_t most = (SERVER_DEL_MAX_MS - SERVER_DEL_MS) / SERVER_DEL_DEVICE_MS;

	return SERVER_DEL_MS + (int64_t)(devices < most ? devices : most) * SERVER_DEL_DEVICE_MS;
}

/* ---- what a worker asks ---------------------------------------------------------------------- */

/* Takes the reply, which has the worker's id. */
void task_answer_question(struct task *task, json_t *reply)
{
	json_decref(take_ptr(task->question));
	task->question_id = 0;
	timer_stop(task->patience);
	worker_process_answer(task->run, reply);
}

void task_fail_without_agent(struct task *task)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "AgentAway",
		      "the agent of this node, which asks the API server for addresses and "
		      "settings, does not answer: see whether the pod orbweaver-agent runs on it; "
		      "the runtime tries again");
	task_answer_question(task, ask_reply_new(task->question, NULL, &err));
}

static void on_patience(void *arg)
{
	task_fail_without_agent(arg);
}

/*
 * Addresses are the pod's, not a sandbox's: as long as another NIC has some, or a sandbox made
 * anew, they are not given back; the last one gives all back.
 */
static bool pod_has_more(struct cni_server *server, const struct task *task)
{
	const char *uid = json_str_at(task->question, "pod", "uid");

	attachment_index_mark(server->ledger, task->container, "spiderpool",
			      json_str_at(task->question, "ifname"));
	for (const struct task *t = server->tasks; t; t = t->next)
		if (uid && t->kind == CNI_JOB_CALL && t->call.command == CALL_ADD &&
		    str_eq(t->call.pod_uid, uid))
			return true;
	return uid && attachment_index_has(server->ledger, "spiderpool", uid);
}

void task_send_question(struct task *task)
{
	struct cni_server *server = task->server;
	json_auto_t *message = ask_with_id(task->question, ++server->last_id);

	task->question_id = server->last_id;
	channel_send(server->agent, message);
}

static void ask_agent(struct task *task, const json_t *question)
{
	struct cni_server *server = task->server;

	json_decref(task->question);
	task->question = json_incref((json_t *)question);
	if (str_eq(json_str_at(question, "kind"), "release") && pod_has_more(server, task)) {
		task_answer_question(task, ask_reply_new(question, json_object(), NULL));
		return;
	}
	if (!server->agent && !task_may_wait(task)) {
		task_fail_without_agent(task);
		return;
	}
	if (server->agent)
		task_send_question(task);
	timer_start(task->patience, tasks_scaled_ms(server, SERVER_AGENT_MS));
}

static void run_program(struct task *task, const json_t *exec)
{
	int64_t id = json_integer_value(json_at(exec, "id"));
	struct err err = {0};

	if (!task->conversation)
		(void)err_set(&err, ERR_TRANSIENT, "IpamFailed",
			      "the runtime has given the call up, and nobody runs programs for it");
	else if (plugin_connection_exec(task->conversation, (uint32_t)id, exec) < 0)
		external_ipam_too_large(json_str_or(json_at(exec, "path"), "?"), &err);
	else
		return;
	worker_process_answer(task->run, ask_reply_new(exec, NULL, &err));
}

static void on_asked(void *arg, const json_t *request)
{
	if (str_eq(json_str_at(request, "kind"), "exec"))
		run_program(arg, request);
	else
		ask_agent(arg, request);
}

/* ---- a worker's end -------------------------------------------------------------------------- */

static void measure_steps(const struct task *task, const json_t *steps)
{
	const json_t *step;
	size_t i;

	json_array_foreach ((json_t *)steps, i, step)
		metric_observe(task->server->metrics.steps,
			       json_number_value(json_at(step, "seconds")),
			       json_str_or(json_at(step, "step"), "?"),
			       json_is_true(json_at(step, "ok")) ? "ok" : "failed");
}

/*
 * A STATUS fails by what a plugin of the cluster's network says, not by what keeps us from calling
 * it: for an error the node becomes NotReady, and after five minutes its running pods are evicted.
 */
static void answer_call(struct task *task, const json_t *result, const struct err *err)
{
	if (err && task->call.command == CALL_STATUS && !str_eq(err->reason, "PluginFailed")) {
		log_warn("the plugins of the cluster's network cannot be called for their status",
			 F_ERR(err));
		err = NULL;
	}
	answer(task, result, err);
}

static void on_without_answer(struct task *task)
{
	bool is_add = task->kind == CNI_JOB_CALL && task->call.command == CALL_ADD;
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "WorkerEnded",
		      "%s of this interface was cut off after %lld s; the runtime tries again",
		      cni_command_name(task->call.command),
		      (long long)((clock_us() - task->came_us) / 1000000));
	if (task->kind == CNI_JOB_CALL || task->kind == CNI_JOB_UNDO)
		wait_for(task->server, task->container, true);
	if (is_add) {
		/* What it has done is taken away before the answer. */
		task->failed = err;
		task->kind = CNI_JOB_UNDO;
		task->state = TASK_WAITS;
	} else if (is_call(task)) {
		answer_call(task, NULL, &err);
	} else if (task->kind == CNI_JOB_UNDO) {
		answer(task, NULL, &task->failed);
	} else {
		wait_for(task->server, task->container, true);
		task_free(task);
	}
}

static void on_answered(struct task *task, const json_t *done)
{
	const json_t *error = json_object_get(done, "error");
	struct err err = {0};

	if (error)
		(void)ask_error_read(error, &err);
	else
		free(take_ptr(task->note));
	/* The worker has removed it. One that is left is tried again with the rest. */
	if (task->note && !timer_is_active(task->server->again))
		timer_start(task->server->again, task->server->again_ms);
	if (task->kind == CNI_JOB_UNDO)
		answer(task, NULL, &task->failed);
	else if (is_call(task))
		answer_call(task, json_at(done, "result"), error ? &err : NULL);
	else
		task_free(task);
}

/* It never had its job. */
static void on_failed(struct task *task, const struct err *failed)
{
	struct err err = *failed;

	wait_for(task->server, task->container, true);
	if (is_call(task) || task->kind == CNI_JOB_UNDO)
		answer_call(task, NULL, &err);
	else
		task_free(task);
}

/* What is not known may have a file. */
void tasks_remember(struct cni_server *server, const char *container, json_t *attachments)
{
	if (!*container)
		return;
	if (attachments)
		attachment_index_set(server->ledger, container, attachments);
	if (attachments && json_array_size(attachments) == 0)
		(void)json_object_del(server->containers, container);
	else
		json_put_bool(server->containers, container, true);
}

static void on_ended(void *arg, const json_t *done, const struct err *failed)
{
	struct task *task = arg;
	struct cni_server *server = task->server;
	json_auto_t *kept = json_incref((json_t *)done);
	struct err why = failed ? *failed : (struct err){0};

	server->n_running--;
	timer_stop(task->patience);
	json_decref(take_ptr(task->question));
	worker_process_free(take_ptr(task->run));
	if (kept) {
		tasks_remember(server, task->container, json_at(kept, "attachments"));
		wait_for(server, task->container, json_is_true(json_at(kept, "left")));
		measure_steps(task, json_at(kept, "steps"));
		tasks_tell_soon(server);
		on_answered(task, kept);
	} else if (failed) {
		on_failed(task, &why);
	} else {
		tasks_remember(server, task->container, NULL);
		on_without_answer(task);
	}
	deferred_run(server->rested);
	tasks_schedule(server);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Of the cluster network's plugin. */
static bool is_status(const struct task *task)
{
	return task->kind == CNI_JOB_CLUSTER && task->call.command == CALL_STATUS;
}

static void start(struct task *task)
{
	struct cni_server *server = task->server;
	bool is_add = task->has_call && task->call.command == CALL_ADD;
	int64_t ms = is_add            ? SERVER_ADD_MS
		     : is_status(task) ? SERVER_STATUS_MS
				       : cni_server_del_ms(attachment_index_devices(
						 server->ledger, task->container));
	const struct cni_job job = {
		.kind = task->kind,
		.call = task->has_call ? &task->call : NULL,
		.container = task->container,
		.has_plugin = task->conversation != NULL,
		.note = task->note,
		.ms = tasks_scaled_ms(server, ms),
	};

	task->run = worker_process_new(
		&(struct worker_process_config){.loop = server->config.loop,
						.orders = server->config.orders,
						.job = cni_job_new(&job),
						.fd = task->has_call ? task->call.netns : -1,
						.deadline_ms = job.ms,
						.asked = on_asked,
						.ended = on_ended,
						.arg = task});
	task->state = TASK_RUNS;
	server->n_running++;
	/* Before its worker can ask for an address: who has one is held from then on. */
	if (is_add)
		say(server, "adding", pods_at_work(server));
}

static bool calls_meta(const struct task *task)
{
	return task->has_call && str_eq(task->call.plugin, META_PLUGIN);
}

/* What is left of a sandbox, or was there before an ADD begins. */
static bool may_undo(const struct task *task)
{
	return !task->has_call || task->call.command == CALL_ADD;
}

/*
 * A call that another plugin makes while we call that one for the meta plugin: macvlan asks
 * `spiderpool` for its address. Who waits for whom is the other way round then.
 */
static bool is_nested(const struct task *task)
{
	if (!task->has_call || calls_meta(task))
		return false;
	for (const struct task *t = task->server->tasks; t != task; t = t->next)
		if (t->state == TASK_RUNS && str_eq(t->container, task->container) &&
		    (calls_meta(t) ||
		     (may_undo(t) &&
		      attachment_index_carries(task->server->ledger, t->container, META_PLUGIN))))
			return true;
	return false;
}

/* Is it its sandbox's oldest one that is to be done? */
static bool is_next(const struct task *task)
{
	if (is_nested(task) || task->kind == CNI_JOB_CLUSTER)
		return true;
	for (const struct task *t = task->server->tasks; t != task; t = t->next)
		if (t->state != TASK_ANSWERED && str_eq(t->container, task->container))
			return false;
	return true;
}

void tasks_schedule(struct cni_server *server)
{
	struct task *task, *next;

	for (task = server->tasks; task; task = next) {
		next = task->next;
		if (task->state != TASK_WAITS || !is_next(task))
			continue;
		/*
		 * What others wait for while they have a worker may not wait for one of theirs; nor
		 * a STATUS, by which the runtime tells whether the node is well.
		 */
		if (server->n_running < SERVER_WORKERS_MAX || is_nested(task) || is_status(task))
			start(task);
	}
	metric_set(server->metrics.waiting, (double)(server->n_tasks - server->n_running));
}

struct task *task_new(struct cni_server *server, enum cni_job_kind kind, const char *container)
{
	struct task *task = mem_new(struct task), **last = &server->tasks;

	task->server = server;
	task->kind = kind;
	task->container = str_dup(container);
	task->came_us = clock_us();
	task->patience = timer_new(server->config.loop, on_patience, task);
	while (*last)
		last = &(*last)->next;
	*last = task;
	server->n_tasks++;
	return task;
}

/* Of sandboxes: a task without a call each. */
void tasks_look_after(struct cni_server *server, enum cni_job_kind kind, const char *container)
{
	for (const struct task *t = server->tasks; t; t = t->next)
		if (t->kind == kind && t->state == TASK_WAITS && str_eq(t->container, container))
			return;
	(void)task_new(server, kind, container);
}

void tasks_finish_all(struct cni_server *server)
{
	const char *container;
	const json_t *value;

	json_each (server->unfinished, container, value)
		tasks_look_after(server, CNI_JOB_FINISH, container);
	tasks_schedule(server);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* The plugins of the cluster's network are called, where it is the meta plugin that is. */
static bool pass_on(struct task *task)
{
	if (!calls_meta(task))
		return false;
	task->kind = CNI_JOB_CLUSTER;
	task->state = TASK_WAITS;
	tasks_schedule(task->server);
	return true;
}

/* All that other sandboxes have of the network is looked at behind the answer's back. */
static void sweep(struct task *task)
{
	struct cni_server *server = task->server;
	json_auto_t *containers = json_copy(server->containers);
	const json_t *value;
	const char *container;

	/* Of those that a worker is at the file may have come just now. */
	for (const struct task *t = server->tasks; t; t = t->next)
		if (t->run && *t->container)
			json_put_bool(containers, t->container, true);
	json_each (containers, container, value) {
		struct task *each = task_new(server, CNI_JOB_SWEEP, container);

		cni_call_share(&task->call, &each->call);
		each->has_call = true;
	}
	if (!pass_on(task))
		answer(task, NULL, NULL);
	tasks_schedule(server);
}

static void on_called(void *arg, const struct wire_message *message, int netns)
{
	struct task *task = arg;
	struct cni_server *server = task->server;
	struct err err = {0};
	int rc = cni_call_read(message, netns, &task->call, &err);

	task->has_call = true;
	if (rc == 0 && !attachment_knows(task->call.plugin))
		rc = err_set(&err, ERR_INVALID, "UnknownPlugin",
			     "no plugin is called %s here: remove this link to orbweaver-cni, or "
			     "update the agent",
			     task->call.plugin);
	if (rc < 0) {
		answer(task, NULL, &err);
		return;
	}
	/*
	 * Also without the agent: containerd 2 and CRI-O take an error for "no network", the node
	 * becomes NotReady, and after five minutes its running pods are evicted. Calls that need
	 * the agent say so themselves, and are tried again.
	 */
	if (task->call.command == CALL_STATUS) {
		if (!pass_on(task))
			answer(task, NULL, NULL);
		return;
	}
	if (task->call.command == CALL_GC) {
		sweep(task);
		return;
	}
	free(task->container);
	task->container = str_dup(task->call.container);
	task->state = TASK_WAITS;
	tasks_schedule(server);
}

static void on_resulted(void *arg, uint32_t id, const json_t *end)
{
	struct task *task = arg;
	json_auto_t *request = ask_new(id, "exec");

	if (task->run)
		worker_process_answer(task->run,
				      ask_reply_new(request, json_incref((json_t *)end), NULL));
}

/* The runtime has given up, or has its answer. */
static void on_closed(void *arg)
{
	struct task *task = arg;
	struct cni_server *server = task->server;

	plugin_connection_free(take_ptr(task->conversation));
	if (task->state == TASK_ANSWERED || (task->state == TASK_WAITS && !task_is_del(task)))
		task_free(task);
	else if (task->state == TASK_RUNS && is_call(task) && !task_is_del(task))
		worker_process_kill(task->run);
	tasks_schedule(server);
}

void tasks_accept(struct cni_server *server, int fd)
{
	struct task *task;

	assert(server && fd >= 0);
	/* Until its call is there it is in nobody's way. */
	task = task_new(server, CNI_JOB_CALL, "");
	task->state = TASK_ANSWERED;
	task->conversation = plugin_connection_new(
		&(struct plugin_connection_config){.loop = server->config.loop,
						   .fd = fd,
						   .called = on_called,
						   .resulted = on_resulted,
						   .closed = on_closed,
						   .arg = task});
}
