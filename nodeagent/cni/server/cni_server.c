// SPDX-License-Identifier: Apache-2.0
/*
 * A task for each thing to be done, in one list in the order in which they came; schedule() starts
 * what may start. All that is known of the disk came from workers: their last frames, and the
 * survey at the start. Between plugin_connection.c, worker_process.c and the agent's channel.
 */
#include "nodeagent/cni/server/cni_server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/server/cni_error.h"
#include "nodeagent/cni/server/plugin_connection.h"
#include "nodeagent/cni/server/worker_process.h"
#include "nodeagent/cni/state/attachment_index.h"
#include "nodeagent/cni/state/notes.h"
#include "nodeagent/cni/worker/attachment.h"
#include "nodeagent/cni/worker/cni_job.h"
#include "nodeagent/cni/worker/external_ipam.h"
#include "nodeagent/cni/worker/meta_call.h"
#include "nodeagent/process/channel.h"

enum {
	TELL_MS = 50,
	/* Without descriptors, should no call end until then: others may have let some go. */
	ACCEPT_AGAIN_MS = 1000,
};

enum task_state {
	TASK_WAITS,    /* for its turn */
	TASK_RUNS,     /* it has a worker */
	TASK_ANSWERED, /* holds no place: its answer is on its way, or its call has yet to come */
};

/* Something to be done for one sandbox; in the order in which they came. */
struct task {
	struct cni_server *server;
	struct task *next;
	enum task_state state;
	enum cni_job_kind kind;
	struct plugin_connection *conversation; /* of the plugin that waits; NULL: nobody does */
	struct cni_call call;
	bool has_call;
	char *container;
	char *note;                 /* the file of it; NULL: none */
	struct worker_process *run; /* NULL: none runs */
	int64_t came_us;
	/* What its worker has asked of the agent and not heard yet; new. */
	json_t *question;
	int64_t question_id; /* 0: not sent, the agent is away */
	struct timer *patience;
	struct err failed; /* CNI_JOB_UNDO: what the answer will be */
};

/* What plugins have noted, as far as it is known. */
struct notes_turn {
	struct worker_process *worker; /* NULL: none is at them now */
	bool lists;                    /* that one reads those behind `last` */
	struct timer *next;
	char *last;   /* all before it were read in this turn; NULL: the turn is over */
	json_t *bad;  /* names of those that the next worker removes */
	json_t *kept; /* names of those that another version may read: true */
};

struct server_metrics {
	struct metrics *all;
	struct metric *calls, *seconds, *steps, *waiting;
};

struct cni_server {
	struct cni_server_config config;
	struct poller *listening;
	struct timer *accepting; /* runs while the listener waits for descriptors */
	bool accept_complained;
	struct worker_process *survey; /* NULL: none runs */
	json_t *surveyed;              /* what the survey has told; NULL: it is over */
	int waiting_agent;             /* its line, until the survey is over; -1 */
	bool is_listening;             /* notes that were there at the start come before any call */
	struct task *tasks;            /* the oldest first */
	size_t n_tasks, n_running;
	struct channel *agent; /* NULL: away */
	int64_t last_id;
	struct attachment_index *ledger;
	json_t *containers; /* that have a file, or may have one: true */
	json_t *unfinished; /* containers of which something waits: true */
	json_t *networks;   /* cni_server_set_networks(); NULL: not said yet */
	struct notes_turn notes;
	struct timer *again, *telling;
	int64_t again_ms;
	struct server_metrics metrics;
};

static void schedule(struct cni_server *server);
static void accept_again(struct cni_server *server);
static void work_off_notes(struct cni_server *server);
static void look_at_notes(struct cni_server *server, bool lists, bool cleans);
static void look_at_sandboxes(struct cni_server *server);

static bool has_notes_at_work(const struct cni_server *server)
{
	for (const struct task *t = server->tasks; t; t = t->next)
		if (t->note)
			return true;
	return false;
}

static bool is_del(const struct task *task)
{
	return task->has_call && task->call.command == CALL_DEL;
}

/* The runtime waits for its answer. */
static bool is_call(const struct task *task)
{
	return task->kind == CNI_JOB_CALL || task->kind == CNI_JOB_CLUSTER;
}

