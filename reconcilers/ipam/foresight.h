// SPDX-License-Identifier: Apache-2.0
/* What a pod's NICs will ask with once its sandbox is made, from what the cluster says before. */
#pragma once

#include "lib/base/err.h"
#include "reconcilers/ipam/candidates.h"

/*
 * The asks (candidates.h) of all NICs that take their addresses from pools, in the order in which
 * they are made: the default network's as "eth0", then those of the pod's annotation. Each ask also
 * has "network", "namespace/name" of its NetworkAttachmentDefinition. A network whose configuration
 * names another IPAM, or none, makes no ask.
 *
 * ret_unknown: new; sentences about networks that may ask, but cannot be foreseen: the definition
 * is not there or cannot be read, or it wants the master's subnet, which only the node knows.
 *
 * World: KIND_NAD. Returns new, or NULL with err, ERR_INVALID: "BadNetworks" when an annotation
 * cannot be read; "InterfaceTwice" when two networks want one interface; "TooLarge" when an
 * annotation, or a definition, is beyond a bound (core/limits.h).
 */
json_t *foresee(const json_t *world, const json_t *pod, const struct ipam_settings *settings,
		json_t **ret_unknown, struct err *err);

/*
 * Has a network of the pod a coordinator that looks for other hosts with its addresses
 * (detectIPConflict)? World: KIND_NAD.
 */
bool foresee_detection(const json_t *world, const json_t *pod,
		       const struct ipam_settings *settings);

/*
 * Read a NetworkAttachmentDefinition for foresee(), once for each version: metadata.orbweaver gets
 * "addresses", and no code parses spec.config for each mention of the network.
 */
void foresight_project(json_t *nad);
