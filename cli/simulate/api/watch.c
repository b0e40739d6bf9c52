// SPDX-License-Identifier: Apache-2.0
/*
 * One source of lib/http for each watch: first the objects that were there, then the history from
 * its place on. Woken together, once for each turn of the loop in which something changed.
 */
#include "cli/simulate/api/watch.h"

#include <assert.h>

#include "cli/simulate/objects/failure.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"

/* What one fill appends at most, besides one object. */
#define FILL_MAX (64 * 1024)

struct watch {
	struct watches *all;
	struct watch *prev, *next;
	struct http_stream *stream;
	struct watch_request request;
	char *ns;
	/* Objects to begin with. */
	struct blob **initial;
	size_t initial_len, initial_at;
	uint64_t initial_version;
	bool owes_end_of_list; /* the bookmark behind them */
	bool owes_bookmark;
	bool has_columns; /* of a Table: they were sent */
	bool is_over;
	bool is_expired; /* from the start: the version is not in the history */
	uint64_t at;     /* the next event */
	struct timer *timeout;
};

struct watches {
	struct loop *loop;
	struct store *store;
	struct watch *first;
	struct deferred *wake;
	struct timer *bookmarks;
};

/* ---- what is sent ---------------------------------------------------------------------------- */

static void put_event(struct watch *watch, const char *type, const struct blob *text,
		      struct strbuf *out)
{
	strbuf_addf(out, "{\"type\":\"%s\",\"object\":", type);
	view_object(&watch->request.view, text, !watch->has_columns, out);
	watch->has_columns = true;
	strbuf_adds(out, "}\n");
}

static void put_value(const char *type, const json_t *object, struct strbuf *out)
{
	strbuf_addf(out, "{\"type\":\"%s\",\"object\":", type);
	json_write(object, out);
	strbuf_adds(out, "}\n");
}

static void put_bookmark(const struct watch *watch, uint64_t at, bool is_end_of_list,
			 struct strbuf *out)
{
	const struct resource *resource = watch->request.view.resource;
	auto_free char *version = resource_api_version(resource);
	json_auto_t *object = json_pack("{s:s, s:s, s:{}}", "kind", resource->kind, "apiVersion",
					version, "metadata");
	json_t *metadata = json_object_get(object, "metadata");

	json_put(metadata, "resourceVersion", json_fmt("%llu", (unsigned long long)at));
	json_put(metadata, "creationTimestamp", json_null());
	if (is_end_of_list)
		json_put(metadata, "annotations",
			 json_pack("{s:s}", "k8s.io/initial-events-end", "true"));
	put_value("BOOKMARK", object, out);
}

static bool is_selected(const struct watch *watch, const json_t *outline)
{
	const char *ns = watch->ns;

	return outline && (!ns || str_eq(ns, json_namespace(outline))) &&
	       selector_matches(watch->request.selector, outline);
}

/* What a change is for this watch: objects come and go by their labels and fields, too. */
static const char *type_for(const struct watch *watch, const struct store_event *event)
{
	bool was = is_selected(watch, event->before);
	bool is = event->type != STORE_DELETED && is_selected(watch, event->outline);

	if (is)
		return was ? "MODIFIED" : "ADDED";
	return was ? "DELETED" : NULL;
}

static void fill_initial(struct watch *watch, struct strbuf *out)
{
	size_t begin = out->len;

	while (watch->initial_at < watch->initial_len && out->len - begin < FILL_MAX) {
		struct blob *text = watch->initial[watch->initial_at++];

		put_event(watch, "ADDED", text, out);
		blob_unref(text);
	}
	if (watch->initial_at < watch->initial_len)
		return;
	mem_free(take_ptr(watch->initial));
	watch->initial_len = watch->initial_at = 0;
}

/* False: the history is too short. */
static bool fill_events(struct watch *watch, struct strbuf *out)
{
	const struct collection *collection = watch->request.collection;
	size_t begin = out->len;

	if (watch->at < collection->first)
		return false;
	while (watch->at < collection->next && out->len - begin < FILL_MAX) {
		const struct store_event *event = collection_event(collection, watch->at++);
		const char *type = type_for(watch, event);

		if (type)
			put_event(watch, type, event->text, out);
	}
	return true;
}

