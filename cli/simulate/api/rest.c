// SPDX-License-Identifier: Apache-2.0
/*
 * Requests: the user, what the path means, and which verb it is (parameters and answers: ask.c).
 * Reads are answered here, changes by write.c, garbage.c and subresources.c.
 */
#include "cli/simulate/api/rest.h"

#include <string.h>

#include "cli/simulate/api/ask.h"
#include "cli/simulate/api/discovery.h"
#include "cli/simulate/api/garbage.h"
#include "cli/simulate/api/scale.h"
#include "cli/simulate/api/subresources.h"
#include "cli/simulate/api/write.h"
#include "cli/simulate/objects/apply.h"
#include "cli/simulate/objects/failure.h"
#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

#define OPENAPI_PROTO "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

enum {
	/* Watches that do not say how long end after this, plus up to as much. */
	WATCH_DEFAULT_S = 1800,
	WATCH_MAX_S = 24 * 3600,
};

/* ---- get, list, watch ------------------------------------------------------------------------ */

static bool take_view(const struct ask *ask, struct view *ret)
{
	if (view_of_request(ask->resource, ask->req, ret))
		return true;
	ask_put_outcome(ask->resp,
			outcome_of(failure_status(406, "NotAcceptable",
						  "only the following media types are accepted: "
						  "application/json",
						  NULL)));
	return false;
}

static void get(const struct ask *ask)
{
	auto_free char *key = api_key(ask->path.ns, ask->path.name);
	const struct store_entry *entry = collection_get(ask->resource->collection, key);
	json_auto_t *object = NULL;
	struct view view;

	if (!entry) {
		ask_put_outcome(ask->resp, outcome_not_found(ask->resource, ask->path.name));
		return;
	}
	if (str_eq(ask->path.subresource, "scale")) {
		object = collection_object(ask->resource->collection, key);
		ask_put_outcome(ask->resp, (struct outcome){200, scale_of(ask->resource, object)});
		return;
	}
	if (!take_view(ask, &view))
		return;
	ask->resp->content_type = HTTP_JSON;
	view_object(&view, entry->text, true, &ask->resp->body);
}

static bool read_token(const char *token, uint64_t *ret_version, char **ret_key)
{
	auto_strbuf struct strbuf text = {0};
	auto_free char *version = NULL;
	const char *blank;
	int64_t number;

	if (base64_decode(token, strlen(token), &text, NULL) < 0)
		return false;
	blank = strchr(strbuf_str(&text), ' ');
	if (!blank)
		return false;
	version = str_ndup(text.data, (size_t)(blank - text.data));
	if (!str_to_int(version, 1, INT64_MAX, &number))
		return false;
	*ret_version = (uint64_t)number;
	*ret_key = str_dup(blank + 1);
	return true;
}

struct page {
	const struct store_entry **entries;
	size_t len;
	uint64_t version;
	char *token; /* of the next one; NULL: the last */
	uint64_t remaining;
};

/* From `after` on, at most `limit` (0: all) of those that are selected. */
static void fill_page(const struct ask *ask, const struct selector *selector, const char *after,
		      uint64_t limit, struct page *ret)
{
	const struct collection *collection = ask->resource->collection;
	auto_free char *prefix = ask->path.ns ? str_printf("%s/", ask->path.ns) : str_dup("");
	size_t i = collection_after(collection, strcmp(after, prefix) > 0 ? after : prefix);

	ret->entries = mem_calloc(collection->len + 1, sizeof(*ret->entries));
	for (; i < collection->len && str_starts(collection->entries[i]->key, prefix); i++) {
		const struct store_entry *entry = collection->entries[i];

		if (!selector_matches(selector, entry->outline))
			continue;
		if (limit > 0 && ret->len == limit) {
			if (!ret->token) {
				auto_free char *text =
					str_printf("%llu %s", (unsigned long long)ret->version,
						   ret->entries[limit - 1]->key);
				auto_strbuf struct strbuf token = {0};

				/*
				 * What stands in metadata.continue: the version of the first page,
				 * and the last key of this one.
				 */
				base64_encode(text, strlen(text), &token);
				ret->token = strbuf_take(&token);
			}
			ret->remaining++;
		} else {
			ret->entries[ret->len++] = entry;
		}
	}
}

