// SPDX-License-Identifier: Apache-2.0
/*
 * The listener, the agent's channel, notes of plugins and the survey of the disk: what brings tasks
 * (cni_tasks.c) and what hears of them.
 */
#include "nodeagent/cni/server/cni_server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/base64.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/server/cni_tasks.h"
#include "nodeagent/cni/worker/attachment.h"
#include "nodeagent/cni/worker/meta_call.h"

/* Without descriptors, should no call end until then: others may have let some go. */
enum { ACCEPT_AGAIN_MS = 1000 };

static void look_at_notes(struct cni_server *server, bool lists, bool cleans);
static void look_at_sandboxes(struct cni_server *server);

/* ---- connections ----------------------------------------------------------------------------- */

static bool may_call(const struct cni_server *server, int fd)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
	       (peer.uid == 0 || peer.uid == server->config.caller);
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
		tasks_accept(server, take_fd(&fd));
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
	task_answer_question(task, ask_with_id(message, id));
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
		if (!task_may_wait(t))
			task_fail_without_agent(t);
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
			task_send_question(t);
	server->again_ms = server->config.again_ms;
	tasks_tell_soon(server);
	tasks_finish_all(server);
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
	tasks_tell_soon(server);
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
	    cni_call_read(&message, -1, &task->call, &err) == 0 && task_is_del(task) &&
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
	tasks_schedule(server);
	goes_on = server->notes.last && !tasks_have_notes(server);
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
		.deadline_ms = tasks_scaled_ms(server, SERVER_DEL_MS),
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
	if (tasks_have_notes(server))
		timer_start(server->again, server->again_ms);
	else
		look_at_notes(server, true, false);
}

/* A worker has ended: those that follow the notes of before may be read now. */
static void on_rested(void *arg)
{
	struct cni_server *server = arg;

	if (server->notes.last && !tasks_have_notes(server))
		work_off_notes(server);
}

static void on_noting(void *arg)
{
	struct cni_server *server = arg;

	if (!tasks_have_notes(server))
		look_at_notes(server, true, true);
	timer_start(server->notes.next, server->config.notes_ms);
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
	tasks_finish_all(server);
	work_off_notes(server);
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

		tasks_remember(server, container, json_at(sandbox, "attachments"));
		if (life)
			tasks_look_after(server,
					 str_eq(life, "gone") ? CNI_JOB_BURY : CNI_JOB_RECOVER,
					 container);
	}
	tasks_schedule(server);
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
		.deadline_ms = tasks_scaled_ms(server, SERVER_ADD_MS),
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
	server->telling = timer_new(config->loop, tasks_tell, server);
	server->rested = deferred_new(config->loop, on_rested, server);
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
	deferred_free(server->rested);
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
