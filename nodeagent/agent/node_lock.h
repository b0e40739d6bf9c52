// SPDX-License-Identifier: Apache-2.0
/*
 * The agent that executes on this node is the one that holds flock(2) on a file of the host. It
 * ends with the process that holds it, however that comes.
 */
#pragma once

#include "lib/base/err.h"

/* Below the host's root. */
#define NODE_LOCK_FILE "run/orbweaver-agent.lock"

/*
 * A close-on-exec descriptor, or -1 with err ERR_HOST "LockUnavailable". Needs the right to make
 * the file, and no other.
 */
int node_lock_open(const char *host_root, struct err *err);

/*
 * Returns 1 when the lock is ours, 0 while another process has it, -1 with err ERR_HOST
 * "LockRefused" when the kernel refuses it: then it is unknown whether another agent is at work.
 */
int node_lock_try(int fd, struct err *err);
