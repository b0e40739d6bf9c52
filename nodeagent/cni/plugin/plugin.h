// SPDX-License-Identifier: Apache-2.0
/*
 * One call of the plugin, from environment and stdin to stdout and exit status, as the CNI
 * specification has them (containernetworking/cni, SPEC.md).
 *
 * The plugin knows nothing of networks. It hands the call to the server of its node (wire.h), runs
 * programs that the server names and a worker has allowed, since it is on the host with its
 * caller's rights, and prints the answer. VERSION it answers itself, and all of `loopback`.
 *
 * The server is away: ADD, CHECK and GC wait PLUGIN_WAIT_MS (deadlines.h), then it is error 11;
 * STATUS succeeds, since pods that run go on; DEL leaves its call on the disk, which the server
 * finds when it starts, and succeeds.
 *
 * From the environment besides CNI_*: ORBWEAVER_CNI_SOCKET and ORBWEAVER_CNI_STATE in place of
 * WIRE_SOCKET and WIRE_STATE, for a caller that has them mounted elsewhere; ORBWEAVER_CNI_WAIT_MS.
 */
#pragma once

/* In the file of the program: by this one finds out that a file is ours. */
#define PLUGIN_MARK "orbweaver-cni: this plugin asks the agent of its node"

/* Returns the exit status. `name`: the last part of argv[0]. */
int plugin_run(const char *name);
