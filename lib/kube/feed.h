/*
 * What the server says in lists and watches, taken over into a cache. Never touches a socket and knows no time: the informer
 * makes the calls, and feeds the bytes of each answer as they come.
 *
 * An answer is a page of a list, a watch that begins with all objects (a streamed list, KEP-3157), or a watch. `phase` says which
 * of them is to be asked for next, `next_page` and `version` from where.
 */
#ifndef ORBWEAVER_LIB_KUBE_FEED_H
#define ORBWEAVER_LIB_KUBE_FEED_H

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
};

/* Begin a new list: from the first page, or as a stream. What is not in it is removed from the cache at its end. */
void feed_list(struct feed *feed, bool stream);

/* The answer to the call that `phase` asks for begins. */
void feed_open(struct feed *feed);

/*
 * The next bytes of a 2xx answer. Errors are ERR_TRANSIENT: "BadStream", "BadJson", "ObjectTooLarge"; the reason of an ERROR
 * event ("Expired", …); "Restored": the list has begun anew, see feed_close.
 */
int feed_bytes(struct feed *feed, const char *bytes, size_t len, struct err *err);

/*
 * The answer came to its end. For a page that means: it is whole, or err is "BadStream". After the last one the cache is complete,
 * unless the list is older than what was seen before. Then the server was restored from a backup (or is another one), nothing
 * known can be compared with what it says, and the list begins anew.
 */
int feed_close(struct feed *feed, struct err *err);

void feed_done(struct feed *feed);

#endif
