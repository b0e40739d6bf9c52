// SPDX-License-Identifier: Apache-2.0
/* The supervisor's loop for its workers alone: orders, ends. */
#include "tests/support/workers_stand.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodeagent/process/workers.h"
#include "nodeagent/worker/worker.h"

static void work(int fd, void *root)
{
	worker_run(fd, &(struct worker_config){.root = root});
}

static _Noreturn void serve(struct workers *workers, int signals)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (workers->fd >= 0) {
		struct pollfd fds[] = {{.fd = workers->fd, .events = POLLIN},
				       {.fd = signals, .events = POLLIN}};

		(void)poll(fds, 2, -1);
		if (fds[0].revents && workers_take_order(workers) < 0)
			workers_drop(workers);
		(void)!read(signals, &info, sizeof(info));
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			(void)workers_ended(workers, pid, status);
	}
	_exit(0);
}

int workers_stand_fork(const char *root, pid_t *ret_pid)
{
	return workers_stand_fork_as(WORKERS_HOST, work, (void *)root, ret_pid);
}

int workers_stand_fork_as(enum workers_kind kind, worker_fn *work_as, void *arg, pid_t *ret_pid)
{
	struct workers workers = {.kind = kind, .work = work_as, .arg = arg, .fd = -1};
	int orders = workers_attach(&workers), signals;
	sigset_t set;

	*ret_pid = orders < 0 ? -1 : fork();
	if (*ret_pid != 0) {
		if (workers.fd >= 0)
			(void)close(workers.fd);
		if (*ret_pid < 0 && orders >= 0)
			(void)close(orders);
		return *ret_pid < 0 ? -1 : orders;
	}
	/* Other stands end when their sockets close, of which this one would keep copies. */
	if (dup3(workers.fd, STDERR_FILENO + 1, O_CLOEXEC) >= 0)
		workers.fd = STDERR_FILENO + 1;
	closefrom(workers.fd + 1);
	(void)prctl(PR_SET_NAME, WORKERS_STAND_NAME, 0, 0, 0);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		_exit(1);
	serve(&workers, signals);
}