/* A DEL that waited would keep its pod from ending. */
static bool may_wait(const struct task *task)
{
	return task->kind == CNI_JOB_CALL && !is_del(task);
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
static void on_telling(void *arg)
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

static void tell_soon(struct cni_server *server)
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

static void task_free(struct task *task)
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
	tell_soon(task->server);
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
static int64_t scaled(const struct cni_server *server, int64_t ms)
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
static void answer_question(struct task *task, json_t *reply)
{
	json_decref(take_ptr(task->question));
	task->question_id = 0;
	timer_stop(task->patience);
	worker_process_answer(task->run, reply);
}

static void fail_without_agent(struct task *task)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "AgentAway",
		      "the agent of this node, which asks the API server for addresses and "
		      "settings, does not answer: see whether the pod orbweaver-agent runs on it; "
		      "the runtime tries again");
	answer_question(task, ask_reply_new(task->question, NULL, &err));
}

static void on_patience(void *arg)
{
	fail_without_agent(arg);
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

static void send_question(struct task *task)
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
		answer_question(task, ask_reply_new(question, json_object(), NULL));
		return;
	}
	if (!server->agent && !may_wait(task)) {
		fail_without_agent(task);
		return;
	}
	if (server->agent)
		send_question(task);
	timer_start(task->patience, scaled(server, SERVER_AGENT_MS));
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
static void remember(struct cni_server *server, const char *container, json_t *attachments)
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
		remember(server, task->container, json_at(kept, "attachments"));
		wait_for(server, task->container, json_is_true(json_at(kept, "left")));
		measure_steps(task, json_at(kept, "steps"));
		tell_soon(server);
		on_answered(task, kept);
	} else if (failed) {
		on_failed(task, &why);
	} else {
		remember(server, task->container, NULL);
		on_without_answer(task);
	}
	if (server->notes.last && !has_notes_at_work(server))
		work_off_notes(server);
	schedule(server);
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
		.ms = scaled(server, ms),
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

static void schedule(struct cni_server *server)
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

static struct task *task_new(struct cni_server *server, enum cni_job_kind kind,
			     const char *container)
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
static void look_after(struct cni_server *server, enum cni_job_kind kind, const char *container)
{
	for (const struct task *t = server->tasks; t; t = t->next)
		if (t->kind == kind && t->state == TASK_WAITS && str_eq(t->container, container))
			return;
	(void)task_new(server, kind, container);
}

static void finish_all(struct cni_server *server)
{
	const char *container;
	const json_t *value;

	json_each (server->unfinished, container, value)
		look_after(server, CNI_JOB_FINISH, container);
	schedule(server);
}

static void on_again(void *arg)
{
	struct cni_server *server = arg;

	if (server->surveyed) {
		if (!server->survey)
			look_at_sandboxes(server);
		return;
	}
	if (json_object_size(server->unfinished) == 0)
		server->again_ms = server->config.again_ms;
	finish_all(server);
	work_off_notes(server);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* The plugins of the cluster's network are called, where it is the meta plugin that is. */
static bool pass_on(struct task *task)
{
	if (!calls_meta(task))
		return false;
	task->kind = CNI_JOB_CLUSTER;
	task->state = TASK_WAITS;
	schedule(task->server);
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
	schedule(server);
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
	schedule(server);
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
	if (task->state == TASK_ANSWERED || (task->state == TASK_WAITS && !is_del(task)))
		task_free(task);
	else if (task->state == TASK_RUNS && is_call(task) && !is_del(task))
		worker_process_kill(task->run);
	schedule(server);
}

static bool may_call(const struct cni_server *server, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == server->config.caller);
}

static void accept_again(struct cni_server *server)
{
	if (!timer_is_active(server->accepting))
		return;
	timer_stop(server->accepting);
	poller_want(server->listening, POLL_READ);
}

static void on_accepting(void *arg)
{
	struct cni_server *server = arg;

	poller_want(server->listening, POLL_READ);
}

/* The connection stays in the queue, where the poller would find it again and again. */
static void accept_failed(struct cni_server *server, int failed)
{
	if (!server->accept_complained)
		log_error("cannot accept calls of plugins; they wait until others have ended",
			  F_STR("error", strerror(failed)),
			  F_INT("calls", (int64_t)server->n_tasks));
	server->accept_complained = true;
	poller_want(server->listening, 0);
	timer_start(server->accepting, ACCEPT_AGAIN_MS);
}

static bool is_out_of_room(int failed)
{
	return failed == EMFILE || failed == ENFILE || failed == ENOBUFS || failed == ENOMEM;
}

