// SPDX-License-Identifier: Apache-2.0
/*
 * The kinds we know: ids, API names, and which finalizer, label and annotation keys belong to us.
 *
 * A kind's id is its plural resource name; it is what worlds, plans, caches and metrics use.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#define KIND_NODE             "nodes"
#define KIND_NAMESPACE        "namespaces"
#define KIND_POD              "pods"
#define KIND_NAD              "network-attachment-definitions"
#define KIND_POLICY           "sriovnetworknodepolicies"
#define KIND_NODE_STATE       "sriovnetworknodestates"
#define KIND_POOL_CONFIG      "sriovnetworkpoolconfigs"
#define KIND_SRIOV_NETWORK    "sriovnetworks"
#define KIND_SRIOV_IB_NETWORK "sriovibnetworks"
#define KIND_OVS_NETWORK      "ovsnetworks"
#define KIND_IP_POOL          "spiderippools"
#define KIND_RESERVED_IP      "spiderreservedips"
#define KIND_ENDPOINT         "spiderendpoints"
#define KIND_MULTUS_CONFIG    "spidermultusconfigs"
#define KIND_COORDINATOR      "spidercoordinators"

/* Not an API kind: what nodes reported for one policy (plan_report). */
#define KIND_POLICY_REPORT "policyreports"

/*
 * Not an API kind: what nodes reported for one pool config; in plan_report its key stands behind
 * POOL_REPORT_PREFIX.
 */
#define KIND_POOL_REPORT   "poolreports"
#define POOL_REPORT_PREFIX "pool:"

/* Not an API kind: extended resources that some node offers, by name (node_names.h). */
#define KIND_NODE_RESOURCE "noderesources"

/*
 * Not an API kind: network interfaces that some node has, by name (node_names.h). Absent while not
 * every node reports them.
 */
#define KIND_NODE_LINK "nodelinks"

/*
 * Not an API kind: what sort of link interfaces and devices are, where all nodes that have them
 * agree (node_names.h): the name of an interface, or "RESOURCE/" of one without its prefix, to
 * "ETH" or "IB".
 */
#define KIND_LINK_TYPE "linktypes"

struct kind_info {
	const char *id;    /* plural */
	const char *group; /* "" for the core group */
	const char *version;
	const char *kind; /* "SriovNetworkNodePolicy" */
	bool namespaced;
	const char *crd_file; /* path from the repository top; NULL for built-in kinds */
};

/* NULL when the id is not known. */
const struct kind_info *kind_find(const char *id);
/* All kinds, ending with an entry whose id is NULL. */
const struct kind_info *kind_all(void);
/* "group/version", or "version" for the core group. Returns a new JSON string. */
json_t *kind_api_version(const struct kind_info *kind);

/*
 * On the NAD of a SriovNetwork and its like: "<Kind>.sriovnetwork.openshift.io/<namespace>/<name>".
 * The network deletes those that carry its name, so no other kind writes it.
 */
#define SRIOV_NETWORK_OWNER "sriovnetwork.openshift.io/owner-ref"

/* Names that others rely on. */
#define OPERATOR_NAME "orbweaver-operator" /* field manager, event source, condition owner */
#define AGENT_NAME    "orbweaver-agent"

/* Label `component` of pods of the control plane whose arguments have the cluster's networks. */
#define COMPONENT_API_SERVER         "kube-apiserver"
#define COMPONENT_CONTROLLER_MANAGER "kube-controller-manager"
