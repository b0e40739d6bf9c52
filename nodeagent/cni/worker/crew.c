// SPDX-License-Identifier: Apache-2.0
/*
 * Members are forked from the worker and talk to it as it talks to the server; one poll(2) passes
 * requests up and replies down. Below meta_call.c.
 */
#include "nodeagent/cni/worker/crew.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/frame_io.h"
#include "lib/json/json.h"
#include "nodeagent/cni/meta/delegates.h"
#include "nodeagent/cni/worker/worker_channel.h"

enum {
	/* One plugin of each network runs at a time. */
	CREW_MAX = 2 * META_NETWORKS_MAX,
};

struct member {
	struct member *next;
	int64_t asked; /* id of its request, on its own line */
	int64_t id;    /* and on the line to the server; 0: none was sent there */
	struct meta_step step;
	pid_t pid;
	struct worker_channel line;
	json_t *question; /* waits for its turn at the server, or for the answer; NULL: none */
	bool is_asked;
	json_t *said; /* it has ended; NULL: it runs */
};

struct crew {
	struct attachment *of;
	crew_work_fn *work;
	struct member *members;
	json_t *settings; /* the server's message with the coordinator's; NULL: not asked yet */
};

struct crew *crew_new(struct attachment *of, crew_work_fn *work)
{
	struct crew *crew = mem_new(struct crew);

	crew->of = of;
	crew->work = work;
	return crew;
}

static void member_free(struct crew *crew, struct member *member)
{
	struct member **at = &crew->members;

	while (*at != member)
		at = &(*at)->next;
	*at = member->next;
	if (member->pid > 0) {
		(void)kill(member->pid, SIGKILL);
		(void)waitpid(member->pid, NULL, 0);
	}
	if (member->line.fd >= 0)
		(void)close(member->line.fd);
	strbuf_done(&member->line.in);
	json_decref(member->question);
	json_decref(member->said);
	mem_free(member);
}

void crew_free(struct crew *crew)
{
	if (!crew)
		return;
	while (crew->members)
		member_free(crew, crew->members);
	json_decref(crew->settings);
	mem_free(crew);
}

static void end_failed(struct member *member, const struct err *err)
{
	if (member->said)
		return;
	member->said = json_object();
	json_put(member->said, "error", ask_error_new(err));
}

/* ---- in a member's process ------------------------------------------------------------------- */

static _Noreturn void be_member(const struct crew *crew, const struct meta_step *step, int fd,
				const char *type, const json_t *env, const json_t *config)
{
	struct worker_channel line = {.fd = fd};
	struct attachment a = *crew->of;
	json_t *said;

	a.line = &line;
	a.key = (struct sandbox_key){type, json_str_or(json_at(config, "name"), ""),
				     json_str_or(json_at(env, "CNI_IFNAME"), "")};
	a.config = config;
	a.env = env;
	a.steps = json_array();
	said = crew->work(&a, step->command);
	json_put(said, "steps", a.steps);
	worker_channel_send(&line, "done", said);
	_exit(0);
}

void crew_begin(struct crew *crew, const struct meta_step *step, const char *type,
		const json_t *env, const json_t *config)
{
	struct member *member = mem_new(struct member);
	struct err err = {0};
	int pair[2] = {-1, -1};

	member->step = *step;
	member->next = crew->members;
	member->line.fd = -1;
	crew->members = member;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ||
	    (member->pid = child_fork(
		     &(struct child_config){.dies_by = SIGKILL, .skips_handlers = true})) < 0) {
		(void)err_sys(&err, "WorkerEnded", "start a process for plugin %s", type);
		end_failed(member, &err);
		json_put_bool(member->said, "unstarted", true);
		if (pair[0] >= 0) {
			(void)close(pair[0]);
			(void)close(pair[1]);
		}
		return;
	}
	if (member->pid == 0) {
		/* Its end of the line is the one way it knows that we have gone. */
		(void)close(pair[0]);
		for (const struct member *m = member->next; m; m = m->next)
			if (m->line.fd >= 0)
				(void)close(m->line.fd);
		be_member(crew, step, pair[1], type, env, config);
	}
	(void)close(pair[1]);
	member->line.fd = pair[0];
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* False: nothing comes any more. */
static bool take_in(struct worker_channel *line)
{
	return json_frame_take_in(line->fd, &line->in, MSG_DONTWAIT);
}

/* The next whole message, new, or NULL. */
static json_t *next_message(struct worker_channel *line)
{
	json_t *message = NULL;

	return json_frame_read(&line->in, &message, NULL) < 0 ? NULL : message;
}

