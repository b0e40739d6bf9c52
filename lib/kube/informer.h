// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps a cache equal to the server: lists in pages, watches from there, resumes, lists again when
 * it has to.
 *
 * A broken watch goes on from the last version it saw (bookmarks move that forward while nothing
 * happens). A version that is too old (410, as status or as ERROR event) leads to a new list, whose
 * end removes what vanished meanwhile.
 *
 * A list is asked for as a stream first (KEP-3157): a watch that begins with all objects and says
 * where they end, one request in place of two and more. Servers that do not offer it say so, those
 * from 1.19 on since a watch may not have the parameter resourceVersionMatch there; then it is
 * pages, and all informers of the client know (kube_client_may_stream). A stream that breaks off
 * twice gives way to pages for this list.
 *
 * When etcd is restored from a backup, versions go backwards, and a watch that goes on from a
 * version of before would be silent for as long as the server is behind, and miss what happened
 * until then. So a list or an event that is older than what was seen makes all earlier versions
 * void; a watch that was silent for too long is not resumed but listed again; and the first watch
 * after a lost connection is preceded by a list of one object, for its version. What cannot be
 * noticed: a server that was restored and got ahead again before we were back; `etcdutl
 * --bump-revision` helps there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/metrics.h"
#include "lib/kube/api.h"
#include "lib/kube/cache.h"
#include "lib/kube/splitter.h"

enum {
	INFORMER_PAGE = 500,
	INFORMER_RETRY_FIRST_MS = 200,
	INFORMER_RETRY_MAX_MS = 10000,
	/* A watch ends by itself after this time and up to as much again; then it resumes. */
	INFORMER_WATCH_S = 300,
	/* Bookmarks come once a minute; a watch without a byte for this long hangs. */
	INFORMER_SILENCE_MS = 200000,
	INFORMER_LIST_TIMEOUT_MS = 120000,
};

struct informer_config {
	const struct kube_resource *resource; /* borrowed, as all here */
	const char *ns;                       /* NULL: all namespaces */
	const char *selector;                 /* "fieldSelector=metadata.name%3Dw1", or NULL */
	const splitter_path *drops;           /* never parsed: splitter.h */
	size_t n_drops;
	struct cache *cache;
	/*
	 * A kind that the cluster need not have: once NotServed, ask again after this time. 0: as
	 * after any failure.
	 */
	int64_t absent_retry_ms;
	int64_t silence_ms; /* 0: INFORMER_SILENCE_MS */
	/*
	 * The cache is complete for the first time. Changes come from the cache itself
	 * (cache_changed_fn).
	 *
	 * This, `listed` and `trouble` may come in the middle of receiving: they may add to queues
	 * and start calls, not cancel calls or free the informer.
	 */
	void (*synced)(void *arg);
	/* It is complete, as each time that the watch begins again. Before `synced`. */
	void (*listed)(void *arg);
	/*
	 * err: the kind cannot be listed or watched at present, called once per different text;
	 * NULL: it works (again). Reasons to expect: those of client.h, above all NotServed,
	 * Forbidden, ServerUnreachable, ServerUntrusted; BadStream and ObjectTooLarge (splitter.h).
	 * A connection that just ends is not trouble.
	 */
	void (*trouble)(void *arg, const struct err *err);
	void *arg;
	/*
	 * orbweaver_informer_{lists,events}_total{resource},
	 * orbweaver_informer_unreadable_objects{resource}; may be NULL.
	 */
	struct metrics *metrics;
};

struct informer;

/* Starts at once. */
struct informer *informer_new(struct loop *loop, struct kube_client *client,
			      const struct informer_config *config);
void informer_free(struct informer *informer);

bool informer_is_synced(const struct informer *informer);

/* How it goes; for gauges and /debug. */
struct informer_health {
	/*
	 * clock_ms since when the kind cannot be listed or watched, and why (a reason of
	 * `trouble`); 0 and "" while it can.
	 */
	int64_t broken_since_ms;
	const char *reason; /* borrowed until the next turn */
	/* clock_ms of the last event or bookmark, or end of a list; 0: never. */
	int64_t last_event_ms;
	uint64_t version;  /* the highest resourceVersion seen */
	size_t unreadable; /* objects that are there and cannot be read: cache_next_unreadable */
};

struct informer_health informer_health(const struct informer *informer);

/*
 * The answer to one of our own writes, known before the watch sends it: goes into the cache, unless
 * the watch is already past it (then the cache knows this and perhaps more, such as its deletion).
 * Takes a reference and trims the object: the caller reads nothing in it afterwards but who it is.
 */
void informer_learn(struct informer *informer, json_t *object);
