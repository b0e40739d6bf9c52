/*
 * Who keeps which privileges (design.md, decision 11). The numbers of users stay: 0, since the host's files are root's.
 *
 * After either call nothing can be gained any more: no_new_privs is set, so that a program that is run has no more than who
 * runs it, and the bounding set is as small as the rest (where CAP_SETPCAP lets us).
 */
#ifndef ORBWEAVER_NODEAGENT_HOSTD_PRIVILEGES_H
#define ORBWEAVER_NODEAGENT_HOSTD_PRIVILEGES_H

#include "lib/base/err.h"

/*
 * Keep what steps and observation need, of what there is: the table is in privileges.c. ERR_HOST "PrivilegesNotDropped".
 */
int privileges_limit_hostd(struct err *err);

/*
 * Keep no capability at all: for the agent, after hostd_fork_keeper. It can still use what belongs to root, such as the
 * kubelet's sockets. ERR_HOST "PrivilegesNotDropped" unless the kernel confirms it.
 */
int privileges_drop_all(struct err *err);

#endif
