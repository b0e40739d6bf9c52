// SPDX-License-Identifier: Apache-2.0
/*
 * The server (cni_server.h) in a process of its own, started by the supervisor, with neither
 * capabilities nor the host's files: cnid_open() takes what it needs of the host before it gives
 * them up.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

struct watch;

/* What is the process's for as long as it runs. */
struct cnid_host {
	int lock;            /* of the state: one server per node */
	struct watch *watch; /* of the kernel's events; NULL: not to be had */
	char *socket_dir;    /* the folder of the socket, as we see it; new */
};

/*
 * Make the folders of state and socket where they are missing, and open what has to be open.
 * socket: path on the host. ERR_HOST "StateUnusable".
 */
int cnid_open(const char *host_root, const char *socket, struct cnid_host *ret, struct err *err);
void cnid_close(struct cnid_host *host);

struct cnid_config {
	/* a packet with a descriptor brings a line to the next agent; the end says to end */
	int control;
	int orders; /* to the supervisor: workers (nodeagent/process/orders.h); taken */
	int64_t heartbeat_ms;
	const struct cnid_host *host;
	const char *socket_dir;             /* as the process sees it now */
	const char *socket;                 /* the file in it */
	uid_t caller;                       /* whose plugins are answered */
	int64_t add_ms, again_ms, notes_ms; /* cni_server.h */
};

/* Returns an exit status. */
int cnid_run(const struct cnid_config *config);