static void list(const struct ask *ask)
{
	const char *token = http_query_get(ask->req, "continue");
	auto_selector struct selector *selector = NULL;
	struct page page = {.version = store_version(ask->api->store)};
	auto_free char *after = str_dup("");
	json_auto_t *metadata = json_object();
	struct view view;

	selector = ask_take_selector(ask);
	if (!selector || !take_view(ask, &view))
		return;
	if (!str_empty(token)) {
		mem_free(take_ptr(after));
		if (!read_token(token, &page.version, &after)) {
			ask_put_outcome(ask->resp, outcome_bad_request(
							   "continue: not a token of this server"));
			return;
		}
		if (page.version < ask->resource->collection->forgotten) {
			ask_put_outcome(ask->resp, outcome_of(failure_status(
							   410, "Expired",
							   "The provided continue parameter is "
							   "too old to display a consistent "
							   "list result.",
							   NULL)));
			return;
		}
	}
	fill_page(ask, selector, after, ask_number_of(http_query_get(ask->req, "limit")), &page);
	json_put(metadata, "resourceVersion", json_fmt("%llu", (unsigned long long)page.version));
	if (page.token) {
		json_put_str(metadata, "continue", page.token);
		json_put_int(metadata, "remainingItemCount", (int64_t)page.remaining);
	}
	ask->resp->content_type = HTTP_JSON;
	view_list(&view, page.entries, page.len, metadata, &ask->resp->body);
	mem_free(page.entries);
	mem_free(page.token);
}

static void watch(const struct ask *ask)
{
	uint64_t seconds = ask_number_of(http_query_get(ask->req, "timeoutSeconds"));
	struct watch_request request = {
		.collection = ask->resource->collection,
		.ns = ask->path.ns,
		.version = ask_number_of(http_query_get(ask->req, "resourceVersion")),
		.is_streamed_list = ask_is_true(ask->req, "sendInitialEvents"),
		.has_bookmarks = ask_is_true(ask->req, "allowWatchBookmarks"),
	};

	if (!take_view(ask, &request.view))
		return;
	request.selector = ask_take_selector(ask);
	if (!request.selector)
		return;
	if (seconds == 0)
		seconds = WATCH_DEFAULT_S + clock_jitter(WATCH_DEFAULT_S);
	request.timeout_ms = (int64_t)(seconds < WATCH_MAX_S ? seconds : WATCH_MAX_S) * 1000;
	watches_begin(ask->api->watches, &request, ask->resp);
}

/* ---- create, update, patch ------------------------------------------------------------------- */

/* A write that answers the request, at once or later. */
struct answering {
	struct http_response *resp; /* while the handler runs; else NULL */
	struct http_later *later;
	bool is_answered;
};

static void on_written(void *arg, struct outcome outcome)
{
	struct answering *answering = arg;
	struct http_response resp = {.status = 200, .content_type = HTTP_JSON};

	if (answering->resp) {
		ask_put_outcome(answering->resp, outcome);
		answering->is_answered = true;
		return;
	}
	ask_put_outcome(&resp, outcome);
	http_later_answer(answering->later, &resp);
	mem_free(answering);
}

static void begin_write(const struct ask *ask, struct write_request *request)
{
	struct answering *answering = mem_new(struct answering);
	auto_free char *manager =
		apply_manager_name(http_query_get(ask->req, "fieldManager"), ask->req->user_agent);

	request->resource = ask->resource;
	request->ns = ask->path.ns ? ask->path.ns : "";
	request->manager = manager;
	request->user = ask->user;
	request->dry_run = ask_is_dry_run(ask->req);
	request->fields = str_eq(http_query_get(ask->req, "fieldValidation"), "Strict")
				  ? FIELDS_STRICT
				  : FIELDS_IGNORED;
	answering->resp = ask->resp;
	write_begin(ask->api, request, on_written, answering);
	if (answering->is_answered) {
		mem_free(answering);
		return;
	}
	answering->later = http_response_later(ask->resp);
	answering->resp = NULL;
}

/* NULL: none, or one that can be written. False: the answer is given. */
static bool take_subresource(const struct ask *ask, const char **ret)
{
	const char *name = ask->path.subresource;
	unsigned int flags = ask->resource->flags;

	*ret = NULL;
	if (!name)
		return true;
	if (str_eq(name, "status") && flags & RESOURCE_STATUS)
		*ret = "status";
	else if (str_eq(name, "scale") && flags & RESOURCE_SCALE)
		*ret = "scale";
	else
		ask_put_not_served(ask->resp);
	return *ret != NULL;
}

static bool is_of(const struct ask *ask, const char *plural, const char *subresource)
{
	return !ask->resource->group[0] && str_eq(ask->resource->plural, plural) &&
	       str_eq(ask->path.subresource, subresource);
}

