// SPDX-License-Identifier: Apache-2.0
/*
 * Who keeps which capabilities. Workers stay user 0, since the host's files are root's; sandbox.h
 * has the processes that do not.
 *
 * After each of the calls that limit nothing can be gained any more: no_new_privs is set, so that a
 * program that is run has no more than who runs it, and the bounding set is as small as the rest
 * (where CAP_SETPCAP lets us).
 */
#pragma once

#include "lib/base/err.h"

/*
 * Keep what steps and observation need, of what there is: the table is in privileges.c. ERR_HOST
 * "PrivilegesNotDropped".
 */
int privileges_limit_hostd(struct err *err);

/* Keep what reading counters needs, in pods' namespaces too: nothing that changes anything. */
int privileges_limit_meter(struct err *err);

/* Keep what attaching pods to networks needs (nodeagent/cni/worker). */
int privileges_limit_cni_worker(struct err *err);

/*
 * All of these, and what it takes to start and end processes of another user: for the supervisor.
 */
int privileges_limit_supervisor(struct err *err);

/* Keep no capability at all. ERR_HOST "PrivilegesNotDropped" unless the kernel confirms it. */
int privileges_drop_all(struct err *err);

/* ---- steps of sandbox_become() --------------------------------------------------------------- */

/* While there is CAP_SETPCAP: empty the bounding set. */
int privileges_drop_bounds(struct err *err);
/* Capabilities to change users, kept by PR_SET_KEEPCAPS, take effect again. */
int privileges_raise_users(struct err *err);
