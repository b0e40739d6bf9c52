// SPDX-License-Identifier: Apache-2.0
/*
 * A hash map from strings to pointers: open addressing, keys copied, no iteration order promised.
 * The hash is seeded per process, so keys may come from the network.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	char *key; /* NULL: never used; map's tombstone: removed */
	void *value;
	uint64_t hash;
};

/* `struct map m = {0};` is an empty map without a value destructor. */
struct map {
	struct map_slot *slots;
	size_t cap;                      /* power of two, or 0 */
	size_t len;                      /* live entries */
	size_t used;                     /* live entries and tombstones */
	void (*free_value)(void *value); /* may be NULL: values are borrowed */
};

/* The value, or NULL when absent. */
void *map_get(const struct map *m, const char *key);
/* Insert or replace; a replaced value goes through free_value. `value` must not be NULL. */
void map_set(struct map *m, const char *key, void *value);
/*
 * Remove; true when it was there. The value goes through free_value. `key` may be the one that
 * map_next returned, but is gone afterwards.
 */
bool map_del(struct map *m, const char *key);
/* Remove without destroying: the value, now the caller's, or NULL when absent. */
void *map_take(struct map *m, const char *key);
/* Destroy all entries; the map is empty and usable afterwards, free_value stays. */
void map_done(struct map *m);

/*
 * Visit all entries: `size_t i = 0; while (map_next(&m, &i, &key, &value)) …`. The entry just
 * visited may be removed; nothing else may change during the visit.
 */
bool map_next(const struct map *m, size_t *iter, const char **ret_key, void **ret_value);

/* The hash function, here to be checked against other implementations of SipHash-1-3. */
uint64_t map_siphash13(const uint64_t seed[2], const void *data, size_t len);
