// SPDX-License-Identifier: Apache-2.0
/*
 * Pages go through the splitter's LIST mode, watches through its STREAM mode; each object is parsed
 * once, on its way into the cache.
 */
#include "lib/kube/feed.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "lib/kube/identity.h"
#include "lib/kube/status.h"

/* Bytes of an answer that a message quotes. */
#define QUOTE_MAX 80

/* As API servers write events: encoding/json keeps the order of the fields. */
#define EVENT_BEGIN "{\"type\":\""

void feed_list(struct feed *feed, bool stream)
{
	bool goes_on = feed->phase == FEED_STREAM && !stream; /* the same list, in pages */

	assert(feed->cache);
	mem_free(take_ptr(feed->next_page));
	feed->version = 0;
	feed->streams = stream;
	feed->phase = stream ? FEED_STREAM : FEED_LIST;
	cache_list_begin(feed->cache);
	if (!goes_on)
		metric_add(feed->lists, 1, feed->resource);
}

void feed_done(struct feed *feed)
{
	splitter_done(&feed->splitter);
	mem_free(take_ptr(feed->next_page));
}

static void note_version(struct feed *feed, uint64_t version)
{
	if (version > feed->version)
		feed->version = version;
	if (version > feed->seen)
		feed->seen = version;
}

/* Objects stop being unreadable in the cache, by whatever happens to them. */
static void count_unreadable(struct feed *feed)
{
	size_t n = cache_unreadable_len(feed->cache);

	if (n == feed->n_unreadable)
		return;
	if (n < feed->n_unreadable)
		log_info("objects are readable again, or deleted",
			 F_STR("resource", feed->resource), F_INT("still unreadable", (int64_t)n));
	feed->n_unreadable = n;
	metric_set(feed->unreadable, (double)n, feed->resource);
}

void feed_restored(struct feed *feed, uint64_t newest)
{
	log_warn("server was restored from a backup, listing again",
		 F_STR("resource", feed->resource), F_INT("seen", (int64_t)feed->seen),
		 F_INT("now", (int64_t)newest));
	feed->seen = 0;
	cache_forget_versions(feed->cache);
	feed_list(feed, feed->streams);
}

/* False when it has to be listed once more. */
static bool complete_list(struct feed *feed)
{
	assert(feed->phase != FEED_WATCH);
	/* Lists are consistent reads: as new as anything that any client has seen before. */
	if (feed->version < feed->seen) {
		feed_restored(feed, feed->version);
		return false;
	}
	note_version(feed, feed->version);
	feed->phase = FEED_WATCH;
	cache_list_end(feed->cache, feed->version);
	count_unreadable(feed);
	feed->complete(feed->arg);
	return true;
}

static int bad_stream(const struct feed *feed, const char *what, const char *text, size_t len,
		      struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "BadStream", "the server's answer for %s: %s: %.*s",
		       feed->resource, what, (int)str_clip(text, len, QUOTE_MAX), text);
}

/* ---- objects that cannot be read ------------------------------------------------------------- */

/* NULL with why set: the object cannot be read. */
static json_t *parse_object(const struct splitter_object *object, struct err *why)
{
	if (!object->unreadable)
		return json_parse(object->text, object->len, why);
	(void)err_set(why, ERR_INVALID, "Unreadable", "%s", object->unreadable);
	return NULL;
}

static void admit_unreadable(struct feed *feed, const struct identity *who, const struct err *why)
{
	auto_free char *key = identity_key(who);

	if (!cache_put_unreadable(feed->cache, key, identity_version(who)))
		return;
	log_error("cannot read an object, keeping its last version",
		  F_STR("resource", feed->resource), F_STR("namespace", who->ns),
		  F_STR("name", who->name), F_STR("version", who->version), F_ERR(why),
		  F_STR("remedy", "correct or delete the object"));
	count_unreadable(feed);
}

/* ---- objects that need not be read ----------------------------------------------------------- */

/*
 * What the cache knows the object by, and who it is; 0: that cannot be said. The type of an event
 * stands before its object, and so in no part of it.
 */
static uint64_t fingerprint(const struct splitter_object *text, bool is_event, struct identity *ret)
{
	size_t len = text->len - is_event; /* the bracket around it */

	if (!identity_read(text->text, text->len, is_event, ret) || text->unreadable ||
	    (is_event && (ret->object_at == 0 || text->text[len] != '}' ||
			  memcmp(text->text, EVENT_BEGIN, strlen(EVENT_BEGIN)) != 0)))
		return 0;
	return cache_fingerprint(text->text + ret->object_at, len - ret->object_at,
				 ret->version_at - ret->object_at, strlen(ret->version));
}

static bool is_known(const struct feed *feed, const struct identity *who, uint64_t print)
{
	auto_free char *key = print ? identity_key(who) : NULL;

	return key && cache_knows(feed->cache, key, identity_version(who), print);
}

