// SPDX-License-Identifier: Apache-2.0
/*
 * One map from keys to entries; one map per index from values to the places in entries that have
 * the value.
 *
 * Indexes hold no keys of their own: an entry has an array of places, one for each of its values,
 * and the places with the same value are a linked list. An owner of one object costs 200 bytes, and
 * leaving a crowd costs no more than leaving alone.
 */
#include "lib/kube/cache.h"

#include <assert.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/random.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/identity.h"

/* All entries with one value in one index. */
struct crowd {
	LIST_HEAD(, place) places;
	size_t index;
	char value[];
};

struct place {
	LIST_ENTRY(place) link;
	struct crowd *crowd;
	struct entry *entry;
};

struct entry {
	uint64_t version;
	uint64_t fingerprint; /* of the text that it was read from; 0: not known */
	uint32_t list;        /* the list in which it was last seen */
	uint32_t n_places;
	struct place *places; /* what it is found under */
	char *uid;
	char *text;     /* NULL for live kinds */
	json_t *object; /* live kinds: shared with cache->all; others: while it is warm */
	char key[];
};

/*
 * The newest version of an object, which cannot be read. There may be an entry with an older one.
 */
struct unreadable {
	uint64_t version;
	uint32_t list;
};

/* What the index functions of one object say. */
struct cache_values {
	struct cache_value {
		size_t index;
		char *value;
	} * items;
	size_t len, cap;
	size_t index; /* which of them is speaking */
};

/*
 * Of kinds kept as text: the entries whose values were asked for last. A decision asks for the same
 * object several times, from the event to the answer of the last write.
 */
enum {
	WARM_MAX = 32,
	WARM_TEXT_MAX = 4096, /* a larger one is worth its memory less */
};

struct warm {
	struct entry *entries[WARM_MAX];
	size_t next; /* the oldest, or a free place */
};

struct cache {
	const struct cache_kind *kind;
	cache_changed_fn *changed;
	void *arg;
	struct map entries;
	struct map unreadable; /* key → struct unreadable */
	struct map index[CACHE_MAX_INDEXES];
	json_t *all;       /* live kinds: { key: object } */
	struct warm *warm; /* other kinds */
	uint32_t list;
};

static void entry_free(void *ptr)
{
	struct entry *entry = ptr;

	mem_free(entry->places);
	mem_free(entry->uid);
	mem_free(entry->text);
	json_decref(entry->object);
	mem_free(entry);
}

struct cache *cache_new(const struct cache_kind *kind, cache_changed_fn *changed, void *arg)
{
	struct cache *cache = mem_new(struct cache);

	assert(kind);
	cache->kind = kind;
	cache->changed = changed;
	cache->arg = arg;
	cache->entries.free_value = entry_free;
	cache->unreadable.free_value = mem_free;
	for (size_t i = 0; i < CACHE_MAX_INDEXES; i++)
		cache->index[i].free_value = mem_free;
	if (kind->live)
		cache->all = json_object();
	else
		cache->warm = mem_new(struct warm);
	return cache;
}

void cache_free(struct cache *cache)
{
	if (!cache)
		return;
	map_done(&cache->entries);
	map_done(&cache->unreadable);
	for (size_t i = 0; i < CACHE_MAX_INDEXES; i++)
		map_done(&cache->index[i]);
	json_decref(cache->all);
	mem_free(cache->warm);
	mem_free(cache);
}

/* ---- indexes --------------------------------------------------------------------------------- */

void cache_index_value(struct cache_values *values, const char *value)
{
	assert(value && values->index < CACHE_MAX_INDEXES);
	for (size_t i = 0; i < values->len; i++)
		if (values->items[i].index == values->index &&
		    str_eq(values->items[i].value, value))
			return;
	if (values->len == values->cap) {
		values->cap = values->cap ? values->cap * 2 : 4;
		values->items = mem_realloc(values->items, values->cap * sizeof(*values->items));
	}
	values->items[values->len++] = (struct cache_value){values->index, str_dup(value)};
}

