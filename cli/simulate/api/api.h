// SPDX-License-Identifier: Apache-2.0
/*
 * An API server in memory, for trying and for tests: the subset of the Kubernetes API that the
 * operator, simulated nodes and kubectl need, as one handler of lib/http.
 *
 * Served: discovery, OpenAPI as far as kubectl asks for it, get, list, watch, create, update, patch
 * of four types, delete, deletecollection, status, scale, binding, eviction, token requests,
 * reviews, CustomResourceDefinitions with validation, admission webhooks, and garbage collection.
 *
 * Not served: rights (every valid token may do all), CEL (rules of definitions and matchConditions
 * of webhooks), conversion webhooks, quotas, logs and exec.
 *
 * All state is in memory, on one loop, without threads.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/http/server.h"
#include "lib/loop/loop.h"

/* Of /version. */
#define API_MAJOR "1"
#define API_MINOR "33"

/* Bytes of one request's body; etcd's bound on objects is half of it. */
#define API_BODY_MAX (3 * 1024 * 1024)

struct api;

/*
 * loop is borrowed. token: what clients show as "Authorization: Bearer TOKEN" to be the
 * administrator; copied. The namespaces that every cluster has are there already.
 */
struct api *api_new(struct loop *loop, const char *token);
/* All connections must have ended. */
void api_free(struct api *api);

/* The routes for http_server_config: borrowed, valid as long as the api. */
const struct http_route *api_routes(const struct api *api, size_t *ret_n);

/*
 * Create an object of any served kind, as by a request of the administrator; where it exists, it
 * stays. Without webhooks. Returns 0, or -1 with err: reason and text are those of the Status.
 */
int api_create(struct api *api, const json_t *object, struct err *err);
