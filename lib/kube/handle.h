// SPDX-License-Identifier: Apache-2.0
/*
 * Curl's easy handles: set up for one attempt of a call, kept for the next one, wiped of secrets in
 * between.
 */
#pragma once

#include <curl/curl.h>
#include <stddef.h>

#include "lib/kube/auth/config.h"
#include "lib/kube/auth/credentials.h"
#include "lib/kube/client.h"

enum {
	HANDLES_SPARE = 16,
};

/* The handles of one client, and where their requests go. Embedded. */
struct handle_pool {
	const struct kube_config *config; /* borrowed */
	char *base_url;
	char *host_header;             /* NULL: as in the URL */
	struct curl_slist *connect_to; /* tls-server-name: the real address under that name */
	CURL *spare[HANDLES_SPARE];
	size_t n_spare;
};

/* A handle in use. Embedded in the call; zero: none. */
struct handle {
	CURL *easy;
	struct curl_slist *headers; /* the token is among them */
};

/* The first one also initialises curl with our allocator and ignores SIGPIPE. */
void handle_pool_init(struct handle_pool *pool, const struct kube_config *config);
void handle_pool_done(struct handle_pool *pool);

/*
 * Fill an empty handle. What it does with the answer is set by the caller. request->body stays the
 * caller's.
 */
void handle_take(struct handle_pool *pool, const struct kube_request *request,
		 const struct kube_secret *secret, struct handle *ret);

/* The handle has left its connection. It is empty then; an empty one is fine. */
void handle_give_back(struct handle_pool *pool, struct handle *handle);