static struct cache_values values_of(const struct cache *cache, const json_t *object)
{
	struct cache_values values = {0};

	for (; values.index < CACHE_MAX_INDEXES && cache->kind->indexes[values.index];
	     values.index++)
		cache->kind->indexes[values.index](object, &values);
	return values;
}

static struct crowd *crowd_of(struct cache *cache, size_t index, const char *value)
{
	struct crowd *crowd = map_get(&cache->index[index], value);

	assert(index < CACHE_MAX_INDEXES);
	if (crowd)
		return crowd;
	crowd = mem_zalloc(sizeof(*crowd) + strlen(value) + 1);
	memcpy(crowd->value, value, strlen(value) + 1);
	crowd->index = index;
	map_set(&cache->index[index], value, crowd);
	return crowd;
}

static void leave_places(struct cache *cache, struct entry *entry)
{
	for (uint32_t i = 0; i < entry->n_places; i++) {
		struct crowd *crowd = entry->places[i].crowd;

		LIST_REMOVE(&entry->places[i], link);
		if (LIST_EMPTY(&crowd->places))
			map_del(&cache->index[crowd->index], crowd->value);
	}
	mem_free(take_ptr(entry->places));
	entry->n_places = 0;
}

void cache_find_some(const struct cache *cache, size_t index, const char *value, size_t max,
		     void (*fn)(void *arg, const char *key), void *arg)
{
	const struct crowd *crowd = map_get(&cache->index[index], value);
	const struct place *place = crowd ? LIST_FIRST(&crowd->places) : NULL;

	assert(index < CACHE_MAX_INDEXES && fn);
	for (; place && max > 0; place = LIST_NEXT(place, link), max--)
		fn(arg, place->entry->key);
}

void cache_find(const struct cache *cache, size_t index, const char *value,
		void (*fn)(void *arg, const char *key), void *arg)
{
	cache_find_some(cache, index, value, SIZE_MAX, fn, arg);
}

/* ---- objects --------------------------------------------------------------------------------- */

/*
 * Values are lent to many readers, none of which may change them. With sanitizers one that did ends
 * the test here.
 */
static void check_unchanged(const struct entry *entry)
{
#ifdef __SANITIZE_ADDRESS__
	auto_strbuf struct strbuf text = {0};

	json_write(entry->object, &text);
	assert(str_eq(text.data, entry->text));
#endif
}

/* Give the value up; the text stays. */
static void cool_entry(struct warm *warm, struct entry *entry)
{
	if (!entry->object)
		return;
	check_unchanged(entry);
	json_decref(take_ptr(entry->object));
	for (size_t i = 0; i < WARM_MAX; i++)
		if (warm->entries[i] == entry)
			warm->entries[i] = NULL;
}

/* The value is what the text says. */
static void keep_warm(struct warm *warm, struct entry *entry, json_t *object)
{
	struct entry *oldest = warm->entries[warm->next];

	assert(!entry->object && warm->next < WARM_MAX);
	if (strlen(entry->text) > WARM_TEXT_MAX)
		return;
	if (oldest)
		cool_entry(warm, oldest);
	warm->entries[warm->next] = entry;
	warm->next = (warm->next + 1) % WARM_MAX;
	entry->object = json_incref(object);
}

/* Returns new. */
static json_t *entry_parse(const struct entry *entry)
{
	if (entry->object)
		return json_incref(entry->object);
	return json_parse(entry->text, strlen(entry->text), NULL);
}

/* The same, and it will be asked for again soon. */
static json_t *entry_object(const struct cache *cache, struct entry *entry)
{
	json_t *object = entry_parse(entry);

	if (!entry->object)
		keep_warm(cache->warm, entry, object);
	return object;
}

