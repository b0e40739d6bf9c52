/*
 * Which extended resources does the cluster offer? A count per name, so that one node's change
 * costs what that node has.
 *
 * The operator's cache keeps it up to date; it tells the configs that ask for a resource when the
 * first node offers it and when the last one ceases to.
 */
#ifndef ORBWEAVER_RECONCILERS_SRIOV_NODE_RESOURCES_H
#define ORBWEAVER_RECONCILERS_SRIOV_NODE_RESOURCES_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/own.h"

struct node_resources;

struct node_resources *node_resources_new(void);
void node_resources_free(struct node_resources *resources);
OWN_DEFINE(struct node_resources, node_resources_free)
#define auto_node_resources auto_call(node_resources_free_p)

/*
 * For the projection of nodes: names of the extended resources in status.allocatable with a
 * quantity other than 0, as { name: true }; NULL when there are none. Extended ones have a domain
 * that is not kubernetes.io (Kubernetes API reference, "Extended resources"). Quantities are left
 * out: they change with the health of each VF. Returns new.
 */
json_t *node_resources_of(const json_t *allocatable);

/*
 * The node was `old` and is `now` (either may be NULL), with status.allocatable as above.
 * changed(arg, name) is called for each resource that appears in the cluster or leaves it.
 */
void node_resources_update(struct node_resources *resources, const json_t *old, const json_t *now,
			   void (*changed)(void *arg, const char *name), void *arg);

bool node_resources_have(const struct node_resources *resources, const char *name);

#endif
