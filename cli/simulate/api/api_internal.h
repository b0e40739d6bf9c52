// SPDX-License-Identifier: Apache-2.0
/* What the files of this folder share of one API server, and of one request. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/simulate/api/api.h"
#include "cli/simulate/api/path.h"
#include "cli/simulate/api/resources.h"
#include "cli/simulate/api/store.h"
#include "cli/simulate/api/watch.h"
#include "lib/base/map.h"

#define API_ADMIN "admin"

struct webhooks;
struct garbage;

struct api {
	struct loop *loop;
	struct store *store;
	struct resources resources;
	struct watches *watches;
	struct webhooks *webhooks;
	struct garbage *garbage;
	struct map tokens; /* token: name of the user, owned */
	struct http_route routes[1];
};

/* What comes out of a request that changes something. */
struct outcome {
	int status;     /* of HTTP */
	json_t *object; /* owned; an object, or a metav1.Status */
};

/* A failure as an outcome: takes the Status. */
static inline struct outcome outcome_of(json_t *status)
{
	return (struct outcome){(int)json_integer_value(json_object_get(status, "code")), status};
}

/* 404: `pods "x" not found`. */
struct outcome outcome_not_found(const struct resource *resource, const char *name);
/* 400 with a message. */
struct outcome outcome_bad_request(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Any other, with details of group, kind and name. */
struct outcome outcome_refused(int code, const char *reason, const struct resource *resource,
			       const char *name, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* "ns/name", or "name". Returns new; free(). */
char *api_key(const char *ns, const char *name);
