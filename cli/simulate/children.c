// SPDX-License-Identifier: Apache-2.0
/*
 * fork(2) and execve(2) of /proc/self/exe; the names that the program answers to. Used by the
 * process that is the API server, and by the beginning of main.
 */
#include "cli/simulate/children.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/simulate/nodes/program.h"
#include "lib/base/child.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "operator/program.h"

/* Of a child that could not become the program. */
#define NO_EXEC 127

bool child_is_asked_for(int argc, char **argv, int *ret_status)
{
	static const struct {
		const char *name;
		int (*program)(int argc, char **argv);
	} children[] = {{CHILD_OPERATOR, operator_program}, {CHILD_NODES, nodes_program}};
	const char *slash = strrchr(argv[0], '/');

	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		if (!str_eq(slash ? slash + 1 : argv[0], children[i].name))
			continue;
		*ret_status = children[i].program(argc, argv);
		return true;
	}
	return false;
}

/* In the child: only what signal-safety(7) allows. `log` is closed by execve(2). */
_Noreturn static void become(const char *const *argv, int log)
{
	if (dup2(log, STDOUT_FILENO) >= 0 && dup2(log, STDERR_FILENO) >= 0)
		(void)execv("/proc/self/exe", (char *const *)argv);
	_exit(NO_EXEC);
}

pid_t child_start(const char *const *argv, const char *log, struct err *err)
{
	auto_close int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	pid_t pid;

	assert(argv && argv[0]);
	if (fd < 0)
		return err_sys(err, "ChildFailed", "%s: open %s", argv[0], log);
	pid = child_fork(&(struct child_config){.dies_by = SIGTERM, .keep = &fd, .n_keep = 1});
	if (pid < 0)
		return err_sys(err, "ChildFailed", "%s: fork", argv[0]);
	if (pid == 0)
		become(argv, fd);
	return pid;
}
