// SPDX-License-Identifier: Apache-2.0
/*
 * main for fuzz targets that are built without libFuzzer: run each input of the given files and
 * directories once, so that the corpus is checked by every build and compiler. Directories are not
 * searched deeper.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/base/fs.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

#define INPUT_MAX (16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* A target may do without. */
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);

static int replay_file(int dirfd, const char *path)
{
	auto_strbuf struct strbuf input = {0};
	auto_free void *exact = NULL;
	struct err err = {0};

	if (fs_read(dirfd, path, INPUT_MAX, &input, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return -1;
	}
	/* A copy of exactly this size, so that the address sanitizer sees the first byte beyond. */
	exact = malloc(input.len ? input.len : 1);
	if (!exact)
		return -1;
	if (input.len)
		memcpy(exact, input.data, input.len);

	/* Said first: a crash then has a name. */
	fprintf(stderr, "%s\n", path);
	(void)LLVMFuzzerTestOneInput(exact, input.len);
	return 0;
}

static int replay_dir(const char *path, size_t *count)
{
	auto_closedir DIR *dir = opendir(path);
	const struct dirent *entry;

	if (!dir) {
		perror(path);
		return -1;
	}
	while ((entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (replay_file(dirfd(dir), entry->d_name) < 0)
			return -1;
		(*count)++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t count = 0;

	if (LLVMFuzzerInitialize)
		(void)LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++) {
		struct stat st;
		bool is_dir = stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode);

		if ((is_dir ? replay_dir(argv[i], &count) : replay_file(AT_FDCWD, argv[i])) < 0)
			return 1;
		count += !is_dir;
	}
	printf("%zu inputs replayed\n", count);
	/* A corpus that is not there must not look like one that passed. */
	return count > 0 ? 0 : 1;
}
