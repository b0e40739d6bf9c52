// SPDX-License-Identifier: Apache-2.0
/*
 * Watches: streams of a collection's events.
 *
 * A watch holds a place in the history that all watches of the collection share (store.h), and
 * takes from there as fast as its client reads. One that falls behind the history's end is Expired,
 * as on a real server: the client lists again.
 *
 * Source: Kubernetes documentation, "Kubernetes API Concepts", Efficient detection of changes.
 */
#pragma once

#include "cli/simulate/api/store.h"
#include "cli/simulate/api/view.h"
#include "cli/simulate/objects/selector.h"
#include "lib/http/server.h"
#include "lib/loop/loop.h"

/* Bookmarks come this often. */
#define WATCH_BOOKMARK_MS 60000

struct watches;

/* loop and store are borrowed. */
struct watches *watches_new(struct loop *loop, struct store *store);
/* All streams must have ended. */
void watches_free(struct watches *watches);

struct watch_request {
	struct view view;
	struct collection *collection;
	const char *ns;            /* NULL: all; copied */
	struct selector *selector; /* taken; NULL: everything */
	/*
	 * Where to begin: after `version`, or with all objects as they are now when it is 0 or
	 * is_streamed_list.
	 */
	uint64_t version;
	bool is_streamed_list; /* sendInitialEvents: a bookmark says where they end */
	bool has_bookmarks;
	int64_t timeout_ms;
};

/* Make resp the stream. */
void watches_begin(struct watches *watches, const struct watch_request *request,
		   struct http_response *resp);

/* The collection has changed: its watches go on in the loop's next turn. */
void watches_changed(struct watches *watches, const struct collection *collection);
/* End those of the collection. */
void watches_end(struct watches *watches, const struct collection *collection);
