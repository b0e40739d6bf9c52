// SPDX-License-Identifier: Apache-2.0
/*
 * The pod's default route, when its annotation gives it to one network (default-route). Pure.
 *
 * By family: the chosen network's gateways count; an empty list chooses the default routes that the
 * network brings itself. In a family that is chosen so, all other networks lose their default
 * routes; a family that is not, stays as it is, so no pod is left without a route that nobody asked
 * to take.
 *
 * Source: Network Plumbing Working Group, "Kubernetes Network Custom Resource Definition De-facto
 * Standard" 1.3, 4.1.2.1.9.
 */
#pragma once

#include <jansson.h>

/*
 * Make the results of all delegates (delegates.h; null where there is none) say what the pod shall
 * have, and return what is to be done in its namespace for it: a new array, in this order, empty
 * when nothing is:
 *
 *	{"remove": "4" or "6", "interface"}             the default routes of the interface in the
 *                                                      main table
 *	{"add": "4" or "6", "interface", "gateway"}     one, unless it is there
 */
json_t *default_route_apply(const json_t *delegates, json_t *results);

/*
 * The steps (nodeagent/cni/plan/steps.h) that make these changes in a namespace that looks so
 * (nodeagent/cni/plan/look.h: links and routes): a new array.
 */
json_t *default_route_steps(const json_t *changes, const json_t *look);
