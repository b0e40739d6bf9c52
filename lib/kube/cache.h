// SPDX-License-Identifier: Apache-2.0
/*
 * A mirror of one kind's objects: what the watch sent, trimmed on arrival, with indexes.
 *
 * Objects are stored as compact JSON text, a third of what they take as values, and parsed when
 * read; a few stay parsed, since an object is often read again soon. Kinds that every decision
 * reads (few objects) are kept as values instead. Versions only go forward: a late event of an
 * older resourceVersion changes nothing.
 *
 * An object that is there and cannot be read is remembered as that, by its key. What was known of
 * it before stays, with its older version, so a write that was decided on it is refused by the
 * server. Nothing known: cache_get and cache_has say no, cache_is_unknown says yes, and who would
 * act on a deletion asks that first.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/str.h"

/*
 * An index: values under which an object can be found. `list` appends each value with
 * cache_index_value(). The object is borrowed.
 */
struct cache_values;
typedef void cache_index_fn(const json_t *object, struct cache_values *values);
void cache_index_value(struct cache_values *values, const char *value);

enum { CACHE_MAX_INDEXES = 5 };

struct cache_kind {
	bool live; /* keep values, not text */
	/*
	 * Keep only the objects for which this is true, asked before they are trimmed; one that
	 * was kept and is refused now counts as deleted. For kinds of which few objects matter and
	 * no selector of the server can choose them. NULL keeps all.
	 */
	bool (*wanted)(const json_t *object);
	/*
	 * Remove what no reconciler reads; in place. NULL keeps all. metadata.managedFields is
	 * always removed afterwards.
	 */
	void (*project)(json_t *object);
	cache_index_fn *indexes[CACHE_MAX_INDEXES]; /* up to the first NULL */
};

/*
 * old and now are borrowed: what was known of the object before, and what is known of it now. One
 * of them is NULL for an object that appears or goes. Both are NULL for one that goes and was
 * unknown (cache_is_unknown) to its end: it never appeared, but the key may have been waited for.
 * Not called when only the version changed. Comes in the middle of receiving: it may add to queues
 * and start calls, not change this cache or free what feeds it.
 */
typedef void cache_changed_fn(void *arg, const char *key, const json_t *old, const json_t *now);

struct cache;

/* kind is borrowed. changed may be NULL. */
struct cache *cache_new(const struct cache_kind *kind, cache_changed_fn *changed, void *arg);
void cache_free(struct cache *cache);

/*
 * Store an object; takes it (and changes it: projection). False when it is older than, or as old
 * as, what is there, or is not wanted. cache_put is for objects of a list or watch. cache_learn is
 * for objects from elsewhere, such as the answer to a write: it does not count as seen in the
 * present list.
 */
bool cache_put(struct cache *cache, json_t *object);
bool cache_learn(struct cache *cache, json_t *object);

/*
 * Most events are about nothing that is kept: a node's heartbeat, a pod that is ready. The text of
 * such an object, trimmed while it arrived, is the one of before but for the version, and need not
 * be read.
 *
 * The fingerprint of a text whose version stands at version_at; it is not 0, and a client that
 * writes objects cannot produce the same one twice.
 */
uint64_t cache_fingerprint(const char *text, size_t len, size_t version_at, size_t version_len);
/* As cache_put; what it is made of has this fingerprint. */
bool cache_put_text(struct cache *cache, json_t *object, uint64_t fingerprint);
/* Is what is there, in a version no newer than this one, made of a text with this fingerprint? */
bool cache_knows(const struct cache *cache, const char *key, uint64_t version,
		 uint64_t fingerprint);
/*
 * It has another version now (digits), and nothing else: as cache_put of that. Only when
 * cache_knows says yes.
 */
void cache_renew(struct cache *cache, const char *key, const char *version);

/* Remove, unless what is there is newer than `version`. False when nothing was removed. */
bool cache_remove(struct cache *cache, const char *key, uint64_t version);

/* Returns a reference, or NULL. Others may hold one: never changed. */
json_t *cache_get(const struct cache *cache, const char *key);
bool cache_has(const struct cache *cache, const char *key);
/* resourceVersion of what is there; 0 when there is nothing. */
uint64_t cache_version(const struct cache *cache, const char *key);
/* metadata.uid of what is there; NULL when there is nothing. Borrowed until the next change. */
const char *cache_uid(const struct cache *cache, const char *key);

/*
 * An object of a list or watch exists at this version and cannot be read, until a newer version
 * can, or it is removed. True when the key was not unreadable before. False, too, when what is
 * there is newer.
 */
bool cache_put_unreadable(struct cache *cache, const char *key, uint64_t version);

/* It exists, and its newest version cannot be read. */
bool cache_is_unreadable(const struct cache *cache, const char *key);
/* It is unreadable, and no older version is there. */
bool cache_is_unknown(const struct cache *cache, const char *key);
size_t cache_unreadable_len(const struct cache *cache);
size_t cache_unknown_len(const struct cache *cache);
/* The keys of unreadable objects, as cache_next. */
const char *cache_next_unreadable(const struct cache *cache, size_t *iter);

/* Without those of which nothing is known. */
size_t cache_len(const struct cache *cache);

/*
 * All keys, in no order: `size_t i = 0; const char *key; while ((key = cache_next(cache, &i))) …`.
 * The cache must not change.
 */
const char *cache_next(const struct cache *cache, size_t *iter);

/*
 * All objects as { key: object }. Kept and shared for live kinds (do not change it), made for
 * others. Returns new.
 */
json_t *cache_all(const struct cache *cache);

/*
 * Call fn for each key whose object has this value in that index. The cache must not change
 * meanwhile.
 */
void cache_find(const struct cache *cache, size_t index, const char *value,
		void (*fn)(void *arg, const char *key), void *arg);
/* The same for at most `max` of them, where users choose how many there are. */
void cache_find_some(const struct cache *cache, size_t index, const char *value, size_t max,
		     void (*fn)(void *arg, const char *key), void *arg);

/*
 * A new list begins / ended: objects that were not put between the two calls, and are not newer
 * than the list's version, are gone.
 */
void cache_list_begin(struct cache *cache);
void cache_list_end(struct cache *cache, uint64_t version);

/*
 * The server's history began again (restored from a backup): versions from before mean nothing now.
 * The next object of each key is taken whatever its version, and the end of the next list removes
 * the others.
 */
void cache_forget_versions(struct cache *cache);
