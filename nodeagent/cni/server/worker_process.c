// SPDX-License-Identifier: Apache-2.0
/*
 * A worker is ordered (nodeagent/process/orders.h); when it has come it gets one byte with the
 * descriptor, then its job; after that both sides send frames. Between cni_tasks.c, node_keeper.c
 * and the supervisor.
 */
#include "nodeagent/cni/server/worker_process.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/packet.h"
#include "lib/base/str.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/process/channel.h"

/* A worker that was killed, and does not end: nobody waits for it any longer. */
enum { KILLED_MS = 1000 };

struct worker_process {
	struct worker_process_config config;
	struct orders_user user;
	struct channel *channel; /* NULL: it has not come yet */
	struct timer *deadline;
	pid_t pid; /* 0: it has not come, or has ended */
	struct err failed;
	bool has_ended;
};

static void end(struct worker_process *run, const json_t *done)
{
	if (run->has_ended)
		return;
	run->has_ended = true;
	timer_stop(run->deadline);
	run->config.ended(run->config.arg, done,
			  run->failed.class != ERR_NONE ? &run->failed : NULL);
}

static void on_heard(void *arg, const json_t *message)
{
	struct worker_process *run = arg;

	if (run->has_ended)
		return;
	if (json_object_get(message, "done"))
		end(run, json_object_get(message, "done"));
	else if (json_at(message, "kind") && run->config.asked)
		run->config.asked(run->config.arg, message);
	else if (run->config.told)
		run->config.told(run->config.arg, message);
}

static void on_lost(void *arg, const struct err *err)
{
	end(arg, NULL);
}

/* One that hangs in the kernel does not end by that; nobody waits for it any longer. */
static void on_deadline(void *arg)
{
	struct worker_process *run = arg;

	if (run->pid)
		orders_kill(run->config.orders, run->pid);
	end(run, NULL);
}

/* From the next turn, as all ends come. */
static void fail_soon(struct worker_process *run)
{
	timer_start(run->deadline, 0);
}

/* ---- orders ---------------------------------------------------------------------------------- */

static void on_started(void *arg, pid_t pid, int fd)
{
	struct worker_process *run = arg;

	run->pid = pid;
	if (packet_send(fd, "j", 1, run->config.fd, MSG_DONTWAIT) < 0) {
		(void)err_sys(&run->failed, "WorkerEnded", "send the worker its job");
		(void)close(fd);
		fail_soon(run);
		return;
	}
	run->channel = channel_new(&(struct channel_config){
		.loop = run->config.loop,
		.fd = fd,
		.heard = on_heard,
		.lost = on_lost,
		.arg = run,
	});
	channel_send(run->channel, run->config.job);
	json_decref(take_ptr(run->config.job));
}

static void on_not_started(void *arg, int number)
{
	struct worker_process *run = arg;

	(void)err_set(&run->failed, ERR_HOST, "WorkerEnded", "start a process for the call: %s",
		      strerror(number));
	end(run, NULL);
}

/* What it had to say may still be on its way: the end of that is its end. */
static bool on_worker_ended(void *arg, pid_t pid, int status)
{
	struct worker_process *run = arg;

	if (!run->pid || run->pid != pid)
		return false;
	run->pid = 0;
	return true;
}

/* The process ends without a supervisor. */
static void on_supervisor_lost(void *arg)
{
}

/* ---- the interface --------------------------------------------------------------------------- */

struct worker_process *worker_process_new(const struct worker_process_config *config)
{
	struct worker_process *run = mem_new(struct worker_process);
	auto_strbuf struct strbuf frame = {0};

	run->config = *config;
	run->user = (struct orders_user){.started = on_started,
					 .not_started = on_not_started,
					 .ended = on_worker_ended,
					 .lost = on_supervisor_lost,
					 .arg = run};
	orders_join(config->orders, &run->user);
	run->deadline = timer_new(config->loop, on_deadline, run);
	timer_start(run->deadline, config->deadline_ms);
	if (json_frame_write(config->job, &frame, NULL) < 0) {
		(void)err_set(&run->failed, ERR_INVALID, "TooLarge",
			      "the call's configuration is too large: make it smaller");
		fail_soon(run);
	} else if (orders_ask(config->orders, &run->user) < 0) {
		(void)err_sys(&run->failed, "WorkerEnded", "start a process for the call");
		fail_soon(run);
	}
	return run;
}

void worker_process_answer(struct worker_process *run, json_t *reply)
{
	if (run->channel)
		channel_send(run->channel, reply);
	json_decref(reply);
}

void worker_process_kill(struct worker_process *run)
{
	/* Its end closes the line; if it can end. */
	if (run->pid)
		orders_kill(run->config.orders, run->pid);
	if (run->channel) {
		timer_start(run->deadline, KILLED_MS);
		return;
	}
	orders_leave(run->config.orders, &run->user);
	fail_soon(run);
}

void worker_process_free(struct worker_process *run)
{
	if (!run)
		return;
	if (!run->has_ended && run->pid)
		orders_kill(run->config.orders, run->pid);
	orders_leave(run->config.orders, &run->user);
	channel_free(run->channel);
	timer_free(run->deadline);
	json_decref(run->config.job);
	mem_free(run);
}
