// SPDX-License-Identifier: Apache-2.0
/*
 * Children of this process: fork(2), and what has to be right in the child before it does anything
 * else.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* {0}: a copy of its parent, with all descriptors, that may outlive it. */
struct child_config {
	const char *name;     /* in ps(1), at most 15 bytes; NULL: its parent's */
	int dies_by;          /* signal that it gets when its parent ends, however; 0: none */
	int oom_more;         /* added to its oom_score_adj, 1000 at most in all */
	bool leads_session;   /* setsid(2): Ctrl-C at a terminal is for its parent */
	bool resets_handlers; /* of all signals, and none is ignored any more */
	/*
	 * Handlers of pthread_atfork(3) do not run. For children of a process that is a copy of one
	 * with an event loop and has closed its descriptors: libuv's handler closes two of them in
	 * the child, by the numbers that its signal pipe had. libcap-ng, on the other hand, needs
	 * its handler to know that it is in another process.
	 */
	bool skips_handlers;
	/*
	 * Descriptors that stay open, with their numbers; -1 and standard ones are passed over.
	 * stdin and stdout become /dev/null, and stderr where it was closed. NULL: all stay.
	 */
	const int *keep;
	size_t n_keep;
};

/*
 * Returns 0 in the child, its pid in the parent, -1 with errno set. No signal is blocked in the
 * child. A child that cannot be set up ends with status 1.
 */
pid_t child_fork(const struct child_config *config);