/* As json_merge_same, of all members but one. */
static bool same_but(const json_t *a, const json_t *b, const char *member)
{
	const char *name = NULL;
	json_t *value = NULL;

	json_each (a, name, value)
		if (!str_eq(name, member) && !json_merge_same(value, json_object_get(b, name)))
			return false;
	json_each (b, name, value)
		if (!str_eq(name, member) && !json_object_get(a, name) && !json_is_null(value))
			return false;
	return true;
}

/* Equal but for the version. */
static bool same_content(const json_t *a, const json_t *b)
{
	return same_but(a, b, "metadata") &&
	       same_but(json_at(a, "metadata"), json_at(b, "metadata"), "resourceVersion");
}

static void store_object(struct cache *cache, struct entry *entry, json_t *object)
{
	struct cache_values values;

	if (cache->kind->live) {
		json_object_set(cache->all, entry->key, object);
		json_replace(&entry->object, json_incref(object));
	} else {
		struct strbuf text = {0};

		json_write(object, &text);
		cool_entry(cache->warm, entry);
		mem_free(entry->text);
		entry->text = str_ndup(text.data, text.len); /* without the buffer's slack */
		strbuf_done(&text);
		keep_warm(cache->warm, entry, object);
	}
	leave_places(cache, entry);
	values = values_of(cache, object);
	assert(!entry->places && entry->n_places == 0);
	if (values.len > 0)
		entry->places = mem_calloc(values.len, sizeof(*entry->places));
	entry->n_places = (uint32_t)values.len;
	for (size_t i = 0; i < values.len; i++) {
		struct place *place = &entry->places[i];

		place->entry = entry;
		place->crowd = crowd_of(cache, values.items[i].index, values.items[i].value);
		LIST_INSERT_HEAD(&place->crowd->places, place, link);
	}
	for (size_t i = 0; i < values.len; i++)
		mem_free(values.items[i].value);
	mem_free(values.items);
}

static struct entry *entry_new(struct cache *cache, const char *key)
{
	size_t size = strlen(key) + 1;
	struct entry *entry = mem_zalloc(sizeof(*entry) + size);

	memcpy(entry->key, key, size);
	map_set(&cache->entries, key, entry);
	return entry;
}

static void remove_entry(struct cache *cache, struct entry *entry)
{
	json_auto_t *old = entry_parse(entry);
	auto_free char *key = str_dup(entry->key); /* the entry's goes with it */

	leave_places(cache, entry);
	if (cache->all)
		json_object_del(cache->all, key);
	else
		cool_entry(cache->warm, entry);
	map_del(&cache->entries, key);
	if (cache->changed)
		cache->changed(cache->arg, key, old, NULL);
}

static bool is_wanted(const struct cache *cache, const json_t *object)
{
	return !cache->kind->wanted || cache->kind->wanted(object);
}

/* This version can be read, or is gone. */
static void forget_unreadable(struct cache *cache, const char *key, uint64_t version)
{
	const struct unreadable *unreadable = map_get(&cache->unreadable, key);

	if (unreadable && unreadable->version <= version)
		map_del(&cache->unreadable, key);
}

static bool put_if_newer(struct cache *cache, json_t *object, bool is_listed, uint64_t fingerprint)
{
	auto_free char *key = json_key(object);
	struct entry *entry = map_get(&cache->entries, key);
	json_auto_t *old = NULL;
	bool newer = !entry || kube_resource_version(object) > entry->version;

	forget_unreadable(cache, key, kube_resource_version(object));
	if (newer && !is_wanted(cache, object)) {
		if (entry)
			remove_entry(cache, entry);
		json_decref(object);
		return false;
	}
	if (entry && newer)
		old = entry_parse(entry);
	if (!entry)
		entry = entry_new(cache, key);
	if (is_listed)
		entry->list = cache->list;
	if (newer) {
		entry->fingerprint = fingerprint;
		/* A newer object: trimmed, stored, reported. */
		entry->version = kube_resource_version(object);
		if (cache->kind->project)
			cache->kind->project(object);
		json_object_del(json_at(object, "metadata"), "managedFields");
		if (!str_eq(entry->uid, json_uid(object))) {
			str_replace(&entry->uid, str_dup(json_uid(object)));
		}
		store_object(cache, entry, object);
		if (cache->changed && !(old && same_content(old, object)))
			cache->changed(cache->arg, entry->key, old, object);
	}
	json_decref(object);
	return newer;
}

