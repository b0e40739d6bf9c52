// SPDX-License-Identifier: Apache-2.0
/* Why a pod has these addresses, or none: what the allocator says, NIC by NIC. Pure. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "reconcilers/ipam/candidates.h"

/* The switches of IPAM; config_ns: where the ConfigMap is. Errors as ipam_settings_read. */
int explain_settings(const json_t *world, const char *config_ns, struct ipam_settings *ret,
		     struct err *err);

/*
 * key: "namespace/name" of the pod. Returns new:
 *
 *	{ "pod", "verdict": in words, "reason": why it gets none; absent: it has or would get them,
 *	  "warning": what of the pod's annotations has no effect; absent: nothing,
 *	  "unknown": [sentences],
 *	  "nics": [ { "nic", "network", "problem", "pools": [ { "pool", "verdict" } ],
 *		      "ipv4", "ipv6", "result" } ] }
 *
 * World: pools, reserved addresses, endpoints, pods, nodes, namespaces, definitions, "configmaps",
 * and what release.h says. Settings and annotations that cannot be read are a verdict. Error:
 * ERR_INVALID "PodNotFound".
 */
json_t *explain_addresses(const json_t *world, const char *config_ns, const char *key,
			  struct err *err);
