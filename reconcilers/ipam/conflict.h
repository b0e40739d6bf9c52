// SPDX-License-Identifier: Apache-2.0
/*
 * A node's agent says that addresses of a pod are in use by another host on the network.
 *
 * It says so in the pod's SpiderEndpoint. Until that was heard the endpoint is no answer for NICs
 * with these addresses. Who decides next, the leader or an agent without one, remembers them in
 * their pools (ipam/ip_memory.h) and gives the pod others; a pod that keeps its addresses keeps
 * these, too.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/core/limits.h"

/*
 * By the agent, JSON: {"uid": UID of the pod, "conflicts": [{"ip", "mac"}]}. Taken away by who has
 * heard it.
 */
#define ENDPOINT_CONFLICTS_ANNOTATION "orbweaver.io/conflicts"

/* Each NIC has two addresses at most. */
enum { CONFLICTS_MAX = 2 * (LIMIT_NETWORKS + 1) };

/*
 * What is said about the pod with this UID: an array, new; NULL: nothing, or more than
 * CONFLICTS_MAX, which no agent says.
 */
json_t *conflicts_said(const json_t *endpoint, const char *uid);

/* The text of ENDPOINT_CONFLICTS_ANNOTATION. Returns new; free(). */
char *conflicts_text(const char *uid, const json_t *conflicts);

/*
 * The conflicts that are about addresses of this endpoint's status, and are not in `known` (NULL:
 * none is): what a report of a NIC adds. Returns a new array.
 */
json_t *conflicts_of(const json_t *status, const json_t *reported, const json_t *known);

/* Does the item of an endpoint (status.current.ips) have one of these addresses? */
bool conflicts_touch(const json_t *item, const json_t *conflicts);

/* Does any of its items? */
bool conflicts_touch_status(const json_t *status, const json_t *conflicts);
