// SPDX-License-Identifier: Apache-2.0
/*
 * What sriov-cni, ib-sriov-cni and rdma-cni keep of an interface on the disk: read, so that pods
 * which they set up are taken down by us. Pure.
 *
 *	/var/lib/cni/sriov/CONTAINER-IFNAME          the configuration, with OrigVfState, VFID, …
 *	/var/lib/cni/sriov/pci/ADDRESS               path of the namespace that has the VF
 *	/var/lib/cni/ib-sriov/CONTAINER-IFNAME       the configuration, with HostIFNames, HostIFGUID
 *	/var/lib/cni/rdma/NETWORK-CONTAINER-IFNAME   {"deviceID", "sandboxRdmaDevName", …}
 *
 * Keys are those of Go's structures: pkg/types/types.go of these projects (k8snetworkplumbingwg).
 * null is what the configuration did not have.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Bytes of one file. */
#define UPSTREAM_STATE_MAX (1U << 20)

#define UPSTREAM_SRIOV_DIR   "/var/lib/cni/sriov"
#define UPSTREAM_SRIOV_OWNER UPSTREAM_SRIOV_DIR "/pci"

/*
 * Return the path of the file that a plugin ("sriov", "ib-sriov", "rdma") keeps, new; NULL: others
 * keep none that we read.
 */
char *upstream_state_path(const char *plugin, const char *network, const char *container,
			  const char *ifname);

/*
 * Return what our plugin of that name keeps for DEL (attach.h, attach_call.saved), new, with
 * "device". As the plugin's own DEL would, it puts back only what the configuration had asked for.
 * NULL with err ERR_INVALID "BadUpstreamState" or "BadField" (sriov.h), which names the key.
 */
json_t *upstream_state_read(const char *plugin, const json_t *kept, struct err *err);
