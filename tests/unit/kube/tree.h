// SPDX-License-Identifier: Apache-2.0
/*
 * A temporary folder for a test: files in it, and gone with it. Also PEM blocks that look right
 * from outside.
 */
#pragma once

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"

/* DER sequences with one integer in them; the number at the end tells them apart. */
#define CERT_PEM       "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"
#define OTHER_CERT_PEM "-----BEGIN CERTIFICATE-----\nMAMCAQI=\n-----END CERTIFICATE-----\n"
#define KEY_PEM        "-----BEGIN PRIVATE KEY-----\nMAMCAQM=\n-----END PRIVATE KEY-----\n"
#define OTHER_KEY_PEM  "-----BEGIN PRIVATE KEY-----\nMAMCAQQ=\n-----END PRIVATE KEY-----\n"

struct tree {
	char root[64];
};

static inline void tree_init(struct tree *t)
{
	snprintf(t->root, sizeof(t->root), "/tmp/orbweaver-test.XXXXXX");
	if (!mkdtemp(t->root))
		abort();
}

static inline int tree_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static inline void tree_done(struct tree *t)
{
	if (*t->root)
		(void)nftw(t->root, tree_remove, 16, FTW_DEPTH | FTW_PHYS);
}

#define auto_tree auto_call(tree_done)

/* Returns new: the path outside the tree. */
static inline char *tree_path(const struct tree *t, const char *path)
{
	return str_printf("%s%s", t->root, path);
}

/* Write a file; folders on the way are made. `path` starts with a slash. */
static inline void tree_write(const struct tree *t, const char *path, const char *text)
{
	auto_free char *full = tree_path(t, path);
	auto_fclose FILE *f = NULL;

	for (char *p = full + strlen(t->root) + 1; *p; p++)
		if (*p == '/') {
			*p = '\0';
			(void)mkdir(full, 0700);
			*p = '/';
		}
	f = fopen(full, "w");
	if (!f || fputs(text, f) < 0)
		abort();
}

static inline void tree_unlink(const struct tree *t, const char *path)
{
	auto_free char *full = tree_path(t, path);

	if (unlink(full) < 0)
		abort();
}
