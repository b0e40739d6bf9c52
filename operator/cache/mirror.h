// SPDX-License-Identifier: Apache-2.0
/* The part of the cluster that the operator looks at: one informer and one cache per kind. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/kube/api.h"
#include "lib/kube/cache.h"
#include "lib/kube/informer.h"
#include "operator/cache/kinds.h"

struct mirror;

struct mirror_config {
	const char *ns;            /* of the NodeStates; borrowed, as all here */
	const char *config_ns;     /* of the ConfigMap spiderpool-conf */
	const char *cilium_config; /* "namespace/name" of Cilium's; NULL: as in operator_kinds */
	struct metrics *metrics;
	/* An object changed in the cache: old and now as of cache_changed_fn. Borrowed. */
	void (*changed)(void *arg, const char *kind, const char *key, const json_t *old,
			const json_t *now);
	/* A kind became complete, or is in trouble (err; NULL: no more). */
	void (*synced)(void *arg, const char *kind);
	void (*trouble)(void *arg, const char *kind, const struct err *err);
	void *arg;
};

/*
 * Starts listing and watching at once. Without a client (NULL, the loop as well) it shows what
 * mirror_show puts into it, and everything counts as listed.
 */
struct mirror *mirror_new(struct loop *loop, struct kube_client *client,
			  const struct mirror_config *config);
void mirror_free(struct mirror *mirror);

/*
 * Of a mirror without a client: the object, as the API server has it, is shown by all kinds that
 * show objects like it and are wanted, each trimmed as if it had come from there. Borrowed, and not
 * changed.
 */
void mirror_show(struct mirror *mirror, const struct kube_resource *resource, const json_t *object);

/*
 * Watch a kind that is watched on demand from now on, or no more: then its cache is emptied in the
 * next turn of the loop, with `changed` for each object. Such a kind is not wanted at first.
 */
void mirror_want(struct mirror *mirror, const char *kind, bool wanted);

/*
 * The kind is mirrored and was listed completely once, or is one that the cluster need not have and
 * has not, or one that nobody wants.
 */
bool mirror_is_synced(const struct mirror *mirror, const char *kind);

/*
 * What is decided from all objects of the kind may be decided: none of them is there without
 * anything known of it. An object that cannot be read must not pass for deleted. For kinds of which
 * worlds hold single objects it is always true; there the object itself counts, cache_is_unknown.
 */
bool mirror_is_whole(const struct mirror *mirror, const char *kind);

/* How listing and watching the kind goes; all 0 while nobody wants it. */
struct informer_health mirror_health(const struct mirror *mirror, const char *kind);

/* NULL when the kind is not mirrored. */
struct cache *mirror_cache(const struct mirror *mirror, const char *kind);
const struct kube_resource *mirror_resource(const struct mirror *mirror, const char *kind);

/* The answer to a write of ours; as informer_learn. */
void mirror_learn(struct mirror *mirror, const char *kind, json_t *object);

/*
 * Worlds for reconcilers: add objects of a kind to { kind: { key: object } }. Absent objects add
 * nothing, and those that are there already stay.
 */
void mirror_add(const struct mirror *mirror, json_t *world, const char *kind, const char *key);
void mirror_add_all(const struct mirror *mirror, json_t *world, const char *kind);
/* At most `max` of those under this value. */
void mirror_add_some(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
		     const char *value, size_t max);
void mirror_add_indexed(const struct mirror *mirror, json_t *world, const char *kind, size_t index,
			const char *value);
