// SPDX-License-Identifier: Apache-2.0
/*
 * What do the cluster's nodes have, by name: extended resources, network interfaces? A count per
 * name, so that one node's change costs what that node has.
 *
 * The operator's cache keeps it up to date; it wakes the configs that use a name when the first
 * node has it and when the last one ceases to.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/own.h"

struct node_names;

struct node_names *node_names_new(void);
void node_names_free(struct node_names *names);
OWN_DEFINE(struct node_names, node_names_free)
#define auto_node_names auto_call(node_names_free_p)

/*
 * For the projection of nodes: names of the extended resources in status.allocatable with a
 * quantity other than 0, as { name: true }; NULL when there are none. Extended ones have a domain
 * that is not kubernetes.io (Kubernetes API reference, "Extended resources"). Quantities are left
 * out: they change with the health of each VF. Returns new.
 */
json_t *node_resources_of(const json_t *allocatable);

/*
 * What the API server says that pods can have of a resource on the node, whole devices; 0 when it
 * names none, -1 when the node or its status is not known, or the number cannot be read.
 */
int64_t node_allocatable(const json_t *node, const char *resource);

/*
 * Names of a SriovNetworkNodeState's status.links, as { name: true }, and NODE_LINKS_REPORTED;
 * NODE_LINKS_UNKNOWN alone when the node does not report them; NULL for NULL. Returns new. No
 * interface has a slash in its name (net/core/dev.c, dev_valid_name()).
 */
json_t *node_links_of(const json_t *state);
#define NODE_LINKS_REPORTED "/reported"
#define NODE_LINKS_UNKNOWN  "/unknown"

/*
 * What sort of link a SriovNetworkNodeState's NICs are, as { "WHAT/TYPE": true }: WHAT is a NIC's
 * name, also one of its others, or "RESOURCE/" of a group of its VFs; TYPE is "ETH" or "IB". NULL
 * for NULL. Returns new.
 */
json_t *node_link_types_of(const json_t *state);

/* "ETH" or "IB" where all nodes that have WHAT agree; NULL: they do not, or none has it. */
const char *node_names_link_type(const struct node_names *names, const char *what);

/*
 * A node had the names `old` and has `now`, as above (either may be NULL). changed(arg, name) is
 * called for each name that appears in the cluster or leaves it.
 */
void node_names_update(struct node_names *names, const json_t *old, const json_t *now,
		       void (*changed)(void *arg, const char *name), void *arg);

bool node_names_have(const struct node_names *names, const char *name);
