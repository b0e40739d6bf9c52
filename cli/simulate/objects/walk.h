/*
 * Shared by the two halves of fields.h: fields.c (sets) and walk.c (values).
 */
#ifndef ORBWEAVER_CLI_SIMULATE_OBJECTS_WALK_H
#define ORBWEAVER_CLI_SIMULATE_OBJECTS_WALK_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/simulate/objects/schema.h"

/* Put the path itself into its set; is it in? */
void fields_mark(json_t *set);
bool fields_has(const json_t *set);
/* Put the set of a path below, unless it is empty; takes it. */
void fields_put(json_t *set, const char *element, json_t *below);

/* The node that a path element leads to, or NULL. */
const json_t *walk_below(const json_t *node, const char *element);
/* Is the member a field of a struct, and not an entry of a map? */
bool walk_names(const struct schema *schema, const json_t *node, const char *key);

#endif
