// SPDX-License-Identifier: Apache-2.0
/*
 * How the values of a schema's node hang together: members, items, and by what two of them merge.
 * Nodes are JSON as in schema_json; NULL is a node of which nothing is known.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Keys of nodes. */
#define SHAPE_PRESERVE "x-kubernetes-preserve-unknown-fields"
#define SHAPE_EMBEDDED "x-kubernetes-embedded-resource"
#define SHAPE_LIST     "x-kubernetes-list-type"
#define SHAPE_KEYS     "x-kubernetes-list-map-keys"
#define SHAPE_MAP      "x-kubernetes-map-type"
#define SHAPE_INT_STR  "x-kubernetes-int-or-string"
#define SHAPE_STRATEGY "x-kubernetes-patch-strategy"
#define SHAPE_MERGE    "x-kubernetes-patch-merge-key"

/* The node of a member: of properties, else of additionalProperties; NULL when unknown. */
const json_t *shape_member(const json_t *node, const char *key);
/* Is the member named in properties? Otherwise it is an entry of a map. */
bool shape_names(const json_t *node, const char *key);
const json_t *shape_items(const json_t *node);

bool shape_is_set(const json_t *node);
/* Keys of a list of type map, an array of strings; NULL for other lists. */
const json_t *shape_keys(const json_t *node);
bool shape_is_atomic_map(const json_t *node);

/*
 * The keys of an item: an object of its members named in `keys`, with their defaults in the items'
 * node where they are absent. Returns new; NULL when the item is not an object or a key is missing.
 */
json_t *shape_item_keys(const json_t *node, const json_t *item);

/* The member `key` of the node is true. */
bool shape_flag(const json_t *node, const char *key);

/* A node of ObjectMeta, and of a built-in kind with all that the table knows. Return new. */
json_t *shape_metadata(void);
json_t *shape_builtin(const char *group, const char *kind);
