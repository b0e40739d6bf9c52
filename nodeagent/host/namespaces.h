// SPDX-License-Identifier: Apache-2.0
/*
 * Network namespaces other than ours: finding them, and asking the kernel from inside of one.
 *
 * An open descriptor keeps a namespace alive, and what is in it comes back to the host only when it
 * ends: none is kept here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/host/host.h"

/*
 * A namespace, while it is looked at. Paths are below the host's root, without a slash in front:
 * "run/netns/cni-…", "run/docker/netns/…", where else one is mounted, or "proc/42/ns/net".
 */
struct host_namespace {
	const char *path;
	uint64_t inode; /* its own: a path may be another namespace's a moment later */
	int fd;         /* closed when the visit is over */
};

/*
 * Call `visit` for each namespace, once: those that are mounted first, whose names say more, then
 * those that processes have. It ends when `visit` says false.
 *
 * -1 with err ERR_HOST "HostUnreadable" when not all could be visited: no descriptors, no rights,
 * more than 4096. Those that could were visited all the same. What ends meanwhile is not an error.
 */
int host_namespaces(const struct host *host,
		    bool (*visit)(void *arg, const struct host_namespace *namespace), void *arg,
		    struct err *err);

/* Whether a name in /proc is a process's. */
bool host_is_process(const char *name);

/*
 * Run `work` with `host` speaking to the kernel of this namespace, and come back; its sockets there
 * are closed then. Files are the host's all the time. Returns what `work` returned; -1 with err
 * ERR_HOST "NamespaceRefused" when the namespace cannot be entered. A process that cannot come back
 * ends: it would act on the wrong namespace from then on.
 */
int host_within(struct host *host, int fd,
		int (*work)(struct host *host, void *arg, struct err *err), void *arg,
		struct err *err);
/*
 * The same by path, which has to be one of those above (else ERR_BUG "BadRequest") and that of a
 * namespace with this inode (else ERR_TRANSIENT "NamespaceGone").
 */
int host_within_path(struct host *host, const char *path, uint64_t inode,
		     int (*work)(struct host *host, void *arg, struct err *err), void *arg,
		     struct err *err);
