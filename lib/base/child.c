// SPDX-License-Identifier: Apache-2.0
/*
 * The place where processes of ours are forked. Signals are blocked meanwhile: a handler of the
 * parent never runs in a child that resets them, where it would write to a pipe of the parent's
 * loop.
 */
#include "lib/base/child.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/str.h"

/* Of oom_score_adj, proc(5). */
#define OOM_MAX 1000

/* -1 with errno set. */
static int close_but(const int *keep, size_t n)
{
	unsigned int next = STDERR_FILENO + 1;
	int null = open("/dev/null", O_RDWR);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	if (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(null, STDERR_FILENO) < 0)
		return -1;
	for (;;) {
		unsigned int least = UINT_MAX;

		for (size_t i = 0; i < n; i++)
			if (keep[i] >= (int)next && (unsigned int)keep[i] < least)
				least = (unsigned int)keep[i];
		if (least > next)
			fs_close_between(next, least == UINT_MAX ? UINT_MAX : least - 1);
		if (least == UINT_MAX)
			return 0;
		next = least + 1;
	}
}

/* Where that cannot be it stays: who may run may also run as before. */
static void raise_oom_score(int more)
{
	auto_strbuf struct strbuf text = {0};
	int64_t now;
	int fd;

	if (fs_read(AT_FDCWD, "/proc/self/oom_score_adj", 16, &text, NULL) < 0 || text.len < 2)
		return;
	strbuf_cut(&text, text.len - 1);
	if (!str_to_int(text.data, -OOM_MAX, OOM_MAX, &now))
		return;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)dprintf(fd, "%d", now + more < OOM_MAX ? (int)now + more : OOM_MAX);
	(void)close(fd);
}

static void settle(const struct child_config *config, pid_t parent)
{
	sigset_t none;

	if (config->resets_handlers)
		for (int i = 1; i < NSIG; i++)
			(void)signal(i, SIG_DFL);
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
		_exit(EXIT_FAILURE);
	if (config->oom_more)
		raise_oom_score(config->oom_more);
	if (config->leads_session)
		(void)setsid();
	if (config->name)
		(void)prctl(PR_SET_NAME, config->name, 0, 0, 0);
	/* The parent may have ended before this took effect. */
	if (config->dies_by &&
	    (prctl(PR_SET_PDEATHSIG, config->dies_by, 0, 0, 0) < 0 || getppid() != parent))
		_exit(EXIT_FAILURE);
	if (config->keep && close_but(config->keep, config->n_keep) < 0)
		_exit(EXIT_FAILURE);
}

pid_t child_fork(const struct child_config *config)
{
	pid_t parent = getpid(), pid;
	sigset_t all, before;
	int failed;

	assert(!config->n_keep || config->keep);
	(void)sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, &before) < 0)
		return -1;
	pid = config->skips_handlers ? _Fork() : fork();
	if (pid == 0) {
		settle(config, parent);
		return 0;
	}
	failed = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = failed;
	return pid;
}