static void on_listener(void *arg, int events)
{
	struct cni_server *server = arg;

	for (;;) {
		auto_close int fd =
			accept4(server->config.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct task *task;

		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0) {
			if (is_out_of_room(errno))
				accept_failed(server, errno);
			return;
		}
		server->accept_complained = false;
		/* A plugin that hears nothing says to try again. */
		if (!may_call(server, fd) || server->n_tasks >= SERVER_CALLS_MAX)
			continue;
		/* Until its call is there it is in nobody's way. */
		task = task_new(server, CNI_JOB_CALL, "");
		task->state = TASK_ANSWERED;
		task->conversation = plugin_connection_new(
			&(struct plugin_connection_config){.loop = server->config.loop,
							   .fd = take_fd(&fd),
							   .called = on_called,
							   .resulted = on_resulted,
							   .closed = on_closed,
							   .arg = task});
	}
}

/* ---- the agent ------------------------------------------------------------------------------- */

static struct task *asker(struct cni_server *server, int64_t id)
{
	for (struct task *t = server->tasks; t; t = t->next)
		if (t->question && t->question_id == id)
			return t;
	return NULL;
}

/* Words of ours only: the agent talks to the API server. */
static void on_profile(const struct cni_server *server, const char *name)
{
	enum profile profile;

	if (server->config.profile && profile_read(name, &profile))
		server->config.profile(server->config.arg, profile);
}

static void on_agent_heard(void *arg, const json_t *message)
{
	struct cni_server *server = arg;
	int64_t id = json_integer_value(json_at(message, "id"));
	struct task *task = id > 0 ? asker(server, id) : NULL;

	if (json_str_at(message, "profile"))
		on_profile(server, json_str_at(message, "profile"));
	/* It may have waited for too long. */
	if (!task)
		return;
	id = json_integer_value(json_at(task->question, "id"));
	answer_question(task, ask_with_id(message, id));
}

static void on_agent_lost(void *arg, const struct err *err)
{
	struct cni_server *server = arg;

	/* The error is the channel's. */
	log_warn("the agent has gone, what needs it waits", F_ERR(err));
	channel_free(take_ptr(server->agent));
	for (struct task *t = server->tasks; t; t = t->next) {
		if (!t->question)
			continue;
		t->question_id = 0;
		if (!may_wait(t))
			fail_without_agent(t);
	}
}

void cni_server_attach(struct cni_server *server, int fd)
{
	if (server->surveyed) {
		own_close_p(&server->waiting_agent);
		server->waiting_agent = fd;
		return;
	}
	channel_free(server->agent);
	server->agent = channel_new(&(struct channel_config){.loop = server->config.loop,
							     .fd = fd,
							     .heard = on_agent_heard,
							     .lost = on_agent_lost,
							     .arg = server});
	for (struct task *t = server->tasks; t; t = t->next)
		if (t->question)
			send_question(t);
	server->again_ms = server->config.again_ms;
	tell_soon(server);
	finish_all(server);
}

/* ---- what is in use -------------------------------------------------------------------------- */

static char *pod_text(const json_t *attachment)
{
	const char *ns = json_str_at(attachment, "pod", "namespace"),
		   *name = json_str_at(attachment, "pod", "name");

	return ns && name ? str_printf("%s/%s", ns, name) : NULL;
}

json_t *cni_server_usage(const struct cni_server *server)
{
	json_auto_t *attachments = attachment_index_list(server->ledger);
	auto_free char *user = pod_text(json_array_get(attachments, 0));
	json_t *usage = json_object();

	json_put_bool(usage, "isUsed",
		      json_array_size(attachments) > 0 || server->n_tasks > 0 ||
			      json_object_size(server->unfinished) > 0);
	json_put_bool(usage, "isMetaUsed", json_find(attachments, "plugin", META_PLUGIN) != NULL);
	json_put_str(usage, "user", user);
	return usage;
}

