// SPDX-License-Identifier: Apache-2.0
/*
 * Trim at the door: what is kept of each kind in the caches, and which part of an object's metadata
 * is ours.
 *
 * Reconcilers read nothing else; memory is a promise (docs/bench.md). The largest parts
 * (managedFields, VF lists, image lists) are left out already while the bytes arrive
 * (lib/kube/splitter.h), these functions do the rest.
 */
#pragma once

#include <jansson.h>

/* All kinds but those below: metadata without what the server keeps for itself. */
void project_object(json_t *object);

/*
 * The same of kinds that count in trusted namespaces only, and that users of any namespace may
 * write: their spec within bounds (reconcilers/core/limits.h). A number in the place of a text or
 * list is a wrong value, so nothing is decided by the rest.
 */
void project_policy(json_t *object);

/*
 * Nodes: name, labels, taints, whether it is cordoned, the annotations of drains and of links, of
 * the conditions Ready's status and our own, IP addresses, the names of the extended resources in
 * status.allocatable (node_resources_of). Their heartbeats then change nothing.
 */
void project_node(json_t *object);

/*
 * Objects that we write: like project_object, and metadata gets "orbweaver" = { "labels": [keys],
 * "annotations": [keys] }, the keys that the server recorded as set by us (managedFields of our
 * field manager). So a key that we no longer want can be removed without touching those of others.
 * "orbweaver" has "specWriter": { "manager", "time" } while another field manager owns a part of
 * the spec that we decide.
 */
void project_written(json_t *object);

/*
 * Objects that users of a namespace write: no more than is read (reconcilers/core/limits.h), of
 * annotations too. NetworkAttachmentDefinitions, whose configuration is read here, once for each
 * version (reconcilers/ipam/foresight.h); SpiderMultusConfigs; SriovNetworks, SriovIBNetworks and
 * OVSNetworks; SpiderEndpoints, with the items of as many NICs as a pod can have: of more, their
 * number stands in the place of the list.
 */
void project_definition(json_t *object);
void project_config(json_t *object);
void project_network(json_t *object);
void project_endpoint(json_t *object);

/*
 * Namespaces, and others of which only the presence counts: metadata only, and of its annotations
 * those that are read of namespaces.
 */
void project_namespace(json_t *object);

/* SriovOperatorConfigs: metadata, and spec.disableDrain. */
void project_operator_config(json_t *object);

/* Deployments and DaemonSets: metadata, and how many pods they have, as status.replicas. */
void project_workload(json_t *object);
