// SPDX-License-Identifier: Apache-2.0
/*
 * What a request's parameters and body mean, and answers as the real server words them. Between
 * lib/http and the handlers of rest.c.
 */
#include "cli/simulate/api/ask.h"

#include <string.h>

#include "cli/simulate/api/protobuf.h"
#include "cli/simulate/objects/failure.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/yaml.h"

/* ---- answers --------------------------------------------------------------------------------- */

void ask_put_json(struct http_response *resp, int status, const json_t *value)
{
	resp->status = status;
	resp->content_type = HTTP_JSON;
	json_write(value, &resp->body);
	strbuf_addc(&resp->body, '\n');
}

void ask_put_outcome(struct http_response *resp, struct outcome outcome)
{
	ask_put_json(resp, outcome.status, outcome.object);
	json_decref(outcome.object);
}

void ask_put_not_served(struct http_response *resp)
{
	ask_put_outcome(resp, outcome_of(failure_status(
				      404, "NotFound",
				      "the server could not find the requested resource", NULL)));
}

static void put_bad_request(struct http_response *resp, const struct err *err)
{
	ask_put_outcome(resp, outcome_bad_request("%s", err->text));
}

void ask_put_method_not_allowed(struct http_response *resp)
{
	ask_put_outcome(resp, outcome_of(failure_status(
				      405, "MethodNotAllowed",
				      "the server does not allow this method on the requested "
				      "resource",
				      NULL)));
}

/* ---- parameters ------------------------------------------------------------------------------ */

bool ask_is_true(const struct http_request *req, const char *name)
{
	const char *value = http_query_get(req, name);

	return value && !str_eq(value, "false") && !str_eq(value, "0");
}

bool ask_is_dry_run(const struct http_request *req)
{
	return str_eq(http_query_get(req, "dryRun"), "All");
}

uint64_t ask_number_of(const char *text)
{
	int64_t number;

	return str_to_int(text, 0, INT64_MAX, &number) ? (uint64_t)number : 0;
}

struct selector *ask_take_selector(const struct ask *ask)
{
	const struct selector_kind kind = {
		.group = ask->resource->group,
		.kind = ask->resource->kind,
		.namespaced = ask->resource->flags & RESOURCE_NAMESPACED,
		.selectable = ask->resource->selectable,
	};
	struct err err = {0};
	struct selector *selector = selector_new(&kind, http_query_get(ask->req, "labelSelector"),
						 http_query_get(ask->req, "fieldSelector"), &err);

	if (!selector)
		put_bad_request(ask->resp, &err);
	return selector;
}

static json_t *put_unsupported(struct http_response *resp, const char *message)
{
	ask_put_outcome(resp,
			outcome_of(failure_status(415, "UnsupportedMediaType", message, NULL)));
	return NULL;
}

json_t *ask_take_body(const struct ask *ask, bool may_be_absent)
{
	const struct http_request *req = ask->req;
	struct err err = {0};
	json_t *body;

	if (strstr(req->content_type, "cbor"))
		return put_unsupported(ask->resp,
				       "the body of the request was in an unknown format - "
				       "accepted media types include: application/json, "
				       "application/yaml, "
				       "application/vnd.kubernetes.protobuf");
	if (may_be_absent && req->body_len == 0)
		return json_object();
	if (strstr(req->content_type, "protobuf"))
		body = protobuf_object(req->body, req->body_len, &err);
	else if (strstr(req->content_type, "yaml"))
		body = yaml_parse(req->body, req->body_len, &err);
	else
		body = json_parse(req->body, req->body_len, &err);
	if (!body && str_eq(err.reason, "UnsupportedMediaType"))
		return put_unsupported(ask->resp, err.text);
	if (!body)
		put_bad_request(ask->resp, &err);
	return body;
}
