// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the folder when the CNI server starts: a file that is empty and older than the boot
 * was cut off by it.
 */
#include "nodeagent/cni/state/result_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/root.h"

#define FOLDER "/var/lib/cni/results"

static bool is_left_empty(int dir, const char *name, int64_t booted_s)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == 0 && st.st_mtim.tv_sec < booted_s;
}

size_t result_cache_remove_empty(int root)
{
	auto_close int dir = root_open(root, FOLDER, O_RDONLY | O_DIRECTORY, 0);
	auto_closedir DIR *list = dir >= 0 ? fdopendir(fcntl(dir, F_DUPFD_CLOEXEC, 0)) : NULL;
	int64_t booted_s = (clock_wall_us() - clock_us()) / 1000000;
	const struct dirent *entry;
	size_t n = 0;

	while (list && (entry = readdir(list))) {
		if (!is_left_empty(dir, entry->d_name, booted_s))
			continue;
		if (unlinkat(dir, entry->d_name, 0) < 0) {
			log_error("cannot remove an empty result of CNI, the DEL of its sandbox "
				  "fails",
				  F_STR("folder", FOLDER), F_STR("name", entry->d_name),
				  F_INT("errno", errno));
			continue;
		}
		log_warn("removed a result of CNI that a power cut had left empty: the DEL of its "
			 "sandbox would fail for ever",
			 F_STR("folder", FOLDER), F_STR("name", entry->d_name));
		n++;
	}
	return n;
}
