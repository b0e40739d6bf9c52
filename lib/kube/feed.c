/*
 * Pages go through the splitter's LIST mode, watches through its STREAM mode; each object is parsed once, on its way into the
 * cache.
 */
#include "lib/kube/feed.h"

#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/status.h"

/* Bytes of an answer that a message quotes. */
#define QUOTE_MAX 80

void feed_list(struct feed *feed, bool stream)
{
	mem_free(take_ptr(feed->next_page));
	feed->version = 0;
	feed->streams = stream;
	feed->phase = stream ? FEED_STREAM : FEED_LIST;
	cache_list_begin(feed->cache);
	metric_add(feed->lists, 1, feed->resource);
}

void feed_done(struct feed *feed)
{
	splitter_done(&feed->splitter);
	mem_free(take_ptr(feed->next_page));
}

static void saw(struct feed *feed, uint64_t version)
{
	if (version > feed->version)
		feed->version = version;
	if (version > feed->seen)
		feed->seen = version;
}

/* Lists are consistent reads: as new as anything that anybody has seen before. */
static bool history_is_new(struct feed *feed)
{
	if (feed->version >= feed->seen)
		return false;
	log_warn("the server's history began anew, listing again",
		 F_STR("resource", feed->resource), F_INT("seen", (int64_t)feed->seen),
		 F_INT("now", (int64_t)feed->version));
	feed->seen = 0;
	cache_forget_versions(feed->cache);
	feed_list(feed, feed->streams);
	return true;
}

/* False when it has to be listed once more. */
static bool complete(struct feed *feed)
{
	if (history_is_new(feed))
		return false;
	saw(feed, feed->version);
	feed->phase = FEED_WATCH;
	cache_list_end(feed->cache, feed->version);
	feed->complete(feed->arg);
	return true;
}

static int bad_stream(const struct feed *feed, const char *what, const char *text, size_t len,
		      struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "BadStream", "the server's answer for %s: %s: %.*s",
		       feed->resource, what, (int)str_clip(text, len, QUOTE_MAX), text);
}

static json_t *parse(const struct feed *feed, const char *text, size_t len, struct err *err)
{
	struct err why = {0};
	json_t *value = json_parse(text, len, &why);

	if (value)
		return value;
	/* Transient: the server may do better next time. */
	err_set(err, ERR_TRANSIENT, why.reason, "the server's answer for %s: %s", feed->resource,
		why.text);
	return NULL;
}

/* ---- lists -------------------------------------------------------------------------------------------------------- */

/* Elements of typed lists carry no apiVersion and kind; nobody needs them. */
static int list_item(struct feed *feed, const char *text, size_t len, struct err *err)
{
	json_t *object = parse(feed, text, len, err);

	if (!object)
		return -1;
	if (str_empty(json_name(object))) {
		json_decref(object);
		return bad_stream(feed, "not an object", text, len, err);
	}
	cache_put(feed->cache, object);
	metric_add(feed->events, 1, feed->resource);
	return 0;
}

/* Something else than a list must not pass for an empty one: everything would be taken for deleted. */
static bool is_list(const json_t *rest)
{
	return kube_resource_version(rest) > 0 && json_array_size(json_at(rest, "items")) == 0;
}

static int list_rest(struct feed *feed, const char *text, size_t len, struct err *err)
{
	json_auto_t *list = parse(feed, text, len, err);
	const char *next = json_str_at(list, "metadata", "continue");

	if (!list)
		return -1;
	if (!is_list(list))
		return bad_stream(feed, "not a list", text, len, err);
	feed->version = kube_resource_version(list);
	mem_free(feed->next_page);
	feed->next_page = str_empty(next) ? NULL : str_dup(next);
	return 0;
}

/* ---- events ------------------------------------------------------------------------------------------------------- */

static int on_bookmark(struct feed *feed, const json_t *object, struct err *err)
{
	const char *end =
		json_str_at(object, "metadata", "annotations", "k8s.io/initial-events-end");

	if (feed->phase == FEED_STREAM && str_eq(end, "true") && !complete(feed))
		return err_set(err, ERR_TRANSIENT, "Restored", "the server's history began anew");
	return 0;
}

static int watch_object(struct feed *feed, const char *type, json_t *object, struct err *err)
{
	auto_free char *key = json_key(object);

	if (str_eq(type, "BOOKMARK"))
		return on_bookmark(feed, object, err);
	if (str_eq(type, "DELETED"))
		cache_remove(feed->cache, key, kube_resource_version(object));
	else
		cache_put(feed->cache, json_incref(object));
	return 0;
}

static bool is_event(const char *type, const json_t *object)
{
	if (!type || kube_resource_version(object) == 0)
		return false;
	if (str_eq(type, "BOOKMARK"))
		return true;
	return !str_empty(json_name(object)) &&
	       (str_eq(type, "ADDED") || str_eq(type, "MODIFIED") || str_eq(type, "DELETED"));
}

static int watch_event(struct feed *feed, const char *text, size_t len, struct err *err)
{
	json_auto_t *event = parse(feed, text, len, err);
	const char *type = json_str_at(event, "type");
	json_t *object = json_at(event, "object");

	if (!event)
		return -1;
	if (str_eq(type, "ERROR") && json_is_object(object)) {
		kube_status_object_err(object, err);
		err->class = ERR_TRANSIENT;
		return -1;
	}
	if (!is_event(type, object))
		return bad_stream(feed, "not a watch event", text, len, err);
	metric_add(feed->events, 1, feed->resource);
	/*
	 * Before the cache learns it: what its callback writes is then compared with the right version. Initial events come in
	 * the order of keys; they say nothing about where the watch is.
	 */
	if (feed->phase == FEED_WATCH) {
		saw(feed, kube_resource_version(object));
		feed->understood(feed->arg);
	} else if (str_eq(type, "BOOKMARK")) {
		feed->version = kube_resource_version(object);
	}
	return watch_object(feed, type, object, err);
}

/* ---- answers ------------------------------------------------------------------------------------------------------ */

static int on_object(void *arg, const char *text, size_t len, bool last, struct err *err)
{
	struct feed *feed = arg;

	if (feed->phase != FEED_LIST)
		return watch_event(feed, text, len, err);
	return last ? list_rest(feed, text, len, err) : list_item(feed, text, len, err);
}

void feed_open(struct feed *feed)
{
	enum splitter_mode mode = feed->phase == FEED_LIST ? SPLITTER_LIST : SPLITTER_STREAM;

	splitter_done(&feed->splitter);
	splitter_init(&feed->splitter, mode, feed->drops, feed->n_drops, true, on_object, feed);
}

int feed_bytes(struct feed *feed, const char *bytes, size_t len, struct err *err)
{
	return splitter_feed(&feed->splitter, bytes, len, err);
}

int feed_close(struct feed *feed, struct err *err)
{
	if (feed->phase != FEED_LIST)
		return 0; /* a watch may end anywhere: it goes on behind the last whole event */
	if (splitter_end(&feed->splitter, err) < 0)
		return -1;
	if (!feed->next_page)
		(void)complete(feed);
	return 0;
}
