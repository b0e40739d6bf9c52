// SPDX-License-Identifier: Apache-2.0
/* A folder of a test's own, gone with everything in it when the test is over. */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/str.h"

/* Return the path, new. */
static inline char *scratch_new(void)
{
	char *path = str_dup("/tmp/orbweaver-test-XXXXXX");

	if (!mkdtemp(path))
		abort();
	return path;
}

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
				     struct FTW *where)
{
	return remove(path);
}

static inline void scratch_free(char *path)
{
	(void)nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(path);
}
