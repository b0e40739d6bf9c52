// SPDX-License-Identifier: Apache-2.0
/*
 * One file of the host's that one agent at a time has locked. The process opens it while it is root
 * still, and tries it from a timer until the agent before it has ended; the lock ends with the
 * process, so that nothing has to be tidied up after a crash.
 */
#include "nodeagent/agent/node_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "lib/base/own_fd.h"
#include "lib/base/root.h"

int node_lock_open(const char *host_root, struct err *err)
{
	auto_close int root = open(host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd = root < 0 ? -1
			  : root_open(root, NODE_LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(err, "LockUnavailable",
			       "open /" NODE_LOCK_FILE " below %s (mount the host's root "
			       "read-write, and name it with --host-root)",
			       host_root);
	return fd;
}

int node_lock_try(int fd, struct err *err)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 1;
	if (errno == EWOULDBLOCK)
		return 0;
	return err_sys(err, "LockRefused",
		       "flock of /" NODE_LOCK_FILE " (it has to be on a local file system)");
}
