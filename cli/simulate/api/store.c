// SPDX-License-Identifier: Apache-2.0
/*
 * Sorted arrays of objects and rings of events. The bottom of the API server: knows nothing of
 * kinds, requests or clients.
 */
#include "cli/simulate/api/store.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

struct store {
	uint64_t version;
	void (*changed)(void *arg, struct collection *collection);
	void *arg;
	struct collection **collections;
	size_t len;
};

/* ---- texts ----------------------------------------------------------------------------------- */

struct blob *blob_new(const char *text, size_t len)
{
	struct blob *blob = mem_alloc(sizeof(*blob) + len + 1);

	assert(text || len == 0);
	blob->refs = 1;
	blob->len = len;
	memcpy(blob->text, text, len);
	blob->text[len] = '\0';
	return blob;
}

struct blob *blob_ref(struct blob *blob)
{
	blob->refs++;
	return blob;
}

void blob_unref(struct blob *blob)
{
	if (blob && --blob->refs == 0)
		mem_free(blob);
}

static struct blob *encode(const json_t *object)
{
	auto_strbuf struct strbuf text = {0};

	json_write(object, &text);
	return blob_new(text.data, text.len);
}

/* ---- the store ------------------------------------------------------------------------------- */

struct store *store_new(void (*changed)(void *arg, struct collection *collection), void *arg)
{
	struct store *store = mem_new(struct store);

	assert(changed);
	store->version = 1;
	store->changed = changed;
	store->arg = arg;
	return store;
}

void store_free(struct store *store)
{
	if (!store)
		return;
	store->changed = NULL;
	while (store->len > 0)
		collection_free(store->collections[store->len - 1]);
	mem_free(store->collections);
	mem_free(store);
}

uint64_t store_version(const struct store *store)
{
	return store->version;
}

/* ---- outlines -------------------------------------------------------------------------------- */

/* Copy what a dotted path leads to, with the objects around it. */
static void outline_copy(json_t *outline, const json_t *object, const char *path)
{
	auto_free char *copy = str_dup(path);
	char *rest = copy;

	for (;;) {
		const char *key = strsep(&rest, ".");
		json_t *value = json_object_get(object, key);

		if (!value)
			return;
		if (!rest) {
			json_put(outline, key, json_incref(value));
			return;
		}
		if (!json_is_object(value))
			return;
		outline = json_need_object(outline, key);
		object = value;
	}
}

/* What is kept of an object beside its text. Returns new, sharing parts of the object. */
static json_t *store_outline(const json_t *object, char *const *fields)
{
	static const char *const always[] = {"metadata.name", "metadata.namespace",
					     "metadata.labels", "metadata.ownerReferences",
					     "metadata.uid"};
	json_t *outline = json_object();

	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		outline_copy(outline, object, always[i]);
	for (; fields && *fields; fields++)
		outline_copy(outline, object, *fields);
	return outline;
}

/* ---- history --------------------------------------------------------------------------------- */

static void event_done(struct store_event *event)
{
	blob_unref(event->text);
	json_decref(event->outline);
	json_decref(event->before);
}

static struct store_event *event_at(const struct collection *collection, uint64_t number)
{
	return &collection->events[number % STORE_EVENTS_MAX];
}

/* Takes outline and before. */
static void remember(struct collection *collection, enum store_event_type type, struct blob *text,
		     json_t *outline, json_t *before)
{
	while (collection->first < collection->next &&
	       (collection->next - collection->first == STORE_EVENTS_MAX ||
		collection->event_bytes + text->len > STORE_EVENT_BYTES_MAX)) {
		struct store_event *event = event_at(collection, collection->first++);

		collection->event_bytes -= event->text->len;
		collection->forgotten = event->version;
		event_done(event);
	}
	if (!collection->events)
		collection->events = mem_calloc(STORE_EVENTS_MAX, sizeof(*collection->events));
	*event_at(collection, collection->next++) = (struct store_event){
		.type = type,
		.version = collection->store->version,
		.text = blob_ref(text),
		.outline = outline,
		.before = before,
	};
	collection->event_bytes += text->len;
	if (collection->store->changed)
		collection->store->changed(collection->store->arg, collection);
}

bool collection_events_after(const struct collection *collection, uint64_t version,
			     uint64_t *ret_number)
{
	uint64_t low = collection->first, high = collection->next;

	if (version < collection->forgotten || version > collection->store->version)
		return false;
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (event_at(collection, middle)->version <= version)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_number = low;
	return true;
}

const struct store_event *collection_event(const struct collection *collection, uint64_t number)
{
	if (number < collection->first || number >= collection->next)
		return NULL;
	return event_at(collection, number);
}

/* ---- collections ----------------------------------------------------------------------------- */

