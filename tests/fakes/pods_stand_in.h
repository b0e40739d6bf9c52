// SPDX-License-Identifier: Apache-2.0
/*
 * What pods change about a node that does not exist: who holds devices, and what its agent says
 * while they are in the way. Pure; the stand-in (node_stand_in.c) carries it to the API server.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Devices of the one resource that each node offers. */
enum { PODS_DEVICES = 8 };

/* The pod asks for the resource and has not ended. */
bool pods_holds(const json_t *pod, const char *resource);

/*
 * The status of a node whose agent wants to go from what is there, state.status, to `next`
 * (inventory_status(), done): `next`, when nothing of it takes VFs from the holders (["ns/name"]);
 * else what is there, with the pods in the way, and withdrawn while the node is drained. Another
 * RDMA mode waits for a boot, which comes at once when it is allowed and no holder is left.
 * *ret_healthy: devices that the kubelet may give away. Returns new.
 */
json_t *pods_status(const json_t *state, const json_t *next, const json_t *holders,
		    const char *resource, int *ret_healthy);

/* As a kubelet would say it of a pod that was bound: status of the pod, new; NULL: it says so. */
json_t *pods_running(const json_t *pod, const char *now);