static void send_up(const struct crew *crew, struct member *member, const json_t *request)
{
	json_auto_t *message = ask_with_id(request, ++crew->of->line->last_id);

	member->id = crew->of->line->last_id;
	worker_channel_pass(crew->of->line, message);
}

static void send_down(struct member *member, const json_t *reply)
{
	json_auto_t *message = ask_with_id(reply, member->asked);

	worker_channel_pass(&member->line, message);
}

/* Nobody else has asked: the server answers one question at a time. */
static void ask_next(struct crew *crew)
{
	struct member *next = NULL;

	for (struct member *m = crew->members; m; m = m->next) {
		if (m->question && m->is_asked)
			return;
		if (m->question)
			next = m;
	}
	if (!next)
		return;
	next->is_asked = true;
	send_up(crew, next, next->question);
}

/* They are the pod's, whatever its interface, and the coordinators of its networks take turns. */
static bool is_about_settings(const json_t *question)
{
	return str_eq(json_str_at(question, "kind"), "coordinator");
}

static void take_steps(struct crew *crew, json_t *said)
{
	const json_t *steps = json_at(said, "steps");

	if (json_is_array(steps))
		json_array_extend(crew->of->steps, (json_t *)steps);
	(void)json_object_del(said, "steps");
}

static void hear_request(struct crew *crew, struct member *member, const json_t *request)
{
	member->asked = json_integer_value(json_at(request, "id"));
	if (str_eq(json_str_at(request, "kind"), "exec")) {
		send_up(crew, member, request);
	} else if (crew->settings && is_about_settings(request)) {
		send_down(member, crew->settings);
	} else {
		member->question = json_incref((json_t *)request);
		member->is_asked = false;
	}
}

static void hear_member(struct crew *crew, struct member *member, const json_t *message)
{
	if (json_at(message, "kind")) {
		hear_request(crew, member, message);
	} else if (json_at(message, "done")) {
		member->said = json_incref(json_object_get(message, "done"));
		take_steps(crew, member->said);
	}
}

/* Each member has one request on its way at a time. */
static void hear_server(struct crew *crew, const json_t *message)
{
	int64_t id = json_integer_value(json_at(message, "id"));
	struct member *m = crew->members;

	while (m && m->id != id)
		m = m->next;
	if (!m || id == 0)
		return;
	if (m->question && is_about_settings(m->question) && json_at(message, "result")) {
		json_decref(crew->settings);
		crew->settings = json_incref((json_t *)message);
	}
	json_decref(take_ptr(m->question));
	m->is_asked = false;
	send_down(m, message);
}

static void lose_member(struct member *member)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "WorkerEnded",
		      "the process that calls the plugin was cut off; the runtime tries again");
	end_failed(member, &err);
}

/* Every plugin's answer comes by the server: without it none does. */
static void lose_server(struct crew *crew)
{
	struct err err = {0};

	(void)err_set(&err, ERR_TRANSIENT, "ServerGone",
		      "the server of this node's networks has ended; the runtime tries again");
	for (struct member *m = crew->members; m; m = m->next)
		end_failed(m, &err);
}

/* Wait for something to come in, and pass it on. */
static void turn(struct crew *crew)
{
	struct pollfd fds[CREW_MAX + 1];
	struct member *of[CREW_MAX + 1];
	json_t *message;
	nfds_t n = 1;

	ask_next(crew);
	fds[0] = (struct pollfd){.fd = crew->of->line->fd, .events = POLLIN};
	for (struct member *m = crew->members; m && n <= CREW_MAX; m = m->next) {
		if (m->said)
			continue;
		of[n] = m;
		fds[n++] = (struct pollfd){.fd = m->line.fd, .events = POLLIN};
	}
	if (poll(fds, n, -1) < 0)
		return;
	for (nfds_t i = 1; i < n; i++) {
		bool is_there = !fds[i].revents || take_in(&of[i]->line);

		while (fds[i].revents && (message = next_message(&of[i]->line))) {
			hear_member(crew, of[i], message);
			json_decref(message);
		}
		if (!is_there)
			lose_member(of[i]);
	}
	if (!fds[0].revents)
		return;
	if (!take_in(crew->of->line))
		lose_server(crew);
	while ((message = next_message(crew->of->line))) {
		hear_server(crew, message);
		json_decref(message);
	}
}

bool crew_wait(struct crew *crew, struct crew_end *ret)
{
	while (crew->members) {
		for (struct member *m = crew->members; m; m = m->next) {
			if (!m->said)
				continue;
			ret->step = m->step;
			ret->said = json_incref(m->said);
			member_free(crew, m);
			return true;
		}
		turn(crew);
	}
	return false;
}
