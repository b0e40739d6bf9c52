/*
 * See the header.
 */
#include "nodeagent/node_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

#include "lib/base/own.h"
#include "lib/base/str.h"

int node_lock_open(const char *host_root, struct err *err)
{
	auto_free char *path =
		str_printf("%s%s" NODE_LOCK_FILE, host_root, str_ends(host_root, "/") ? "" : "/");
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return err_sys(err, "LockUnavailable",
			       "open %s (mount the host's root read-write, and name it with "
			       "--host-root)",
			       path);
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
