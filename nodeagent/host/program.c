// SPDX-License-Identifier: Apache-2.0
/*
 * A child in the host's root runs the program while the worker reads what it prints and waits:
 * hostd does nothing else meanwhile, and the agent's deadline ends a worker whose program hangs.
 * Modules are loaded and reboots asked for with this.
 */
#include "nodeagent/host/program.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "nodeagent/host/sysfs.h"

int program_run(const struct host *host, char *const arguments[], char *said, size_t size)
{
	int pipe_fds[2], status = -1;
	size_t len = 0;
	ssize_t n;
	pid_t child;

	assert(arguments[0] && size > 0);
	said[0] = '\0';
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -1;
	/* modprobe is not cut off by the end of a worker that hangs. */
	child = child_fork(&(struct child_config){0});
	if (child == 0) {
		char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};

		/* Only async-signal-safe calls until exec. */
		if (fchdir(host->root) == 0 && chroot(".") == 0 && dup2(pipe_fds[1], 1) >= 0 &&
		    dup2(pipe_fds[1], 2) >= 0)
			(void)execvpe(arguments[0], arguments, environment);
		_exit(PROGRAM_ABSENT);
	}
	(void)close(pipe_fds[1]);
	while (child > 0 && (n = read(pipe_fds[0], said + len, size - 1 - len)) > 0)
		len += (size_t)n;
	said[len] = '\0';
	(void)close(pipe_fds[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child < 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
