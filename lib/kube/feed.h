// SPDX-License-Identifier: Apache-2.0
/*
 * What the server says in lists and watches, taken over into a cache: with the informer, what
 * client-go calls a reflector. Never touches a socket and
 * knows no time: the informer makes the calls, and feeds the bytes of each answer as they come.
 *
 * Objects are admitted one by one. One that cannot be read (too deep, too large, not what
 * json_parse takes) is put into the cache as that, reported once with its name, and the answer goes
 * on; it is over when the object can be read or is gone. Only an answer whose structure is broken,
 * or something that does not say which object it is, ends it.
 *
 * An answer is a page of a list, a watch that begins with all objects (a streamed list, KEP-3157),
 * or a watch. `phase` says which of them is to be asked for next, `next_page` and `version` from
 * where.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/metrics.h"
#include "lib/kube/cache.h"
#include "lib/kube/splitter.h"

enum feed_phase {
	FEED_LIST,   /* pages */
	FEED_STREAM, /* a watch that begins with all objects */
	FEED_WATCH,
};

struct feed {
	/* Filled by the owner, all borrowed. */
	const char *resource; /* for messages and metrics: "nodes" */
	struct cache *cache;
	const splitter_path *drops;
	size_t n_drops;
	struct metric *lists, *events; /* may be NULL */
	/* A gauge: objects that cannot be read at present; may be NULL. */
	struct metric *unreadable;
	/* A watch event was understood (not those of a streamed list). */
	void (*understood)(void *arg);
	/* The cache is equal to the server's list; the phase is FEED_WATCH now. */
	void (*complete)(void *arg);
	void *arg;

	/* To be read. */
	enum feed_phase phase;
	uint64_t version; /* of the last thing seen: where a watch goes on; 0 while listing */
	uint64_t seen;    /* the highest ever seen, in lists and watches */
	char *next_page;  /* continue token; NULL: the first page */

	/* inside */
	struct splitter splitter;
	bool streams; /* lists are streamed */
	size_t n_unreadable;
};

/*
 * Begin a new list: from the first page, or as a stream. What is not in it is removed from the
 * cache at its end. Pages in place of a stream that did not end are counted as the same list.
 */
void feed_list(struct feed *feed, bool stream);

/*
 * The server's newest version is lower than what was seen before: it was restored from a backup, or
 * is another one. Nothing known can be compared with what it says, and the list begins again.
 */
void feed_restored(struct feed *feed, uint64_t newest);

/* The answer to the call that `phase` asks for begins. */
void feed_open(struct feed *feed);

/*
 * The next bytes of a 2xx answer. Errors, all ERR_TRANSIENT:
 *
 *   "BadStream"          not the structure of a list or watch, or an object without a name
 *   "ObjectTooLarge"     a list whose metadata does not end
 *   "Restored"           the list, or an event of the watch, is older than what was seen before;
 *                        the list has begun again, as after feed_restored
 *   "NotStreamed"        a bookmark before the end of a streamed list: servers that know what they
 *                        were asked for send none
 *   "Expired", "Gone", … what an ERROR event says
 */
int feed_bytes(struct feed *feed, const char *bytes, size_t len, struct err *err);

/*
 * The answer came to its end. For a page that means: it is whole, or err is "BadStream". After the
 * last one the cache is complete, unless the list is older than what was seen before:
 * feed_restored.
 */
int feed_close(struct feed *feed, struct err *err);

void feed_done(struct feed *feed);
