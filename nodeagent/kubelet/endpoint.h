// SPDX-License-Identifier: Apache-2.0
/*
 * Names of our sockets in the kubelet's directory, and what they show about other agents on this
 * node.
 *
 * "spidernet.io_rdma.1a2b3c4d.000000012345abcd.ow.sock": the resource for people (clipped), its
 * hash, and the instance: the agent that serves it. Each agent has sockets of its own, so at a
 * rolling update the successor's appear beside ours, and no agent removes what another one listens
 * on. Instances are ordered by age.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/map.h"

#define ENDPOINT_HASH_LEN     8
#define ENDPOINT_INSTANCE_LEN 16

/* Does a process listen on the socket of that path? In doubt true. */
bool endpoint_has_listener(const char *path);

/* A new instance: younger than all that were made on this machine since it was booted. */
void endpoint_instance(char out[ENDPOINT_INSTANCE_LEN + 1]);

/* The socket's name; returns new. */
char *endpoint_name(const char *resource, const char *instance);

struct endpoint_parts {
	char hash[ENDPOINT_HASH_LEN + 1];
	char instance[ENDPOINT_INSTANCE_LEN + 1];
};

/* False when the name is none of ours. */
bool endpoint_parse(const char *name, struct endpoint_parts *ret);

/* Other agents with sockets in the directory. `struct endpoint_others o = {0};` is none. */
struct endpoint_others {
	struct map newest; /* hash → the youngest instance that listens, char * */
};

/*
 * Look at all sockets of our kind that are not `instance`'s. Those without a listener are left
 * by an agent that was killed, and are removed. What was in *others is replaced. Returns -1 with
 * err ERR_HOST "PluginDirUnreadable".
 */
int endpoint_scan(const char *dir, const char *instance, struct endpoint_others *others,
		  struct err *err);
void endpoint_others_done(struct endpoint_others *others);
/* Does a younger agent than `instance` serve the resource? */
bool endpoint_has_successor(const struct endpoint_others *others, const char *resource,
			    const char *instance);
