// SPDX-License-Identifier: Apache-2.0
/*
 * The ib-sriov plugin's decisions: an InfiniBand VF for a pod. Pure.
 *
 * Compatible with ib-sriov-cni (github.com/k8snetworkplumbingwg/ib-sriov-cni). Different on
 * purpose: the GUID that a VF had is kept before it is changed, the driver is bound anew only when
 * the GUID really changes.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "nodeagent/model/text.h"

struct ib_sriov_config {
	json_t *folded;            /* what the texts are borrowed from */
	const char *device;        /* PCI address */
	char guid[TEXT_GUID_SIZE]; /* "": the VF's own */
	bool isolated;             /* rdmaIsolation: its RDMA device goes with it */
	json_t *wanted;            /* settings, as of sriov.h */
};

/*
 * ERR_INVALID "BadField"        names the key and what it must be
 * ERR_TRANSIENT "GuidNotReady"  ib-kubernetes has not given the pod a GUID yet
 */
int ib_sriov_config_read(const json_t *config, struct ib_sriov_config *ret, struct err *err);
void ib_sriov_config_done(struct ib_sriov_config *config);
#define auto_ib_sriov_config auto_call(ib_sriov_config_done)

/*
 * The GUID of an IPoIB interface: the last eight of its address's twenty octets. False for another
 * address.
 */
bool ib_sriov_guid_of(const char *address, char ret[TEXT_GUID_SIZE]);
/* All zeros and all ones are no GUIDs: the subnet manager takes neither. */
bool ib_sriov_guid_is_set(const char *guid);
