// SPDX-License-Identifier: Apache-2.0
/*
 * Which of a node's devices are offered by device plugins, and which by dynamic resource
 * allocation: each to one of both, never to both. Pure.
 */
#pragma once

#include <jansson.h>

/*
 * What the annotation of a Node (dra_names.h; NULL: it has none) asks for: {"spidernet.io/x":
 * true}, or {"*": true} for all. Blanks and empty names are passed over. New.
 */
json_t *dra_choice_read(const char *annotation);

struct dra_choice_input {
	const json_t *pools;  /* all of the node (nodeagent/devices/pools.h) */
	const json_t *chosen; /* dra_choice_read(); NULL: nothing is */
	/*
	 * Of those, the names of which the kubelet is known to give nothing away any more:
	 * {name: true}; NULL: of none.
	 */
	const json_t *settled;
	/* What pods have by device plugins, as in pools_input; NULL: not known. */
	const json_t *allocated;
	/* What claims have, in the same shape (dra_claims.h); NULL: nothing. */
	const json_t *prepared;
};

/*
 * Return the names of resources of the pools that are given by claims, [name], sorted; new. VFs and
 * shared devices that were chosen can be; files of devices, and RDMA devices in mode exclusive,
 * whose folder CDI has no word for, cannot: those are in *ret_refused, [name], new, unless it is
 * NULL.
 */
json_t *dra_choice_names(const json_t *pools, const json_t *chosen, json_t **ret_refused);

/*
 * Return `pools` as device plugins have them, new: without the resources that are given by claims,
 * unless pods have devices of such a one, which stays until they have ended, with nothing wanted
 * and nothing healthy; and with devices that claims have unhealthy.
 */
json_t *dra_choice_plugins(const struct dra_choice_input *input);

/*
 * Return what to say of resources that are given by claims and have devices, as
 * device_plugins_status() says it of others, new: of a device plugin nothing is wanted, and nothing
 * is healthy there. Without it, who knows all nodes takes this one for a node that has none.
 */
json_t *dra_choice_status(const json_t *pools, const json_t *chosen);

/*
 * Return the pools that claims are served from, new: settled resources without the devices that
 * pods have by a device plugin, and devices that claims have, whichever way offers their resource
 * now. While `allocated` is not known, only the latter. A resource has "offered": is it to be
 * published?
 */
json_t *dra_choice_claims(const struct dra_choice_input *input);