bool cache_put(struct cache *cache, json_t *object)
{
	return put_if_newer(cache, object, true, 0);
}

bool cache_put_text(struct cache *cache, json_t *object, uint64_t fingerprint)
{
	return put_if_newer(cache, object, true, fingerprint);
}

bool cache_learn(struct cache *cache, json_t *object)
{
	return put_if_newer(cache, object, false, 0);
}

/* ---- objects of which only the version changes ----------------------------------------------- */

uint64_t cache_fingerprint(const char *text, size_t len, size_t version_at, size_t version_len)
{
	static uint64_t seed[2];
	static bool seeded;
	size_t behind = version_at + version_len;
	uint64_t print;

	assert(behind <= len);
	if (!seeded) {
		random_bytes(seed, sizeof(seed));
		seeded = true;
	}
	print = map_siphash13(seed, text, version_at) * 3 +
		map_siphash13(seed, text + behind, len - behind);
	return print ? print : 1;
}

bool cache_knows(const struct cache *cache, const char *key, uint64_t version, uint64_t fingerprint)
{
	const struct entry *entry = map_get(&cache->entries, key);
	struct identity stored;

	return entry && fingerprint != 0 && entry->fingerprint == fingerprint &&
	       entry->version <= version && !cache->kind->live &&
	       !cache_is_unreadable(cache, key) &&
	       identity_read(entry->text, strlen(entry->text), false, &stored);
}

void cache_renew(struct cache *cache, const char *key, const char *version)
{
	struct entry *entry = map_get(&cache->entries, key);
	size_t len, before, after = strlen(version);
	struct identity stored;
	char *text;

	assert(entry && entry->text);
	cool_entry(cache->warm, entry);
	len = strlen(entry->text);
	(void)identity_read(entry->text, len, false, &stored);
	before = strlen(stored.version);
	if (before == after) {
		memcpy(entry->text + stored.version_at, version, after);
	} else {
		text = mem_alloc(len - before + after + 1);
		memcpy(text, entry->text, stored.version_at);
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): what follows has it */
		memcpy(text + stored.version_at, version, after);
		memcpy(text + stored.version_at + after, entry->text + stored.version_at + before,
		       len - stored.version_at - before + 1);
		str_replace(&entry->text, text);
	}
	(void)identity_read(entry->text, strlen(entry->text), false, &stored);
	entry->version = identity_version(&stored);
	entry->list = cache->list;
}

bool cache_remove(struct cache *cache, const char *key, uint64_t version)
{
	struct entry *entry = map_get(&cache->entries, key);
	bool was_unknown = cache_is_unknown(cache, key);

	forget_unreadable(cache, key, version);
	if (was_unknown && !cache_is_unknown(cache, key) && cache->changed)
		cache->changed(cache->arg, key, NULL, NULL);
	if (!entry || entry->version > version)
		return false;
	remove_entry(cache, entry);
	return true;
}

/* ---- objects that cannot be read ------------------------------------------------------------- */

bool cache_put_unreadable(struct cache *cache, const char *key, uint64_t version)
{
	struct entry *entry = map_get(&cache->entries, key);
	struct unreadable *unreadable = map_get(&cache->unreadable, key);
	bool is_new = !unreadable;

	assert(key);
	if (entry && entry->version >= version)
		return false;
	if (entry)
		entry->list = cache->list;
	if (is_new) {
		unreadable = mem_new(struct unreadable);
		map_set(&cache->unreadable, key, unreadable);
	}
	unreadable->version = version;
	unreadable->list = cache->list;
	return is_new;
}

