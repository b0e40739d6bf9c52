// SPDX-License-Identifier: Apache-2.0
/*
 * What the API server holds: collections of objects, each with a bounded history of its changes.
 * In memory only; pure but for nothing: versions count up from 1.
 *
 * An object is kept as the JSON text that clients get. The text is encoded once for each version,
 * and shared by the object, its event in the history, and responses. What selectors and
 * garbage collection look at is kept beside it as a small JSON value, the outline.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events that a collection remembers, and the bytes of their texts. Older ones are Expired. */
enum {
	STORE_EVENTS_MAX = 8192,
	STORE_EVENT_BYTES_MAX = 16 * 1024 * 1024,
};

/* Immutable text with a count of references. */
struct blob {
	size_t refs;
	size_t len;
	char text[];
};

struct blob *blob_new(const char *text, size_t len);
struct blob *blob_ref(struct blob *blob);
void blob_unref(struct blob *blob);

struct store_entry {
	char *key; /* "NAMESPACE/NAME", or "NAME" */
	uint64_t version;
	struct blob *text;
	/* Of metadata: name, namespace, labels, ownerReferences, uid; and the fields. */
	json_t *outline;
};

enum store_event_type {
	STORE_ADDED,
	STORE_MODIFIED,
	STORE_DELETED,
};

struct store_event {
	enum store_event_type type;
	uint64_t version;
	struct blob *text; /* of a deleted object: its last state, with the deletion's version */
	json_t *outline;
	json_t *before; /* the outline that was there before; NULL when ADDED */
};

struct store;

struct collection {
	struct store *store;
	char *name;                   /* "" and group: "pods", "leases.coordination.k8s.io" */
	char **fields;                /* dotted paths that are kept in outlines; ends with NULL */
	struct store_entry **entries; /* in the order of their keys */
	size_t len, cap;
	/* The history: events first..next-1, at events[n % STORE_EVENTS_MAX]. */
	struct store_event *events;
	uint64_t first, next;
	size_t event_bytes;
	uint64_t forgotten; /* watches from versions below this one are Expired */
};

/* changed: NULL, or called after each change of a collection. */
struct store *store_new(void (*changed)(void *arg, struct collection *collection), void *arg);
/* Collections go with it. */
void store_free(struct store *store);
/* Of the last change; 1 before the first. */
uint64_t store_version(const struct store *store);

/*
 * Return a new collection. fields: paths of what can be selected, besides metadata
 * ("spec.nodeName"); ends with NULL; copied. NULL: none.
 */
struct collection *collection_new(struct store *store, const char *name, const char *const *fields);
/* Forget objects and history. */
void collection_free(struct collection *collection);

/* Borrowed until the next change; NULL when there is none. */
const struct store_entry *collection_get(const struct collection *collection, const char *key);
/* The object as a JSON value, new; NULL when there is none. */
json_t *collection_object(const struct collection *collection, const char *key);
/* The place of the first entry whose key is greater than `key`, "" for the first of all. */
size_t collection_after(const struct collection *collection, const char *key);

/*
 * Store an object under its key, new or in place of what is there: sets metadata.resourceVersion in
 * it. The object must not change afterwards. Returns the entry, borrowed until the next change.
 */
const struct store_entry *collection_put(struct collection *collection, json_t *object);
/* Remove the object of this key. last: its last state, changed and kept as by collection_put. */
void collection_remove(struct collection *collection, json_t *last);

/*
 * The number of the first event after `version`: from there on events[] goes on. False when some
 * may have been forgotten, or the version has not been reached yet.
 */
bool collection_events_after(const struct collection *collection, uint64_t version,
			     uint64_t *ret_number);
/* The event of this number, borrowed until the next change; NULL: it is forgotten. */
const struct store_event *collection_event(const struct collection *collection, uint64_t number);
