// SPDX-License-Identifier: Apache-2.0
/*
 * Which paths `orbweaver test` measures, and which of them at the same time: those of a round share
 * no NIC. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"

/* Of one test, and of a file with its results. */
#define PATHTEST_PATHS_MAX 2048

enum path_pattern {
	PATTERN_RAILS, /* each pair of nodes, within each network */
	PATTERN_CROSS, /* … from each network to each */
	PATTERN_RING,  /* from each node to the next, the last to the first; all at once */
};

/* Places in the lists of nodes and networks; the client is where it comes from. */
struct round_path {
	size_t from, to;
	size_t from_network, to_network;
	size_t round; /* from 0, without gaps */
};

/* Read "rails", "cross" or "ring"; NULL: rails. ERR_INVALID/BadFlag: anything else. */
int path_pattern_read(const char *text, enum path_pattern *ret, struct err *err);

/* ERR_INVALID/TooManyPaths: there are more than PATHTEST_PATHS_MAX. */
int rounds_check(enum path_pattern pattern, size_t nodes, size_t networks, struct err *err);

/*
 * Plan the paths between `nodes` nodes, in order of their rounds; new, mem_free(). nics: of each
 * node, for each of `networks` networks, the name of its NIC there. Two with equal names take
 * turns, but in a ring, and so do those that are not known (""). rounds_check() has passed.
 */
struct round_path *rounds_plan(enum path_pattern pattern, size_t nodes, size_t networks,
			       const json_t *nics, size_t *ret_n);
