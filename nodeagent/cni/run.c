// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/run.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/kubeletd/channel.h"

struct run {
	struct run_config config;
	struct channel *channel;
	struct timer *deadline;
	pid_t pid;
	bool has_ended;
};

/* ---- in the worker --------------------------------------------------------------------------- */

/* Close what is between descriptors to keep; stdin and stdout become /dev/null. */
static void keep_only(int *fds, size_t n)
{
	unsigned int next = STDERR_FILENO + 1;
	int null = open("/dev/null", O_RDWR);

	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	for (;;) {
		unsigned int least = UINT_MAX;

		for (size_t i = 0; i < n; i++)
			if (fds[i] >= (int)next && (unsigned int)fds[i] < least)
				least = (unsigned int)fds[i];
		if (least > next)
			fs_close_between(next, least == UINT_MAX ? UINT_MAX : least - 1);
		if (least == UINT_MAX)
			return;
		next = least + 1;
	}
}

static _Noreturn void be_worker(const struct worker_job *job, int line, pid_t parent)
{
	int keep[] = {line, job->state, job->root, job->call ? job->call->netns : -1};
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, CNI_WORKER_NAME, 0, 0, 0);
	/* The server may have ended before this took effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	keep_only(keep, ARRAY_LEN(keep));
	cni_worker_run(line, job);
	_exit(0);
}

/* ---- in the server --------------------------------------------------------------------------- */

static void end(struct run *run, const json_t *done)
{
	if (run->has_ended)
		return;
	run->has_ended = true;
	timer_stop(run->deadline);
	run->config.ended(run->config.arg, done);
}

static void on_heard(void *arg, const json_t *message)
{
	struct run *run = arg;

	if (json_object_get(message, "ask"))
		run->config.asked(run->config.arg, json_object_get(message, "ask"));
	else if (json_object_get(message, "exec"))
		run->config.exec(run->config.arg, json_object_get(message, "exec"));
	else if (json_object_get(message, "done"))
		end(run, json_object_get(message, "done"));
}

static void on_lost(void *arg, const struct err *err)
{
	end(arg, NULL);
}

/* One that hangs in the kernel does not end by that; nobody waits for it any longer. */
static void on_deadline(void *arg)
{
	struct run *run = arg;

	(void)kill(run->pid, SIGKILL);
	end(run, NULL);
}

struct run *run_new(const struct run_config *config, struct err *err)
{
	struct run *run;
	pid_t self = getpid(), pid;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)err_sys(err, "WorkerEnded",
			      "start a process for the call: make a socket pair");
		return NULL;
	}
	pid = fork();
	if (pid == 0)
		be_worker(config->job, pair[1], self);
	(void)close(pair[1]);
	if (pid < 0) {
		(void)err_sys(err, "WorkerEnded", "start a process for the call");
		(void)close(pair[0]);
		return NULL;
	}
	run = mem_new(struct run);
	run->config = *config;
	run->config.job = NULL;
	run->pid = pid;
	run->channel = channel_new(&(struct channel_config){
		.loop = config->loop,
		.fd = pair[0],
		.heard = on_heard,
		.lost = on_lost,
		.arg = run,
	});
	run->deadline = timer_new(config->loop, on_deadline, run);
	timer_start(run->deadline, config->deadline_ms);
	return run;
}

void run_answer(struct run *run, json_t *reply)
{
	channel_send(run->channel, reply);
	json_decref(reply);
}

void run_kill(struct run *run)
{
	/* Its end closes the line; if it can end. */
	(void)kill(run->pid, SIGKILL);
	timer_start(run->deadline, 1000);
}

void run_free(struct run *run)
{
	if (!run)
		return;
	if (!run->has_ended)
		(void)kill(run->pid, SIGKILL);
	channel_free(run->channel);
	timer_free(run->deadline);
	mem_free(run);
}