struct collection *collection_new(struct store *store, const char *name, const char *const *fields)
{
	struct collection *collection = mem_new(struct collection);
	size_t n = 0;

	assert(store && name);
	collection->store = store;
	collection->name = str_dup(name);
	while (fields && fields[n])
		n++;
	collection->fields = mem_calloc(n + 1, sizeof(*collection->fields));
	for (size_t i = 0; i < n; i++)
		collection->fields[i] = str_dup(fields[i]);
	/* What was there under this name before is not known. */
	collection->forgotten = store->version;
	store->collections =
		mem_realloc(store->collections, (store->len + 1) * sizeof(struct collection *));
	store->collections[store->len++] = collection;
	return collection;
}

static void entry_free(struct store_entry *entry)
{
	mem_free(entry->key);
	blob_unref(entry->text);
	json_decref(entry->outline);
	mem_free(entry);
}

void collection_free(struct collection *collection)
{
	struct store *store = collection->store;
	size_t i = 0;

	while (store->collections[i] != collection)
		i++;
	store->collections[i] = store->collections[--store->len];
	for (i = 0; i < collection->len; i++)
		entry_free(collection->entries[i]);
	while (collection->first < collection->next)
		event_done(event_at(collection, collection->first++));
	for (char **field = collection->fields; *field; field++)
		mem_free(*field);
	mem_free(collection->fields);
	mem_free(collection->entries);
	mem_free(collection->events);
	mem_free(collection->name);
	mem_free(collection);
}

/* The place of the first entry whose key is not less than `key`. */
static size_t place_of(const struct collection *collection, const char *key)
{
	size_t low = 0, high = collection->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(collection->entries[middle]->key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t collection_after(const struct collection *collection, const char *key)
{
	size_t place = place_of(collection, key);

	return place < collection->len && str_eq(collection->entries[place]->key, key) ? place + 1
										       : place;
}

static struct store_entry *find(const struct collection *collection, const char *key,
				size_t *ret_place)
{
	*ret_place = place_of(collection, key);
	if (*ret_place == collection->len || !str_eq(collection->entries[*ret_place]->key, key))
		return NULL;
	return collection->entries[*ret_place];
}

const struct store_entry *collection_get(const struct collection *collection, const char *key)
{
	size_t place;

	return find(collection, key, &place);
}

json_t *collection_object(const struct collection *collection, const char *key)
{
	const struct store_entry *entry = collection_get(collection, key);
	json_t *object;

	if (!entry)
		return NULL;
	object = json_parse(entry->text->text, entry->text->len, NULL);
	assert(object); /* it was written from a value */
	return object;
}

static void next_version(struct store *store, json_t *object)
{
	json_put(json_need_object(object, "metadata"), "resourceVersion",
		 json_fmt("%llu", (unsigned long long)++store->version));
}

static struct store_entry *insert(struct collection *collection, char *key, size_t place)
{
	struct store_entry *entry = mem_new(struct store_entry);

	if (collection->len == collection->cap) {
		collection->cap = collection->cap ? 2 * collection->cap : 16;
		collection->entries = mem_realloc(collection->entries,
						  collection->cap * sizeof(struct store_entry *));
	}
	memmove(&collection->entries[place + 1], &collection->entries[place],
		(collection->len - place) * sizeof(struct store_entry *));
	entry->key = key;
	collection->entries[place] = entry;
	collection->len++;
	return entry;
}

const struct store_entry *collection_put(struct collection *collection, json_t *object)
{
	auto_free char *key = json_key(object);
	struct store_entry *entry;
	json_t *before = NULL;
	size_t place;

	assert(json_is_object(object));
	next_version(collection->store, object);
	entry = find(collection, key, &place);
	if (entry) {
		before = entry->outline;
		blob_unref(entry->text);
	} else {
		entry = insert(collection, take_ptr(key), place);
	}
	entry->version = collection->store->version;
	entry->text = encode(object);
	entry->outline = store_outline(object, collection->fields);
	remember(collection, before ? STORE_MODIFIED : STORE_ADDED, entry->text,
		 json_incref(entry->outline), before);
	return entry;
}

void collection_remove(struct collection *collection, json_t *last)
{
	auto_free char *key = json_key(last);
	struct store_entry *entry;
	struct blob *text;
	size_t place;

	entry = find(collection, key, &place);
	assert(entry);
	next_version(collection->store, last);
	memmove(&collection->entries[place], &collection->entries[place + 1],
		(--collection->len - place) * sizeof(struct store_entry *));
	text = encode(last);
	remember(collection, STORE_DELETED, text, store_outline(last, collection->fields),
		 json_incref(entry->outline));
	blob_unref(text);
	entry_free(entry);
}