static void create(const struct ask *ask)
{
	const char *ns = ask->path.ns, *name = ask->path.name;
	json_t *body = ask_take_body(ask, is_of(ask, "serviceaccounts", "token"));
	struct outcome outcome;

	if (!body)
		return;
	if (ask->resource->flags & RESOURCE_REVIEW && !name) {
		outcome = subresource_review(ask->api, ask->resource, body);
	} else if (!name) {
		begin_write(ask, &(struct write_request){.verb = WRITE_CREATE, .body = body});
		return;
	} else if (is_of(ask, "pods", "binding")) {
		outcome = subresource_bind(ask->api, ask->resource, ns, name, body);
	} else if (is_of(ask, "pods", "eviction")) {
		outcome = subresource_evict(ask->api, ask->resource, ns, name, body,
					    ask_is_dry_run(ask->req));
	} else if (is_of(ask, "serviceaccounts", "token")) {
		outcome = subresource_token(ask->api, ask->resource, ns, name, body);
	} else {
		ask_put_method_not_allowed(ask->resp);
		json_decref(body);
		return;
	}
	ask_put_outcome(ask->resp, outcome);
	json_decref(body);
}

static void update(const struct ask *ask)
{
	struct write_request request = {.verb = WRITE_UPDATE, .name = ask->path.name};

	if (!take_subresource(ask, &request.subresource))
		return;
	request.body = ask_take_body(ask, false);
	if (request.body)
		begin_write(ask, &request);
}

static void patch(const struct ask *ask)
{
	static const struct {
		const char *type;
		enum write_verb verb;
		enum patch_type patch;
	} types[] = {
		{"application/merge-patch+json", WRITE_PATCH, PATCH_MERGE},
		{"application/strategic-merge-patch+json", WRITE_PATCH, PATCH_STRATEGIC},
		{"application/json-patch+json", WRITE_PATCH, PATCH_JSON},
		{"application/apply-patch+yaml", WRITE_APPLY, PATCH_MERGE},
	};
	struct write_request request = {.name = ask->path.name,
					.force = ask_is_true(ask->req, "force")};
	size_t i = 0;

	while (i < ARRAY_LEN(types) && !str_starts(ask->req->content_type, types[i].type))
		i++;
	if (i == ARRAY_LEN(types)) {
		ask_put_outcome(
			ask->resp,
			outcome_of(failure_status(
				415, "UnsupportedMediaType",
				"the body of the request was in an unknown format - accepted "
				"media types include: application/json-patch+json, "
				"application/merge-patch+json, "
				"application/strategic-merge-patch+json, "
				"application/apply-patch+yaml",
				NULL)));
		return;
	}
	request.verb = types[i].verb;
	request.patch_type = types[i].patch;
	if (request.verb == WRITE_APPLY && str_empty(http_query_get(ask->req, "fieldManager"))) {
		ask_put_outcome(ask->resp,
				outcome_bad_request("fieldManager: is required for apply"));
		return;
	}
	if (!take_subresource(ask, &request.subresource))
		return;
	request.body = ask_take_body(ask, false);
	if (request.body)
		begin_write(ask, &request);
}

/* ---- delete ---------------------------------------------------------------------------------- */

struct deletion {
	enum propagation propagation;
	int64_t grace_s;
	bool dry_run;
	const char *uid, *version; /* preconditions, or NULL; borrowed from the options */
};

static struct deletion read_deletion(const struct ask *ask, const json_t *options)
{
	const char *policy = json_str_at(options, "propagationPolicy");
	const char *grace = http_query_get(ask->req, "gracePeriodSeconds");
	const json_t *given = json_at(options, "gracePeriodSeconds");
	struct deletion ret = {
		.grace_s = -1,
		.dry_run = ask_is_dry_run(ask->req) ||
			   json_list_has(json_at(options, "dryRun"), "All"),
		.uid = json_str_at(options, "preconditions", "uid"),
		.version = json_str_at(options, "preconditions", "resourceVersion"),
	};

	if (!policy)
		policy = http_query_get(ask->req, "propagationPolicy");
	if (str_eq(policy, "Foreground"))
		ret.propagation = PROPAGATE_FOREGROUND;
	else if (str_eq(policy, "Orphan") || json_is_true(json_at(options, "orphanDependents")))
		ret.propagation = PROPAGATE_ORPHAN;
	if (json_is_integer(given) && json_integer_value(given) >= 0 &&
	    json_integer_value(given) <= INT32_MAX)
		ret.grace_s = json_integer_value(given);
	else if (grace)
		(void)str_to_int(grace, 0, INT32_MAX, &ret.grace_s);
	return ret;
}

