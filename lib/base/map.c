// SPDX-License-Identifier: Apache-2.0
/*
 * A hash map from strings to pointers: linear probing in a table that is at most three quarters
 * full.
 *
 * Keys are object names, so people who may create objects choose them. SipHash-1-3 with a key drawn
 * at the start of the process keeps them from choosing names that all collide; a seeded FNV would
 * not, as the low bits of its result depend on nothing but the low bits of its state, and those are
 * soon searched through. Reference: Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012;
 * the 1-3 variant is what Rust and Python use for their tables.
 */
#include "lib/base/map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/random.h"

#define CAP_MIN 16

/* A removed entry's key: probing goes on behind it. */
static char tombstone[1];

static inline uint64_t rotl(uint64_t x, int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

uint64_t map_siphash13(const uint64_t seed[2], const void *data, size_t len)
{
	uint64_t v[4] = {
		seed[0] ^ 0x736f6d6570736575,
		seed[1] ^ 0x646f72616e646f6d,
		seed[0] ^ 0x6c7967656e657261,
		seed[1] ^ 0x7465646279746573,
	};
	const unsigned char *p = data;
	uint64_t last = (uint64_t)len << 56;
	size_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		uint64_t word = 0;

		for (int byte = 7; byte >= 0; byte--)
			word = word << 8 | p[i + (size_t)byte];
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	for (int shift = 0; i < len; i++, shift += 8)
		last |= (uint64_t)p[i] << shift;
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;

	v[2] ^= 0xff;
	for (int round = 0; round < 3; round++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t hash_of(const char *key)
{
	static uint64_t seed[2];
	static bool seeded;

	if (!seeded) {
		random_bytes(seed, sizeof(seed));
		seeded = true;
	}
	return map_siphash13(seed, key, strlen(key));
}

static bool is_live(const struct map_slot *slot)
{
	return slot->key && slot->key != tombstone;
}

static struct map_slot *find_slot(const struct map *m, const char *key, uint64_t hash)
{
	if (m->len == 0)
		return NULL;

	for (size_t i = hash & (m->cap - 1);; i = (i + 1) & (m->cap - 1)) {
		struct map_slot *slot = &m->slots[i];

		if (!slot->key)
			return NULL;
		if (slot->hash == hash && is_live(slot) && strcmp(slot->key, key) == 0)
			return slot;
	}
}

/* The table has room and the key is not in it. */
static void place(struct map *m, struct map_slot entry)
{
	size_t i = entry.hash & (m->cap - 1);

	while (m->slots[i].key)
		i = (i + 1) & (m->cap - 1);
	m->slots[i] = entry;
	m->used++;
}

/* A new table for the live entries and as many again: grows, shrinks, or just drops tombstones. */
static void rehash(struct map *m)
{
	struct map_slot *old = m->slots;
	size_t old_cap = m->cap;

	m->cap = CAP_MIN;
	while (m->cap < m->len * 2 + 2)
		m->cap *= 2;
	m->slots = mem_calloc(m->cap, sizeof(*m->slots));
	m->used = 0;

	for (size_t i = 0; i < old_cap; i++)
		if (is_live(&old[i]))
			place(m, old[i]);
	free(old);
}

void *map_get(const struct map *m, const char *key)
{
	const struct map_slot *slot = find_slot(m, key, hash_of(key));

	assert(m && key);
	return slot ? slot->value : NULL;
}

void map_set(struct map *m, const char *key, void *value)
{
	uint64_t hash = hash_of(key);
	struct map_slot *slot = find_slot(m, key, hash);

	assert(value);
	if (slot) {
		void *old = slot->value;

		slot->value = value;
		if (m->free_value && old != value)
			m->free_value(old);
		return;
	}

	if ((m->used + 1) * 4 > m->cap * 3)
		rehash(m);
	place(m, (struct map_slot){
			 .key = mem_dup(key, strlen(key) + 1),
			 .value = value,
			 .hash = hash,
		 });
	m->len++;
}

void *map_take(struct map *m, const char *key)
{
	struct map_slot *slot = find_slot(m, key, hash_of(key));

	assert(m && key);
	if (!slot)
		return NULL;
	free(slot->key);
	slot->key = tombstone;
	m->len--;
	return slot->value;
}

bool map_del(struct map *m, const char *key)
{
	void *value = map_take(m, key);

	if (!value)
		return false;
	if (m->free_value)
		m->free_value(value);
	return true;
}

void map_done(struct map *m)
{
	struct map old = *m;

	assert(m);
	/* Empty before the destructors run: one of them may look at the map. */
	*m = (struct map){.free_value = old.free_value};
	for (size_t i = 0; i < old.cap; i++) {
		if (!is_live(&old.slots[i]))
			continue;
		free(old.slots[i].key);
		if (old.free_value)
			old.free_value(old.slots[i].value);
	}
	free(old.slots);
}

bool map_next(const struct map *m, size_t *iter, const char **ret_key, void **ret_value)
{
	assert(m && iter);
	for (; *iter < m->cap; (*iter)++) {
		const struct map_slot *slot = &m->slots[*iter];

		if (!is_live(slot))
			continue;
		(*iter)++;
		*ret_key = slot->key;
		*ret_value = slot->value;
		return true;
	}
	return false;
}
