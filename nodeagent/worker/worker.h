// SPDX-License-Identifier: Apache-2.0
/*
 * A worker: reads requests from its socket and carries them out, one after the other, in plain
 * blocking code.
 */
#pragma once

#include "nodeagent/host/host.h"

struct allocation_epoch;

struct worker_config {
	const char *root;       /* of the host */
	bool allow_primary_nic; /* host_allow_primary_nic() */
	bool allow_firmware;    /* host_allow_firmware() */
	/* Of PodResources: for worker_ask_kubelet(), and allocated_devices.h. NULL: there is
	 * no kubelet. */
	const char *kubelet_socket;
	const struct allocation_epoch *giving; /* of allocated_devices.h */
};

/* Open the host and serve. When it cannot be opened the first request gets the error. */
void worker_run(int fd, const struct worker_config *config);

/* The same for a meter (workers.h), which refuses all but the two requests for counters. */
void worker_run_meter(int fd, const struct worker_config *config);

/*
 * Remember the addresses from which the process talks that listens on this socket: they are the
 * node's, also when no agent says so. NULL: no process is asked.
 */
void worker_ask_kubelet(const struct host *host, const char *socket);

/* Serve until the socket closes, or the other side says what is not a request. */
void worker_serve(int fd, struct host *host);
