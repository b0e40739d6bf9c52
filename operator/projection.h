/*
 * Trim at the door: what is kept of each kind in the caches, and which part of an object's metadata is ours.
 *
 * Reconcilers read nothing else; memory is a promise (design.md, section 5). The largest parts (managedFields, VF lists,
 * image lists) are left out already while the bytes arrive (lib/kube/splitter.h), these functions do the rest.
 */
#ifndef ORBWEAVER_OPERATOR_PROJECTION_H
#define ORBWEAVER_OPERATOR_PROJECTION_H

#include <jansson.h>

/* All kinds but those below: metadata without what the server keeps for itself. */
void project_object(json_t *object);

/*
 * Nodes: name, labels, taints, of the conditions only Ready's status, the names of the extended resources in status.allocatable
 * (node_resources_of). Their heartbeats then change nothing.
 */
void project_node(json_t *object);

/*
 * Objects that we write: like project_object, and metadata gets "orbweaver" = { "labels": [keys], "annotations": [keys] }, the
 * keys that the server recorded as set by us (managedFields of our field manager). So a key that we no longer want can
 * be removed without touching those of others.
 */
void project_written(json_t *object);

/* Namespaces: metadata only. */
void project_namespace(json_t *object);

#endif
