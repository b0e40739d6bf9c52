// SPDX-License-Identifier: Apache-2.0
/*
 * A folder as a queue: names sort by time, so reading in order is replaying in order. cni_server.c
 * takes notes as calls of its own, some at a time, and removes each when its DEL has succeeded.
 */
#include "nodeagent/cni/state/notes.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "nodeagent/cni/plugin/wire.h"

/* Where the version of a message is, behind the length of all that follows that (wire.h). */
#define VERSION_AT 4

static int is_note(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* As strcmp() has it, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

bool notes_each(int state, const char *after, note_fn *note, void *arg)
{
	struct dirent **list = NULL;
	int n = scandirat(state, WIRE_NOTES, &list, is_note, by_name);
	bool goes_on = true, is_all = n >= 0 || errno == ENOENT;

	assert(state >= 0 && note);
	for (int i = 0; i < n; i++) {
		const char *name = list[i]->d_name;
		auto_free char *path = str_printf(WIRE_NOTES "/%s", name);
		auto_strbuf struct strbuf data = {0};

		if (goes_on && (!after || strcmp(name, after) > 0)) {
			if (fs_read(state, path, WIRE_MAX, &data, NULL) == 0)
				goes_on = note(arg, name, data.data, data.len);
			else
				is_all = false;
		}
		free(list[i]);
	}
	free(list);
	return is_all;
}

void notes_remove(int state, const char *name)
{
	auto_free char *path = str_printf(WIRE_NOTES "/%s", name);

	(void)unlinkat(state, path, 0);
}

bool notes_is_of_other_version(const void *data, size_t len)
{
	const unsigned char *b = data;

	return len > VERSION_AT && b[VERSION_AT] != WIRE_VERSION &&
	       ((size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3]) ==
		       len - VERSION_AT;
}

void notes_clean(int state)
{
	auto_close int fd = openat(state, WIRE_NOTES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	auto_closedir DIR *list = fd >= 0 ? fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 0)) : NULL;
	const struct dirent *entry;
	struct stat st;

	while (list && (entry = readdir(list)))
		if (entry->d_name[0] == '.' &&
		    fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_mtim.tv_sec < time(NULL) - NOTES_DRAFT_S)
			(void)unlinkat(fd, entry->d_name, 0);
}