static struct outcome check_deletion(const struct ask *ask, const struct deletion *deletion,
				     const json_t *object)
{
	const char *version = json_str_or(json_at(object, "metadata", "resourceVersion"), "");

	if (deletion->uid && !str_eq(deletion->uid, json_uid(object)))
		return outcome_refused(409, "Conflict", ask->resource, json_name(object),
				       "Operation cannot be fulfilled on %s \"%s\": Precondition "
				       "failed: UID in precondition: %s, UID in object meta: %s",
				       ask->resource->plural, json_name(object), deletion->uid,
				       json_uid(object));
	if (deletion->version && !str_eq(deletion->version, version))
		return outcome_refused(409, "Conflict", ask->resource, json_name(object),
				       "Operation cannot be fulfilled on %s \"%s\": Precondition "
				       "failed: ResourceVersion in precondition: %s, "
				       "ResourceVersion in object meta: %s",
				       ask->resource->plural, json_name(object), deletion->version,
				       version);
	return (struct outcome){0};
}

static struct outcome deleted(const struct ask *ask, const json_t *object)
{
	json_t *details = json_object();

	json_put_str(details, "name", json_name(object));
	if (ask->resource->group[0])
		json_put_str(details, "group", ask->resource->group);
	json_put_str(details, "kind", ask->resource->plural);
	json_put_str(details, "uid", json_uid(object));
	return (struct outcome){200, json_pack("{s:s, s:s, s:{}, s:s, s:o}", "kind", "Status",
					       "apiVersion", "v1", "metadata", "status", "Success",
					       "details", details)};
}

static void delete_one(const struct ask *ask)
{
	auto_free char *key = api_key(ask->path.ns, ask->path.name);
	json_auto_t *object = collection_object(ask->resource->collection, key);
	json_auto_t *options = NULL;
	struct deletion deletion;
	struct outcome outcome;
	bool is_gone = false;

	if (!object) {
		ask_put_outcome(ask->resp, outcome_not_found(ask->resource, ask->path.name));
		return;
	}
	options = ask_take_body(ask, true);
	if (!options)
		return;
	deletion = read_deletion(ask, options);
	outcome = check_deletion(ask, &deletion, object);
	if (outcome.status) {
		ask_put_outcome(ask->resp, outcome);
		return;
	}
	if (deletion.dry_run) {
		ask_put_outcome(ask->resp, deleted(ask, object));
		return;
	}
	json_replace(&object, garbage_delete(ask->api->garbage, ask->resource, key,
					     deletion.propagation, deletion.grace_s, &is_gone));
	if (is_gone) {
		ask_put_outcome(ask->resp, deleted(ask, object));
	} else {
		view_to_client(ask->resource, object);
		ask_put_json(ask->resp, 200, object);
	}
	garbage_settle(ask->api->garbage);
}

static void delete_collection(const struct ask *ask)
{
	auto_selector struct selector *selector = ask_take_selector(ask);
	json_auto_t *options = selector ? ask_take_body(ask, true) : NULL, *keys = json_array();
	struct deletion deletion;
	struct page page = {0};
	json_t *item;
	size_t i;

	if (!options)
		return;
	deletion = read_deletion(ask, options);
	fill_page(ask, selector, "", 0, &page);
	for (i = 0; i < page.len; i++)
		json_array_append_new(keys, json_string(page.entries[i]->key));
	mem_free(page.entries);
	json_array_foreach (keys, i, item) {
		bool is_gone = false;

		if (deletion.dry_run ||
		    !collection_get(ask->resource->collection, json_string_value(item)))
			continue;
		json_decref(garbage_delete(ask->api->garbage, ask->resource,
					   json_string_value(item), deletion.propagation,
					   deletion.grace_s, &is_gone));
	}
	garbage_settle(ask->api->garbage);
	ask_put_outcome(ask->resp,
			(struct outcome){200, json_pack("{s:s, s:s, s:{}, s:s}", "kind", "Status",
							"apiVersion", "v1", "metadata", "status",
							"Success")});
}

/* ---- dispatch -------------------------------------------------------------------------------- */

/* What a real server would ask a kubelet, or a network that is not there. */
static bool is_refused_subresource(const struct ask *ask)
{
	static const char *const names[] = {"log", "exec", "attach", "portforward", "proxy"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(ask->path.subresource, names[i]))
			return true;
	return false;
}