static bool watch_fill(struct strbuf *out, void *arg)
{
	struct watch *watch = arg;
	bool is_current;

	if (watch->is_over)
		return false;
	fill_initial(watch, out);
	if (watch->initial)
		return true;
	if (watch->owes_end_of_list) {
		put_bookmark(watch, watch->initial_version, true, out);
		watch->owes_end_of_list = false;
	}
	if (watch->is_expired || !fill_events(watch, out)) {
		json_auto_t *status = failure_status(
			410, "Expired",
			"The resourceVersion for the provided watch is too old or not known here.",
			NULL);

		put_value("ERROR", status, out);
		return false;
	}
	is_current = watch->at == watch->request.collection->next;
	if (watch->owes_bookmark && is_current) {
		put_bookmark(watch, store_version(watch->all->store), false, out);
		watch->owes_bookmark = false;
	}
	return true;
}

/* ---- the life of a watch --------------------------------------------------------------------- */

static void watch_ended(void *arg)
{
	struct watch *watch = arg;

	if (watch->prev)
		watch->prev->next = watch->next;
	else
		watch->all->first = watch->next;
	if (watch->next)
		watch->next->prev = watch->prev;
	while (watch->initial_at < watch->initial_len)
		blob_unref(watch->initial[watch->initial_at++]);
	mem_free(watch->initial);
	mem_free(watch->ns);
	selector_free(watch->request.selector);
	timer_free(watch->timeout);
	mem_free(watch);
}

static const struct http_source watch_source = {.fill = watch_fill, .ended = watch_ended};

static void watch_timed_out(void *arg)
{
	struct watch *watch = arg;

	watch->is_over = true;
	http_stream_wake(watch->stream);
}

void watches_begin(struct watches *watches, const struct watch_request *request,
		   struct http_response *resp)
{
	struct watch *watch = mem_new(struct watch);

	assert(request->collection && resp);
	watch->all = watches;
	watch->request = *request;
	watch->ns = str_dup(request->ns);
	if (request->version == 0 || request->is_streamed_list) {
		const struct collection *collection = watch->request.collection;

		watch->initial = mem_calloc(collection->len + 1, sizeof(struct blob *));
		for (size_t i = 0; i < collection->len; i++)
			if (is_selected(watch, collection->entries[i]->outline))
				watch->initial[watch->initial_len++] =
					blob_ref(collection->entries[i]->text);
		watch->initial_version = store_version(collection->store);
		watch->at = collection->next;
		watch->owes_end_of_list = request->is_streamed_list;
	} else {
		watch->is_expired =
			!collection_events_after(request->collection, request->version, &watch->at);
	}
	watch->next = watches->first;
	if (watch->next)
		watch->next->prev = watch;
	watches->first = watch;
	watch->timeout = timer_new(watches->loop, watch_timed_out, watch);
	timer_start(watch->timeout, request->timeout_ms);
	resp->content_type = HTTP_JSON;
	watch->stream = http_response_stream(resp, &watch_source, watch);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Waking one may end it, and no other. */
static void wake_all(void *arg)
{
	struct watches *watches = arg;
	struct watch *next;

	for (struct watch *watch = watches->first; watch; watch = next) {
		next = watch->next;
		if (watch->is_over || watch->owes_bookmark ||
		    watch->at != watch->request.collection->next)
			http_stream_wake(watch->stream);
	}
}

static void on_bookmarks(void *arg)
{
	struct watches *watches = arg;

	for (struct watch *watch = watches->first; watch; watch = watch->next)
		watch->owes_bookmark = watch->request.has_bookmarks;
	timer_start(watches->bookmarks, WATCH_BOOKMARK_MS);
	wake_all(watches);
}

void watches_changed(struct watches *watches, const struct collection *collection)
{
	deferred_run(watches->wake);
}

void watches_end(struct watches *watches, const struct collection *collection)
{
	struct watch *next;

	for (struct watch *watch = watches->first; watch; watch = next) {
		next = watch->next;
		if (watch->request.collection != collection)
			continue;
		watch->is_over = true;
		http_stream_wake(watch->stream);
	}
}

struct watches *watches_new(struct loop *loop, struct store *store)
{
	struct watches *watches = mem_new(struct watches);

	assert(loop && store);
	watches->loop = loop;
	watches->store = store;
	watches->wake = deferred_new(loop, wake_all, watches);
	watches->bookmarks = timer_new(loop, on_bookmarks, watches);
	timer_start(watches->bookmarks, WATCH_BOOKMARK_MS);
	return watches;
}

void watches_free(struct watches *watches)
{
	if (!watches)
		return;
	deferred_free(watches->wake);
	timer_free(watches->bookmarks);
	mem_free(watches);
}
