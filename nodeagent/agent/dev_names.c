// SPDX-License-Identifier: Apache-2.0
/*
 * A walk over the host's /dev, into folders of the same file system and not too deep, sorted. The
 * agent has a descriptor of the host's root; offers.c reads the names before it computes pools,
 * since character devices are offered by name, and since pods need some files to be there.
 */
#include "nodeagent/agent/dev_names.h"

#include <assert.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"
#include "lib/base/str.h"

struct walk {
	dev_t file_system;
	char **names;
	size_t n, cap;
};

/* Takes fd. */
static void walk_dir(struct walk *walk, int fd, const char *prefix, int depth)
{
	auto_closedir DIR *dir = fdopendir(fd);
	const struct dirent *entry;

	assert(depth >= 1 && depth <= DEV_NAMES_DEPTH_MAX);
	if (!dir) {
		(void)close(fd);
		return;
	}
	while (walk->n < DEV_NAMES_MAX && (entry = readdir(dir))) {
		auto_free char *name = NULL;
		struct stat st = {0};
		int below;

		/* Most are devices: no other file system begins there. */
		if (str_eq(entry->d_name, ".") || str_eq(entry->d_name, "..") ||
		    (entry->d_type != DT_CHR &&
		     (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		      st.st_dev != walk->file_system)))
			continue;
		name = *prefix ? str_printf("%s/%s", prefix, entry->d_name)
			       : str_dup(entry->d_name);
		if (walk->n == walk->cap) {
			walk->cap = walk->cap ? 2 * walk->cap : 256;
			walk->names = mem_realloc(walk->names, walk->cap * sizeof(*walk->names));
		}
		walk->names[walk->n++] = str_dup(name);
		if (!S_ISDIR(st.st_mode) || depth >= DEV_NAMES_DEPTH_MAX)
			continue;
		below = openat(dirfd(dir), entry->d_name,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0)
			walk_dir(walk, below, name, depth + 1);
	}
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

json_t *dev_names_read(int root)
{
	int fd = root_open(root, "dev", O_RDONLY | O_DIRECTORY, 0);
	struct walk walk = {0};
	struct stat st;
	json_t *list;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) < 0) {
		(void)close(fd);
		return NULL;
	}
	walk.file_system = st.st_dev;
	walk_dir(&walk, fd, "", 1);
	if (walk.n)
		qsort(walk.names, walk.n, sizeof(*walk.names), by_name);
	list = json_array();
	for (size_t i = 0; i < walk.n; i++) {
		/* Names are bytes; one that is not text cannot be asked for. */
		json_t *name = json_string(walk.names[i]);

		if (name)
			json_array_append_new(list, name);
		mem_free(walk.names[i]);
	}
	mem_free(walk.names);
	return list;
}