bool cache_is_unreadable(const struct cache *cache, const char *key)
{
	return map_get(&cache->unreadable, key) != NULL;
}

bool cache_is_unknown(const struct cache *cache, const char *key)
{
	return cache_is_unreadable(cache, key) && !cache_has(cache, key);
}

size_t cache_unreadable_len(const struct cache *cache)
{
	return cache->unreadable.len;
}

size_t cache_unknown_len(const struct cache *cache)
{
	const char *key = NULL;
	size_t iter = 0, n = 0;

	while ((key = cache_next_unreadable(cache, &iter)))
		n += !cache_has(cache, key);
	return n;
}

const char *cache_next_unreadable(const struct cache *cache, size_t *iter)
{
	const char *key = NULL;
	void *ignored = NULL;

	return map_next(&cache->unreadable, iter, &key, &ignored) ? key : NULL;
}

json_t *cache_get(const struct cache *cache, const char *key)
{
	struct entry *entry = map_get(&cache->entries, key);

	return entry ? entry_object(cache, entry) : NULL;
}

bool cache_has(const struct cache *cache, const char *key)
{
	return map_get(&cache->entries, key) != NULL;
}

uint64_t cache_version(const struct cache *cache, const char *key)
{
	const struct entry *entry = map_get(&cache->entries, key);

	return entry ? entry->version : 0;
}

const char *cache_uid(const struct cache *cache, const char *key)
{
	const struct entry *entry = map_get(&cache->entries, key);

	return entry ? entry->uid : NULL;
}

size_t cache_len(const struct cache *cache)
{
	return cache->entries.len;
}

const char *cache_next(const struct cache *cache, size_t *iter)
{
	const char *key = NULL;
	void *ignored = NULL;

	return map_next(&cache->entries, iter, &key, &ignored) ? key : NULL;
}

json_t *cache_all(const struct cache *cache)
{
	json_t *all = NULL;
	const char *key = NULL;
	void *entry = NULL;
	size_t iter = 0;

	if (cache->all)
		return json_incref(cache->all);
	all = json_object();
	while (map_next(&cache->entries, &iter, &key, &entry))
		json_object_set_new(all, key, entry_parse(entry));
	return all;
}

/* ---- lists ----------------------------------------------------------------------------------- */

void cache_list_begin(struct cache *cache)
{
	cache->list++;
}

/* Collected first: what `changed` does must not disturb the visit of the map. */
void cache_list_end(struct cache *cache, uint64_t version)
{
	struct strbuf gone = {0}; /* keys, each with its NUL */
	const char *key = NULL;
	void *value = NULL;
	size_t iter = 0;

	while (map_next(&cache->entries, &iter, &key, &value)) {
		const struct entry *entry = value;

		if (entry->list != cache->list && entry->version <= version)
			strbuf_add(&gone, entry->key, strlen(entry->key) + 1);
	}
	iter = 0;
	while (map_next(&cache->unreadable, &iter, &key, &value)) {
		const struct unreadable *unreadable = value;

		if (unreadable->list != cache->list && unreadable->version <= version)
			strbuf_add(&gone, key, strlen(key) + 1);
	}
	for (size_t at = 0; at < gone.len; at += strlen(gone.data + at) + 1)
		cache_remove(cache, gone.data + at, version);
	strbuf_done(&gone);
}

void cache_forget_versions(struct cache *cache)
{
	const char *key = NULL;
	void *value = NULL;
	size_t iter = 0;

	while (map_next(&cache->entries, &iter, &key, &value))
		((struct entry *)value)->version = 0;
	iter = 0;
	while (map_next(&cache->unreadable, &iter, &key, &value))
		((struct unreadable *)value)->version = 0;
}
