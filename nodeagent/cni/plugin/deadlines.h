// SPDX-License-Identifier: Apache-2.0
/*
 * How long a CNI call may take, and its parts, in milliseconds: what the plugin, the server, its
 * workers and the flag of the agent share.
 */
#pragma once

enum {
	/* The plugin, for a server that is away. */
	PLUGIN_WAIT_MS = 10000,

	/*
	 * The server, for a worker. The kubelet gives a runtime two minutes for ADD. STATUS is of
	 * the cluster network's plugin: the kubelet waits less long for the runtime.
	 */
	SERVER_ADD_MS = 90000,
	SERVER_ADD_MIN_MS = 10000,
	SERVER_ADD_MAX_MS = 3600000,
	SERVER_STATUS_MS = 10000,
	SERVER_DEL_MS = 60000,
	/* For each device: an InfiniBand VF's driver starts again, and udev names its interface. */
	SERVER_DEL_DEVICE_MS = 15000,
	SERVER_DEL_MAX_MS = 240000,
	/* The server, for an answer of the agent. */
	SERVER_AGENT_MS = 10000,

	/*
	 * A worker, for a device that another process works on: the driver of an InfiniBand VF may
	 * be starting. DEL goes on with the pod's other devices then, and comes back.
	 */
	WORKER_ADD_LOCK_MS = 40000,
	WORKER_DEL_LOCK_MS = 15000,
	/* A worker, for a program's turn. */
	WORKER_TURN_MS = 30000,
	/*
	 * The DELs of all programs of one call, of an IPAM plugin among them, and what each gets at
	 * least. What one program keeps others from, the worker goes on with itself.
	 */
	WORKER_DEL_SUM_MS = 50000,
	WORKER_DEL_IPAM_MS = 10000,
	WORKER_DEL_MIN_MS = 500,
	/* ADD, for network-status to be written; the agent goes on with it. */
	WORKER_NETWORK_STATUS_MS = 2000,
};

_Static_assert(WORKER_DEL_SUM_MS < SERVER_DEL_MS, "the worker still takes down the rest");
