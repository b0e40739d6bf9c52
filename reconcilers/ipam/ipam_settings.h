// SPDX-License-Identifier: Apache-2.0
/*
 * The switches of IPAM in the ConfigMap `spiderpool-conf`, as users of Spiderpool have it:
 *
 *	data:
 *	  conf.yml: |
 *	    enableIPv4: true
 *	    enableIPv6: true
 *	    enableStatefulSet: true
 *	    enableKubevirtStaticIP: true
 *	    enableIPConflictDetection: false
 *	    enableGatewayDetection: false
 *	  clusterNetwork: kube-system/macvlan    # or macvlan: in the ConfigMap's namespace
 *
 * and, where nodes go on with a Multus' configuration that has these keys (docs/cni.md), the same
 * for IPAM; lists are text with commas:
 *
 *	  multusNamespace: kube-system
 *	  defaultNetworks: storage, metrics
 *	  systemNamespaces: kube-system
 */
#pragma once

#include "lib/base/err.h"
#include "reconcilers/ipam/candidates.h"

#define IPAM_CONFIG_MAP "spiderpool-conf"
/* Of the operator's Lease: the namespace in which the leader reads that ConfigMap. */
#define IPAM_LEADER_ANNOTATION "orbweaver.io/config-namespace"

/*
 * Read the ConfigMap; NULL, or one without conf.yml, means all on but detection. In a conf.yml that
 * is there, an absent switch is off, as Spiderpool reads it. Strings of *ret are borrowed from the
 * object; `ns` is where it is, or would be. Errors: ERR_INVALID "BadConfig", naming the field; *ret
 * is untouched then.
 */
int ipam_settings_read(const json_t *config_map, const char *ns, struct ipam_settings *ret,
		       struct err *err);
