// SPDX-License-Identifier: Apache-2.0
/* Names of device files: what lies below a /dev. */
#pragma once

#include <jansson.h>

enum {
	DEV_NAMES_DEPTH_MAX = 10,
	DEV_NAMES_MAX = 20000,
};

/*
 * Names below /dev of the host whose root is open as `root`, folders too, sorted: ["infiniband",
 * "infiniband/uverbs0", …]. Symbolic links are named and not followed, other file systems (pts,
 * shm) left out, as is what is deeper or more than the limits. New; NULL when the folder cannot be
 * read.
 */
json_t *dev_names_read(int root);
