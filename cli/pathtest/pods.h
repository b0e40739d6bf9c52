// SPDX-License-Identifier: Apache-2.0
/*
 * Whom `orbweaver test` asks: which networks and nodes, with which pods, and what becomes of those.
 * Pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

/* As tests/demo have it: make images, hack/images tools. */
#define PATHTEST_IMAGE "localhost/orbweaver-tools:latest"
/* The container that runs the commands; sidecars may be put beside it. */
#define PATHTEST_CONTAINER "test"
/* A pod that is not removed, because the command was killed, ends after this. */
#define PATHTEST_POD_S 3600

/*
 * The networks that the text names (the annotation's grammar; `ns` for names without one):
 * [ { "key", "resource", "master" } ], new. `resource` NULL: what the NetworkAttachmentDefinition
 * names, else the only shared one that there is; "" is not in the result: the pods ask for none.
 * World: definitions and NodeStates. NULL with err, ERR_INVALID: "BadNetworks"; "NoNetworkFound";
 * "ManyResources", which are named.
 */
json_t *pathtest_networks(const json_t *world, const char *text, const char *ns,
			  const char *resource, struct err *err);

/*
 * The nodes to test on: those that are named, else those that have what the networks want, two
 * unless all are wanted. New. NULL with err, ERR_INVALID "TooFewNodes", "NotFound", or
 * "ResourceMissing": a named node has nothing of it. World: nodes.
 */
json_t *pathtest_nodes(const json_t *world, const json_t *networks, char *const *named,
		       size_t named_len, bool all, struct err *err);

struct pathtest_pod {
	const char *name, *ns, *node, *image;
	const json_t *networks;
};

/* The pod, as it is created; new. */
json_t *pathtest_pod(const struct pathtest_pod *pod);

enum pod_state {
	POD_WAITS,
	POD_STUCK, /* an error, if this stays for a while */
	POD_READY,
	POD_FAILED,
};

/*
 * How far a pod of ours is. err is set but for POD_READY: what it waits for, or what is wrong.
 * Ready are those that run and whose network-status has all of the networks.
 */
enum pod_state pathtest_pod_state(const json_t *pod, const json_t *networks, struct err *err);

/* The last thing that Events (a List) complain of, or NULL. Borrowed. */
const char *pathtest_complaint(const json_t *events);

/*
 * The pod's interface in the network with this key: { "interface", "address", "control": where
 * perftest finds its other end, and, if network-status says them, "rdma" and "pci" }, new.
 * NULL: its network-status has no such one, or without address.
 */
json_t *pathtest_interface(const json_t *pod, const char *network);

/*
 * The PF below an interface of pathtest_interface(), as the node's NodeState in the world has it;
 * master as in pathtest_networks(), or NULL. Borrowed; NULL: not known.
 */
const json_t *pathtest_pf(const json_t *world, const char *node, const json_t *interface,
			  const char *master);
