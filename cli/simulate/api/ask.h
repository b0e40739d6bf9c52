// SPDX-License-Identifier: Apache-2.0
/* One request of a client, its parameters, and its answer. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli/simulate/api/api_internal.h"
#include "cli/simulate/api/path.h"
#include "cli/simulate/objects/selector.h"
#include "lib/http/server.h"

/* One request, while its handler runs. */
struct ask {
	struct api *api;
	const struct http_request *req;
	struct http_response *resp;
	struct api_path path;
	struct resource *resource;
	const char *user;
};

void ask_put_json(struct http_response *resp, int status, const json_t *value);
/* Takes the outcome's object. */
void ask_put_outcome(struct http_response *resp, struct outcome outcome);
void ask_put_not_served(struct http_response *resp);
void ask_put_method_not_allowed(struct http_response *resp);

/* A parameter that is there, and neither "false" nor "0". */
bool ask_is_true(const struct http_request *req, const char *name);
bool ask_is_dry_run(const struct http_request *req);
/* 0: not a number. */
uint64_t ask_number_of(const char *text);

/* Return new, or NULL with the answer given. An absent body is an empty object where it may be. */
struct selector *ask_take_selector(const struct ask *ask);
json_t *ask_take_body(const struct ask *ask, bool may_be_absent);
