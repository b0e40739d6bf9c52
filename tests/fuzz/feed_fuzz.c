// SPDX-License-Identifier: Apache-2.0
/*
 * Answers to lists and watches, taken over into a cache: no answer breaks it, and how its bytes are
 * cut does not matter.
 *
 * Input: answers with a NUL byte between them. The first byte of each says how: bit 0: a new list
 * is streamed; bit 1: it ends in the middle (a lost connection); bit 2: a new list is begun before
 * it; bits 3 to 7: the size of pieces.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/feed.h"
#include "lib/kube/status.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return log_configure("error", NULL);
}

static void index_spec(const json_t *object, struct cache_values *values)
{
	const char *key = NULL;
	json_t *value = NULL;

	json_each (json_at(object, "spec"), key, value)
		if (json_is_string(value))
			cache_index_value(values, json_string_value(value));
}

static const struct cache_kind text_kind = {.indexes = {index_spec}};
static const struct cache_kind live_kind = {.live = true, .indexes = {index_spec}};

static const splitter_path drops[] = {{"metadata", "managedFields"}, {"status", "list", "x"}};

/* One reader of the answers. What it is told about changes is enough to know what is there. */
struct reader {
	struct cache *cache;
	json_t *told; /* { key: object } */
	struct feed feed;
	size_t completed;
};

/* Equal, but for the version: nobody is told when only that changes. */
static bool same_but_version(const json_t *a, const json_t *b)
{
	json_auto_t *diff = a && b ? json_merge_diff(a, b) : NULL;
	json_t *meta = json_at(diff, "metadata");

	if (!a || !b)
		return a == b;
	return !diff || (json_object_size(diff) == 1 && json_object_size(meta) == 1 &&
			 json_at(meta, "resourceVersion"));
}

static void on_changed(void *arg, const char *key, const json_t *old, const json_t *now)
{
	struct reader *r = arg;

	if (old && !now && !json_object_get(r->told, key)) {
		fuzz_check(json_object_size(old) == 1,
			   "of an unknown object only the name is told");
		return;
	}
	fuzz_check(same_but_version(old, json_object_get(r->told, key)),
		   "what changes is what was told before");
	if (now)
		json_object_set_new(r->told, key, json_deep_copy(now));
	else
		json_object_del(r->told, key);
}

static void on_understood(void *arg)
{
}

static void on_complete(void *arg)
{
	struct reader *r = arg;

	r->completed++;
	fuzz_check(r->feed.phase == FEED_WATCH && r->feed.version > 0,
		   "a complete cache is watched from somewhere");
	fuzz_check(r->feed.seen >= r->feed.version, "nothing is newer than the newest");
}

static void reader_init(struct reader *r, const struct cache_kind *kind)
{
	r->told = json_object();
	r->cache = cache_new(kind, on_changed, r);
	r->feed = (struct feed){
		.resource = "widgets",
		.cache = r->cache,
		.drops = drops,
		.n_drops = ARRAY_LEN(drops),
		.understood = on_understood,
		.complete = on_complete,
		.arg = r,
	};
	feed_list(&r->feed, false);
}

static void reader_done(struct reader *r)
{
	feed_done(&r->feed);
	cache_free(r->cache);
	json_decref(r->told);
}

/* As the informer does it: an error ends the answer, and one that is too old begins a new list. */
static void read_answer(struct reader *r, uint8_t how, const char *text, size_t len, size_t piece)
{
	struct err err = {0};
	int result = 0;

	if (how & 4)
		feed_list(&r->feed, how & 1);
	feed_open(&r->feed);
	for (size_t at = 0; at < len && result == 0; at += piece) {
		size_t n = len - at < piece ? len - at : piece;
		auto_free char *copy = mem_dup(text + at, n);

		result = feed_bytes(&r->feed, copy, n, &err);
	}
	if (result == 0 && !(how & 2))
		result = feed_close(&r->feed, &err);
	fuzz_check(result == 0 || (err.class == ERR_TRANSIENT && err.reason[0] && err.text[0]),
		   "an error says why and may pass");
	if (result < 0 && kube_err_is_expired(&err))
		feed_list(&r->feed, how & 1);
}

struct search {
	const char *key;
	bool found;
};

static void on_found(void *arg, const char *key)
{
	struct search *search = arg;

	search->found = search->found || str_eq(search->key, key);
}

static void check_found(const struct reader *r, const char *key, const json_t *object)
{
	const char *name = NULL;
	json_t *value = NULL;

	json_each (json_at(object, "spec"), name, value) {
		struct search search = {.key = key};

		if (!json_is_string(value))
			continue;
		cache_find(r->cache, 0, json_string_value(value), on_found, &search);
		fuzz_check(search.found, "an object is found under its values");
	}
}

static void check_reader(const struct reader *r)
{
	size_t iter = 0;
	const char *key = NULL;

	fuzz_check(json_object_size(r->told) == cache_len(r->cache), "all that is there was told");
	while ((key = cache_next_unreadable(r->cache, &iter))) {
		fuzz_check(key[0], "an object that cannot be read has a name");
		fuzz_check(cache_is_unknown(r->cache, key) == !cache_has(r->cache, key),
			   "unknown is unreadable and never read");
	}
	iter = 0;
	while ((key = cache_next(r->cache, &iter))) {
		json_auto_t *object = cache_get(r->cache, key);
		const json_t *told = json_object_get(r->told, key);

		fuzz_check(json_is_object(object) && told, "an object is an object");
		/* 0: forgotten, until the list of the new history is complete. */
		fuzz_check(cache_version(r->cache, key) == 0 ||
				   cache_version(r->cache, key) == kube_resource_version(object),
			   "versions agree");
		fuzz_check(!json_at(object, "metadata", "managedFields"),
			   "what is dropped is not there");
		check_found(r, key, object);
		fuzz_check(same_but_version(object, told), "what was told is what is there");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data, *end = text + size;
	struct reader whole = {0}, pieces = {0};
	json_auto_t *a = NULL;
	json_auto_t *b = NULL;

	reader_init(&whole, &text_kind);
	reader_init(&pieces, &live_kind);
	while (text < end) {
		size_t len = strnlen(text, (size_t)(end - text));
		uint8_t how = (uint8_t)*text;

		if (len > 0) {
			read_answer(&whole, how, text + 1, len - 1, len);
			read_answer(&pieces, how, text + 1, len - 1, 1 + (how >> 3));
		}
		text += len + 1;
	}
	check_reader(&whole);
	check_reader(&pieces);
	a = cache_all(whole.cache);
	b = cache_all(pieces.cache);
	fuzz_check(json_same(a, b), "any pieces, same cache");
	fuzz_check(cache_unreadable_len(whole.cache) == cache_unreadable_len(pieces.cache) &&
			   cache_unknown_len(whole.cache) == cache_unknown_len(pieces.cache),
		   "any pieces, same trouble");
	fuzz_check(whole.completed == pieces.completed &&
			   whole.feed.version == pieces.feed.version &&
			   whole.feed.phase == pieces.feed.phase,
		   "any pieces, same place");
	reader_done(&whole);
	reader_done(&pieces);
	return 0;
}
