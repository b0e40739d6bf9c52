// SPDX-License-Identifier: Apache-2.0
/*
 * What a node that does not exist has inside, and what its agent would say about it. Pure; the
 * stand-in (node_stand_in.c) carries it to the API server.
 *
 * An inventory is JSON, read from a file or generated:
 *
 * 	{ "name": "worker-1",
 * 	  "labels": { … },		besides those that every Linux worker has; optional
 * 	  "rdmaMode": "shared",		of the node until spec.system says otherwise; optional
 * 	  "interfaces": [ { PFs, with the fields of NodeState status.interfaces that do not change:
 * 		"pciAddress", "name", "mac", "vendor", "deviceID", "driver", "mtu", "totalvfs",
 * 		"linkType", "linkSpeed",
 * 		"vfDeviceID"		PCI device of the VFs; optional, else that of the PF
 * 	  } ] }
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

enum {
	INVENTORY_MAX_NODES = 20000,
	INVENTORY_MAX_PFS = 64,
	INVENTORY_MAX_VFS = 254, /* of one PF */
	INVENTORY_MAX_FILE = 1024 * 1024,
};

/* Nodes that are all alike but for names and addresses. */
struct inventory_shape {
	const char *prefix; /* of the nodes' names */
	int64_t nodes;
	int64_t pfs; /* of each node */
	int64_t vfs; /* that each PF can have */
};

/*
 * "nodes=1000,pfs=8,vfs=16,prefix=node-": parts in any order, those that are missing have the
 * defaults 1, 2, 8 and "node-". text is cut up; ret->prefix points into it. Errors: ERR_INVALID
 * "BadShape".
 */
int inventory_shape_parse(char *text, struct inventory_shape *ret, struct err *err);

/* Node `number` of such a crowd, from 0: "node-00000". Returns new. */
json_t *inventory_generate(const struct inventory_shape *shape, int64_t number);

/* One node from a file. Returns new, or NULL with err naming file and field. */
json_t *inventory_read(const char *path, struct err *err);

/*
 * The status that the node's agent would write for this NodeState (only its spec,
 * metadata.generation and status are looked at). done: false, the agent has seen the spec and is at
 * work: what is there stays as it was; true: it is through, VFs are there, or it failed because the
 * device cannot do what spec says. now: RFC 3339. Returns new.
 *
 * Equal arguments give equal statuses, and a status fed back in `state` does not change any more.
 */
json_t *inventory_status(const json_t *inventory, const json_t *state, bool done, const char *now);