void cni_server_set_networks(struct cni_server *server, const json_t *networks)
{
	json_decref(server->networks);
	server->networks = json_incref((json_t *)networks);
	tell_soon(server);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* It stays, for that version may come back; it is told once. */
static void keep_note(struct cni_server *server, const char *name)
{
	if (json_at(server->notes.kept, name))
		return;
	json_put_bool(server->notes.kept, name, true);
	log_error("the plugin of another version of this agent has noted a DEL that this version "
		  "cannot read: what the pod had stays until an agent of that version runs here, "
		  "or the file is removed by hand",
		  F_STR("note", name));
}

/* A call that nobody took becomes one whose answer nobody reads. */
static void take_note(struct cni_server *server, const char *name, const void *data, size_t len)
{
	struct wire_message message;
	struct err err = {0};
	struct task *task = task_new(server, CNI_JOB_CALL, "");

	task->has_call = true;
	task->note = str_dup(name);
	task->call.netns = -1;
	if (wire_read(data, len, &message) == 1 && message.kind == WIRE_CALL &&
	    cni_call_read(&message, -1, &task->call, &err) == 0 && is_del(task) &&
	    attachment_knows(task->call.plugin)) {
		free(task->container);
		task->container = str_dup(task->call.container);
		return;
	}
	log_error("a note of a plugin cannot be used, removing it", F_STR("note", name),
		  F_ERR(&err));
	json_array_append_new(server->notes.bad, json_string(name));
	task_free(task);
}

static void on_note(void *arg, const json_t *message)
{
	struct cni_server *server = arg;
	const char *name = json_str_at(message, "note", "name"),
		   *text = json_str_or(json_at(message, "note", "data"), "");
	auto_strbuf struct strbuf data = {0};

	if (!name)
		return;
	if (json_is_true(json_at(message, "note", "isOther"))) {
		keep_note(server, name);
		return;
	}
	free(server->notes.last);
	server->notes.last = str_dup(name);
	(void)base64_decode(text, strlen(text), &data, NULL);
	take_note(server, name, data.data, data.len);
}

static void on_notes_ended(void *arg, const json_t *done, const struct err *failed)
{
	struct cni_server *server = arg;
	bool has_ended = done != NULL, goes_on;

	if (server->notes.lists && !json_is_true(json_at(done, "more")))
		free(take_ptr(server->notes.last));
	worker_process_free(take_ptr(server->notes.worker));
	if (has_ended && !server->is_listening)
		poller_want(server->listening, POLL_READ);
	server->is_listening = server->is_listening || has_ended;
	schedule(server);
	goes_on = server->notes.last && !has_notes_at_work(server);
	if (!has_ended && !timer_is_active(server->again))
		timer_start(server->again, server->again_ms);
	else if (goes_on || json_array_size(server->notes.bad) > 0)
		look_at_notes(server, goes_on, false);
}

/*
 * Remove those that could not be used. lists: those behind the last one that was taken come.
 * cleans: what plugins began to write and left goes.
 */
static void look_at_notes(struct cni_server *server, bool lists, bool cleans)
{
	json_t *job;

	if (server->notes.worker)
		return;
	job = cni_job_new_of_node(CNI_JOB_NOTES);
	json_put_str(job, "after", server->notes.last);
	json_put(job, "remove", server->notes.bad);
	json_put_bool(job, "list", lists);
	json_put_bool(job, "clean", cleans);
	server->notes.bad = json_array();
	server->notes.lists = lists;
	server->notes.worker = worker_process_new(&(struct worker_process_config){
		.loop = server->config.loop,
		.orders = server->config.orders,
		.job = job,
		.fd = -1,
		.deadline_ms = scaled(server, SERVER_DEL_MS),
		.told = on_note,
		.ended = on_notes_ended,
		.arg = server,
	});
}

/*
 * A few at a time: an agent that was away for a night finds thousands, and what a runtime waits for
 * now is not to come behind all of them. Those that could not be worked off come once more when the
 * others are through.
 */
static void work_off_notes(struct cni_server *server)
{
	if (has_notes_at_work(server))
		timer_start(server->again, server->again_ms);
	else
		look_at_notes(server, true, false);
}

static void on_noting(void *arg)
{
	struct cni_server *server = arg;

	if (!has_notes_at_work(server))
		look_at_notes(server, true, true);
	timer_start(server->notes.next, server->config.notes_ms);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void on_surveyed(void *arg, const json_t *message)
{
	const struct cni_server *server = arg;

	if (json_str_at(message, "sandbox", "container"))
		json_array_append(server->surveyed, json_at(message, "sandbox"));
}

/* What runs of a sandbox that lives is asked again; nothing is asked of one that is gone. */
static void begin(struct cni_server *server)
{
	json_auto_t *sandboxes = take_ptr(server->surveyed);
	const json_t *sandbox;
	size_t i;

	json_array_foreach (sandboxes, i, sandbox) {
		const char *container = json_str_at(sandbox, "container"),
			   *life = json_str_at(sandbox, "life");

		remember(server, container, json_at(sandbox, "attachments"));
		if (life)
			look_after(server, str_eq(life, "gone") ? CNI_JOB_BURY : CNI_JOB_RECOVER,
				   container);
	}
	schedule(server);
	on_noting(server);
	if (server->waiting_agent >= 0)
		cni_server_attach(server, take_fd(&server->waiting_agent));
}

static void on_survey_ended(void *arg, const json_t *done, const struct err *failed)
{
	struct cni_server *server = arg;
	struct err err = failed ? *failed : (struct err){0};

	if (json_at(done, "error"))
		(void)ask_error_read(json_at(done, "error"), &err);
	else if (!done && !failed)
		(void)err_set(&err, ERR_HOST, "WorkerEnded", "the worker that looks was cut off");
	worker_process_free(take_ptr(server->survey));
	if (err.class == ERR_NONE) {
		begin(server);
		return;
	}
	log_error("CNI plugins are not served, trying again", F_ERR(&err));
	timer_start(server->again, server->again_ms);
}

static void look_at_sandboxes(struct cni_server *server)
{
	json_decref(server->surveyed);
	server->surveyed = json_array();
	server->survey = worker_process_new(&(struct worker_process_config){
		.loop = server->config.loop,
		.orders = server->config.orders,
		.job = cni_job_new_of_node(CNI_JOB_SURVEY),
		.fd = -1,
		.deadline_ms = scaled(server, SERVER_ADD_MS),
		.told = on_surveyed,
		.ended = on_survey_ended,
		.arg = server,
	});
}

static void make_metrics(struct cni_server *server)
{
	server->metrics.all = metrics_new_part("orbweaver_cni");
	server->metrics.calls =
		metric_counter(server->metrics.all, "orbweaver_cni_calls_total",
			       "Calls of plugins by outcome: ok, or the reason of the error.",
			       "plugin,command,outcome");
	server->metrics.seconds =
		metric_histogram(server->metrics.all, "orbweaver_cni_call_seconds",
				 "From the call to its answer.", "plugin,command", METRIC_SECONDS);
	server->metrics.steps =
		metric_histogram(server->metrics.all, "orbweaver_cni_step_seconds",
				 "Parts of calls: addresses, release, conflict and settings "
				 "are the agent's, ipam is another plugin, attach the "
				 "rest, kernel what of it the kernel took on ADD.",
				 "step,outcome", METRIC_SECONDS);
	server->metrics.waiting = metric_gauge(server->metrics.all, "orbweaver_cni_calls_waiting",
					       "Calls that no worker carries out yet.", "");
}

struct cni_server *cni_server_new(const struct cni_server_config *config)
{
	struct cni_server *server = mem_new(struct cni_server);

	server->config = *config;
	if (!server->config.again_ms)
		server->config.again_ms = SERVER_AGAIN_MS;
	if (!server->config.add_ms)
		server->config.add_ms = SERVER_ADD_MS;
	if (!server->config.notes_ms)
		server->config.notes_ms = SERVER_NOTES_MS;
	server->ledger = attachment_index_new();
	server->containers = json_object();
	server->notes.bad = json_array();
	server->waiting_agent = -1;
	server->unfinished = json_object();
	server->notes.kept = json_object();
	server->again_ms = server->config.again_ms;
	make_metrics(server);
	server->again = timer_new(config->loop, on_again, server);
	server->telling = timer_new(config->loop, on_telling, server);
	server->notes.next = timer_new(config->loop, on_noting, server);
	server->accepting = timer_new(config->loop, on_accepting, server);
	server->listening = poller_new(config->loop, config->listener, on_listener, server);
	look_at_sandboxes(server);
	return server;
}

void cni_server_free(struct cni_server *server)
{
	if (!server)
		return;
	while (server->tasks)
		task_free(server->tasks);
	worker_process_free(server->survey);
	worker_process_free(server->notes.worker);
	channel_free(server->agent);
	own_close_p(&server->waiting_agent);
	poller_free(server->listening);
	(void)close(server->config.listener);
	timer_free(server->again);
	timer_free(server->telling);
	timer_free(server->notes.next);
	timer_free(server->accepting);
	attachment_index_free(server->ledger);
	free(server->notes.last);
	json_decref(server->containers);
	json_decref(server->surveyed);
	json_decref(server->notes.bad);
	json_decref(server->unfinished);
	json_decref(server->notes.kept);
	json_decref(server->networks);
	metrics_free(server->metrics.all);
	mem_free(server);
}