static void renew_known(struct feed *feed, const struct identity *who)
{
	auto_free char *key = identity_key(who);

	cache_renew(feed->cache, key, who->version);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Elements of typed lists carry no apiVersion and kind; they are not needed. */
static int list_item(struct feed *feed, const struct splitter_object *item, struct err *err)
{
	struct err why = {0};
	struct identity who;
	uint64_t print = fingerprint(item, false, &who);
	json_t *object = NULL;

	metric_add(feed->events, 1, feed->resource);
	if (is_known(feed, &who, print)) {
		renew_known(feed, &who);
		return 0;
	}
	object = parse_object(item, &why);
	if (object && !str_empty(json_name(object))) {
		cache_put_text(feed->cache, object, print);
		count_unreadable(feed);
		return 0;
	}
	json_decref(object);
	if (object || !identity_read(item->text, item->len, false, &who))
		return bad_stream(feed, "not an object", item->text, item->len, err);
	admit_unreadable(feed, &who, &why);
	return 0;
}

/*
 * Something else than a list must not pass for an empty one: everything would be taken for deleted.
 */
static bool is_list(const json_t *rest)
{
	return kube_resource_version(rest) > 0 && json_array_size(json_at(rest, "items")) == 0;
}

static int list_rest(struct feed *feed, const struct splitter_object *rest, struct err *err)
{
	json_auto_t *list = json_parse(rest->text, rest->len, NULL);
	const char *next = json_str_at(list, "metadata", "continue");

	if (!list || !is_list(list))
		return bad_stream(feed, "not a list", rest->text, rest->len, err);
	feed->version = kube_resource_version(list);
	str_replace(&feed->next_page, str_empty(next) ? NULL : str_dup(next));
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int set_restored(struct err *err)
{
	return err_set(err, ERR_TRANSIENT, "Restored", "the server's history began anew");
}

static int on_bookmark(struct feed *feed, const json_t *object, struct err *err)
{
	const char *end =
		json_str_at(object, "metadata", "annotations", "k8s.io/initial-events-end");

	if (feed->phase != FEED_STREAM)
		return 0;
	if (!str_eq(end, "true"))
		return err_set(err, ERR_TRANSIENT, "NotStreamed",
			       "the server's answer for %s is a watch, not a list", feed->resource);
	return complete_list(feed) ? 0 : set_restored(err);
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

/*
 * Before the cache learns it: what its callback writes is then compared with the right version.
 * Initial events come in the order of keys; they say nothing about where the watch is. After that
 * versions only grow (KEP-5504).
 */
static int note_event(struct feed *feed, uint64_t version, struct err *err)
{
	metric_add(feed->events, 1, feed->resource);
	if (feed->phase != FEED_WATCH)
		return 0;
	if (version < feed->version) {
		feed_restored(feed, version);
		return set_restored(err);
	}
	note_version(feed, version);
	feed->understood(feed->arg);
	return 0;
}

/*
 * An object, not a bookmark or an error: those are the server's own, and broken when they cannot be
 * read.
 */
static int unreadable_event(struct feed *feed, const struct splitter_object *text,
			    const struct err *why, struct err *err)
{
	struct identity who;
	bool known = identity_read(text->text, text->len, true, &who);
	bool deleted = str_eq(who.type, "DELETED");

	if (!known || !(deleted || str_eq(who.type, "ADDED") || str_eq(who.type, "MODIFIED")))
		return bad_stream(feed, why->text, text->text, text->len, err);
	if (note_event(feed, identity_version(&who), err) < 0)
		return -1;
	if (deleted) {
		auto_free char *key = identity_key(&who);

		cache_remove(feed->cache, key, identity_version(&who));
		count_unreadable(feed);
	} else {
		admit_unreadable(feed, &who, why);
	}
	return 0;
}

/*
 * Most events are echoes of our own writes, whose answers the cache has learned: there is nothing
 * in them to read. While a list is being read each object counts, known or not.
 */
static bool is_echo(const struct feed *feed, const struct identity *who)
{
	auto_free char *key = NULL;

	if (feed->phase != FEED_WATCH)
		return false;
	key = identity_key(who);
	return cache_version(feed->cache, key) >= identity_version(who);
}

/* True when there is nothing in the event to read; *ret then says what has become of it. */
static bool is_over(struct feed *feed, const struct identity *who, uint64_t print, int *ret,
		    struct err *err)
{
	bool known;

	if (print == 0 || !(str_eq(who->type, "ADDED") || str_eq(who->type, "MODIFIED")))
		return false;
	known = is_known(feed, who, print);
	if (!known && !is_echo(feed, who))
		return false;
	*ret = note_event(feed, identity_version(who), err);
	if (*ret == 0 && known)
		renew_known(feed, who);
	return true;
}

static int watch_event(struct feed *feed, const struct splitter_object *text, struct err *err)
{
	struct err why = {0};
	json_auto_t *event = NULL;
	const char *type = NULL;
	json_t *object = NULL;
	struct identity who;
	uint64_t print = fingerprint(text, true, &who);
	int result = 0;
	auto_free char *key = NULL;

	if (is_over(feed, &who, print, &result, err))
		return result;
	event = parse_object(text, &why);
	type = json_str_at(event, "type");
	object = json_at(event, "object");
	if (!event)
		return unreadable_event(feed, text, &why, err);
	if (str_eq(type, "ERROR") && json_is_object(object)) {
		kube_status_object_err(object, err);
		err->class = ERR_TRANSIENT;
		return -1;
	}
	if (!is_event(type, object))
		return bad_stream(feed, "not a watch event", text->text, text->len, err);
	if (note_event(feed, kube_resource_version(object), err) < 0)
		return -1;
	if (feed->phase != FEED_WATCH && str_eq(type, "BOOKMARK"))
		feed->version = kube_resource_version(object);
	key = json_key(object);
	if (str_eq(type, "BOOKMARK"))
		return on_bookmark(feed, object, err);
	if (str_eq(type, "DELETED"))
		cache_remove(feed->cache, key, kube_resource_version(object));
	else
		cache_put_text(feed->cache, json_incref(object), print);
	count_unreadable(feed);
	return 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static int on_object(void *arg, const struct splitter_object *object, struct err *err)
{
	struct feed *feed = arg;

	if (feed->phase != FEED_LIST)
		return watch_event(feed, object, err);
	return object->is_rest ? list_rest(feed, object, err) : list_item(feed, object, err);
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
		(void)complete_list(feed);
	return 0;
}