static void dispatch(const struct ask *ask)
{
	const struct api_path *path = &ask->path;

	if (is_refused_subresource(ask)) {
		ask_put_outcome(
			ask->resp,
			outcome_bad_request("%s \"%s\": no %s here: containers of simulated "
					    "nodes do not run",
					    ask->resource->plural, path->name, path->subresource));
		return;
	}
	if (ask->resource->flags & RESOURCE_REVIEW && ask->req->method != HTTP_POST) {
		ask_put_method_not_allowed(ask->resp);
		return;
	}
	switch (ask->req->method) {
	case HTTP_GET:
		if (path->subresource && !str_eq(path->subresource, "status") &&
		    !(str_eq(path->subresource, "scale") && ask->resource->flags & RESOURCE_SCALE))
			ask_put_not_served(ask->resp);
		else if (path->name)
			get(ask);
		else if (ask_is_true(ask->req, "watch"))
			watch(ask);
		else
			list(ask);
		return;
	case HTTP_POST:
		create(ask);
		return;
	case HTTP_PUT:
	case HTTP_PATCH:
		if (!path->name)
			ask_put_method_not_allowed(ask->resp);
		else if (ask->req->method == HTTP_PUT)
			update(ask);
		else
			patch(ask);
		return;
	case HTTP_DELETE:
		if (path->subresource)
			ask_put_method_not_allowed(ask->resp);
		else if (path->name)
			delete_one(ask);
		else
			delete_collection(ask);
		return;
	}
}

static void on_resource(struct ask *ask)
{
	bool is_namespaced;

	ask->resource = resources_of_path(&ask->api->resources, &ask->path);
	if (!ask->resource) {
		ask_put_not_served(ask->resp);
		return;
	}
	is_namespaced = ask->resource->flags & RESOURCE_NAMESPACED;
	/* All namespaces are for lists and watches only. */
	if (is_namespaced ? !ask->path.ns && (ask->path.name || ask->req->method != HTTP_GET)
			  : ask->path.ns != NULL)
		ask_put_not_served(ask->resp);
	else
		dispatch(ask);
}

static void on_api(struct ask *ask)
{
	json_auto_t *document = NULL;

	if (!api_path_parse(ask->req->path, &ask->path)) {
		ask_put_not_served(ask->resp);
	} else if (ask->path.resource) {
		on_resource(ask);
	} else {
		document = discovery_of_path(&ask->api->resources, &ask->path);
		if (document && ask->req->method == HTTP_GET)
			ask_put_json(ask->resp, 200, document);
		else
			ask_put_not_served(ask->resp);
	}
	api_path_done(&ask->path);
}

static void on_openapi(struct ask *ask)
{
	const char *rest = ask->req->path + strlen("/openapi/v");
	json_auto_t *document = NULL;
	bool is_proto = strstr(ask->req->accept, "protobuf") != NULL;

	if (str_eq(rest, "2")) {
		ask->resp->content_type = is_proto ? OPENAPI_PROTO : HTTP_JSON;
		discovery_openapi_v2(is_proto, &ask->resp->body);
		return;
	}
	if (str_eq(rest, "3")) {
		document = discovery_openapi_v3(&ask->api->resources);
	} else if (str_starts(rest, "3/")) {
		if (api_path_parse(rest + 1, &ask->path))
			document = discovery_openapi_v3_of(&ask->api->resources, &ask->path);
		api_path_done(&ask->path);
	}
	if (document)
		ask_put_json(ask->resp, 200, document);
	else
		ask_put_not_served(ask->resp);
}

/* The user whom a token stands for; NULL: none. */
static const char *user_of(const struct ask *ask)
{
	const char *authorization = ask->req->authorization;

	if (strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	authorization += 7;
	return map_get(&ask->api->tokens, authorization + strspn(authorization, " "));
}

static bool is_health(const char *path)
{
	return str_eq(path, "/healthz") || str_eq(path, "/livez") || str_eq(path, "/readyz");
}

void rest_handle(const struct http_request *req, struct http_response *resp, void *arg)
{
	struct ask ask = {.api = arg, .req = req, .resp = resp};

	if (is_health(req->path)) {
		strbuf_adds(&resp->body, "ok");
		return;
	}
	if (str_eq(req->path, "/version")) {
		ask_put_outcome(resp, (struct outcome){200, discovery_version()});
		return;
	}
	ask.user = user_of(&ask);
	if (!ask.user)
		ask_put_outcome(resp, outcome_of(failure_status(401, "Unauthorized", "Unauthorized",
								NULL)));
	else if (str_starts(req->path, "/openapi/v"))
		on_openapi(&ask);
	else
		on_api(&ask);
}
