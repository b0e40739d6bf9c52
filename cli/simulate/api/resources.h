// SPDX-License-Identifier: Apache-2.0
/*
 * The resources that are served: a table of built-in ones, and those that CustomResourceDefinitions
 * add and remove while the server runs.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/simulate/api/path.h"
#include "cli/simulate/api/store.h"
#include "cli/simulate/objects/schema.h"
#include "lib/base/err.h"

enum resource_flags {
	RESOURCE_NAMESPACED = 1,
	RESOURCE_STATUS = 2,     /* has the subresource status */
	RESOURCE_SCALE = 4,      /* has the subresource scale */
	RESOURCE_GENERATION = 8, /* metadata.generation counts changes beside metadata and status */
	RESOURCE_REVIEW = 16,    /* is only created, answered and not stored */
	RESOURCE_CUSTOM = 32,
	RESOURCE_FREE_NAMES = 64, /* names need not be DNS subdomains: those of RBAC */
};

/* One resource of one version. */
struct resource {
	const char *group; /* "" for core */
	const char *version;
	const char *plural;
	const char *singular;
	const char *kind;
	const char *short_names; /* "po", "cm,configs"; "" */
	const char *categories;  /* "all"; "" */
	unsigned int flags;
	/* The others in pairs of group and version are stored as what this one is. */
	struct collection *collection; /* NULL: RESOURCE_REVIEW */
	struct schema *schema;
	/* Of a custom resource, borrowed from `definition`: NULL where the CRD has none. */
	const json_t *columns, *selectable, *scale;
	const char *stored_version; /* of the objects in the collection */
	json_t *definition;         /* the CRD */
};

struct resources {
	struct resource **list; /* in the order of groups' first appearance, then as they came */
	size_t len;
	struct store *store;
	/* Called before resources of a collection change or it is freed: watches of it end. */
	void (*leaving)(void *arg, struct collection *collection);
	void *arg;
};

/* With the built-in ones. store is borrowed. */
void resources_init(struct resources *resources, struct store *store,
		    void (*leaving)(void *arg, struct collection *collection), void *arg);
void resources_done(struct resources *resources);

/* NULL: not served. */
struct resource *resources_find(const struct resources *resources, const char *group,
				const char *version, const char *plural);
/* The one that a path leads to. */
struct resource *resources_of_path(const struct resources *resources, const struct api_path *path);
struct resource *resources_find_kind(const struct resources *resources, const char *group,
				     const char *kind);

/* "v1", "apps/v1". Returns new; free(). */
char *resource_api_version(const struct resource *resource);
/* "pods", "leases.coordination.k8s.io". Returns new; free(). */
char *resource_long_name(const struct resource *resource);

/*
 * Serve what a CustomResourceDefinition says, new or in place of what its last version said;
 * objects stay. Returns 0, or -1 with ERR_INVALID, and nothing has changed then:
 *
 *   "Invalid"  a schema or a column that is not one, no served version, a scope that is neither
 *              Namespaced nor Cluster, names that another definition or a built-in resource has
 */
int resources_define(struct resources *resources, const json_t *definition, struct err *err);
/* Serve it no more; its objects are gone. */
void resources_undefine(struct resources *resources, const json_t *definition);
