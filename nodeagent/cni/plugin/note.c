// SPDX-License-Identifier: Apache-2.0
/*
 * Written under a hidden name, synced, renamed: the server sees whole notes only, in the order of
 * their times. Called by plugin.c.
 */
#include "nodeagent/cni/plugin/note.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "nodeagent/cni/plugin/wire.h"

static int write_all(int fd, const unsigned char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int make_folders(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0700) < 0 && errno != EEXIST)
			return -1;
		*p = '/';
	}
	return mkdir(path, 0700) < 0 && errno != EEXIST ? -1 : 0;
}

static int open_folder(const char *state)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/%s", state, WIRE_NOTES) >= (int)sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (make_folders(path) < 0)
		return -1;
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The dot keeps the server from reading a part of it. */
static int write_in(int folder, const char *name, const void *call, size_t len)
{
	char draft[NOTE_NAME_MAX + 1];
	int fd, failed;
	bool is_written;

	(void)snprintf(draft, sizeof(draft), ".%s", name);
	fd = openat(folder, draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	is_written = write_all(fd, call, len) == 0 && fsync(fd) == 0;
	failed = errno;
	(void)close(fd);
	if (is_written) {
		if (renameat(folder, draft, folder, name) == 0)
			return fsync(folder);
		failed = errno;
	}
	(void)unlinkat(folder, draft, 0);
	errno = failed;
	return -1;
}

int note_write(const char *state, const void *call, size_t len, char ret_name[NOTE_NAME_MAX])
{
	struct timespec now;
	int folder = open_folder(state), rc, failed;

	if (folder < 0)
		return -1;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(ret_name, NOTE_NAME_MAX, "%012lld.%09ld.%ld", (long long)now.tv_sec,
		       now.tv_nsec, (long)getpid());
	rc = write_in(folder, ret_name, call, len);
	failed = errno;
	(void)close(folder);
	errno = failed;
	return rc;
}

void note_remove(const char *state, const char *name)
{
	int folder = open_folder(state);

	if (folder < 0)
		return;
	(void)unlinkat(folder, name, 0);
	(void)close(folder);
}
