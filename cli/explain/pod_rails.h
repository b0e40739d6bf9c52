// SPDX-License-Identifier: Apache-2.0
/*
 * Does a pod have the rails that its label names, or that the other pods with this label have?
 * Pure.
 */
#pragma once

#include <jansson.h>

/*
 * Add the link "rails" to the chain of a pod that is on a node: holds, waits until its interfaces
 * are known, or is broken: "OtherRails". Nothing without the label (lib/base/rail_list.h).
 *
 * World: KIND_POD, and what explain_pod_interfaces() needs.
 */
void explain_pod_rails(json_t *chain, const json_t *world, const json_t *pod);
