// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetwork, SriovIBNetwork, OVSNetwork → NetworkAttachmentDefinition.
 *
 * key: "namespace/name". World:
 * 	<kind>[key]				absent: the network is deleted
 * 	network-attachment-definitions those whose annotation SRIOV_NETWORK_OWNER names this network
 * 	(wherever
 * 						they are), and the one at the target key, whoever
 * 						owns it
 * 	namespaces[<networkNamespace>] when that is not the network's own; absent: it does not exist
 *
 * 	noderesources: the network's resource, if a node offers it; without the kind: not known
 *
 * Plan: the NAD at <networkNamespace, else own namespace>/<name>, deletion of NADs of ours
 * elsewhere, status { observedGeneration, conditions: Ready, Degraded,
 * networkAttachmentDefinition }. Ready=True is said of a NAD that was read back; Degraded=True
 * ResourceMissing beside it when no node offers the resource.
 *
 * What wakes a key: the network; a NAD, through the annotation before and after, and through its
 * own key for networks that target it; a namespace that appears, for networks that target it; a
 * resource that the first node offers, or the last one ceases to.
 *
 * Source: github.com/k8snetworkplumbingwg/sriov-network-operator, api/v1/helper.go and
 * bindata/manifests/cni-config. Where we differ: docs/sriov.md.
 */
#pragma once

#include "reconcilers/core/problems.h"
#include "reconcilers/core/reconcile.h"

/* On the NAD: the resource that a pod has to ask for, with prefix. */
#define NAD_RESOURCE_NAME "k8s.v1.cni.cncf.io/resourceName"
/* On a network: the namespace into which upstream's operator wrote its NAD. */
#define SRIOV_NETWORK_LAST_NAMESPACE "operator.sriovnetwork.openshift.io/last-network-namespace"
/* Upstream's, honoured where it is; we set none (docs/sriov.md). */
#define SRIOV_NETWORK_FINALIZER "netattdef.finalizers.sriovnetwork.openshift.io"

int sriov_network_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err);
int sriov_ib_network_reconcile(const json_t *world, const char *key, struct plan *plan,
			       struct err *err);
int ovs_network_reconcile(const json_t *world, const char *key, struct plan *plan, struct err *err);

/*
 * What is wrong with a network of that kind: its configuration, and a NetworkAttachmentDefinition
 * that it must not write. What passes without the user (a namespace that does not exist yet) is
 * left to the condition. World: as above.
 */
void sriov_network_check(const json_t *world, const char *kind, const json_t *network,
			 struct problems *problems);

/* Of the text, as upstream, whose text is then taken over as it stands. */
#define SRIOV_NETWORK_INDENT 4

/*
 * The CNI configuration of a network of that kind (KIND_SRIOV_NETWORK, KIND_SRIOV_IB_NETWORK,
 * KIND_OVS_NETWORK) and name: returns new, keys in upstream's order; NULL when something is wrong
 * with the network, which is then in problems.
 */
json_t *sriov_network_config(const char *kind, const char *name, const json_t *network,
			     struct problems *problems);
