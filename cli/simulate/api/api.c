// SPDX-License-Identifier: Apache-2.0
/*
 * Puts the parts together, and what every cluster has from its beginning. The top of this folder.
 */
#include "cli/simulate/api/api.h"

#include <assert.h>

#include "cli/simulate/api/api_internal.h"
#include "cli/simulate/api/garbage.h"
#include "cli/simulate/api/rest.h"
#include "cli/simulate/api/webhooks.h"
#include "cli/simulate/api/write.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* Addresses of Services, as a real server hands them out by default. */
#define SERVICE_CIDR "10.96.0.0/16"
#define API_SERVICE  "10.96.0.1"

static void on_changed(void *arg, struct collection *collection)
{
	const struct api *api = arg;

	/* Not yet while the first objects are made. */
	if (api->watches)
		watches_changed(api->watches, collection);
}

static void on_leaving(void *arg, struct collection *collection)
{
	const struct api *api = arg;

	watches_end(api->watches, collection);
}

/* ---- objects of the server's own ------------------------------------------------------------- */

static void on_created(void *arg, struct outcome outcome)
{
	*(struct outcome *)arg = outcome;
}

int api_create(struct api *api, const json_t *object, struct err *err)
{
	const char *version = json_str_or(json_at(object, "apiVersion"), "");
	const char *slash = strchr(version, '/');
	auto_free char *group = slash ? str_ndup(version, (size_t)(slash - version)) : str_dup("");
	struct write_request request = {.verb = WRITE_CREATE,
					.ns = json_namespace(object),
					.manager = "orbweaver-simulate",
					.user = API_ADMIN};
	struct outcome outcome = {0};
	const char *reason;
	int result = 0;

	request.resource = resources_find_kind(&api->resources, group,
					       json_str_or(json_at(object, "kind"), ""));
	if (!request.resource)
		return err_set(err, ERR_INVALID, "NotFound", "no kind %s in %s",
			       json_str_or(json_at(object, "kind"), "(none)"), version);
	request.body = json_deep_copy(object);
	write_begin(api, &request, on_created, &outcome);
	reason = json_str_or(json_at(outcome.object, "reason"), "");
	if (outcome.status >= 400 && !str_eq(reason, "AlreadyExists"))
		result = err_set(err, ERR_INVALID, reason, "%s",
				 json_str_or(json_at(outcome.object, "message"), ""));
	json_decref(outcome.object);
	return result;
}

/* Takes object. */
static void seed(struct api *api, json_t *object)
{
	int result = api_create(api, object, NULL);

	assert(result == 0);
	json_decref(object);
}

/* ---- the life of a server -------------------------------------------------------------------- */

struct api *api_new(struct loop *loop, const char *token)
{
	struct api *api = mem_new(struct api);

	api->loop = loop;
	api->store = store_new(on_changed, api);
	resources_init(&api->resources, api->store, on_leaving, api);
	api->watches = watches_new(loop, api->store);
	api->webhooks = webhooks_new(api);
	api->garbage = garbage_new(api);
	api->tokens.free_value = mem_free;
	map_set(&api->tokens, token, str_dup(API_ADMIN));
	api->routes[0] = (struct http_route){
		.path = "/",
		.is_prefix = true,
		.methods = HTTP_GET | HTTP_POST | HTTP_PUT | HTTP_PATCH | HTTP_DELETE,
		.body_max = API_BODY_MAX,
		.takes_chunks = true, /* kubectl --raw */
		.handle = rest_handle,
		.arg = api,
	};
	static const char *const namespaces[] = {"default", "kube-system", "kube-public",
						 "kube-node-lease"};

	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
		seed(api, json_pack("{s:s, s:s, s:{s:s}}", "apiVersion", "v1", "kind", "Namespace",
				    "metadata", "name", namespaces[i]));
	seed(api,
	     json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:[{s:s, s:i, s:i}]}}",
		       "apiVersion", "v1", "kind", "Service", "metadata", "name", "kubernetes",
		       "namespace", "default", "spec", "clusterIP", API_SERVICE, "clusterIPs",
		       API_SERVICE, "ports", "name", "https", "port", 443, "targetPort", 6443));
	seed(api, json_pack("{s:s, s:s, s:{s:s}, s:{s:[s]}}", "apiVersion", "networking.k8s.io/v1",
			    "kind", "ServiceCIDR", "metadata", "name", "kubernetes", "spec",
			    "cidrs", SERVICE_CIDR));
	return api;
}

void api_free(struct api *api)
{
	if (!api)
		return;
	webhooks_free(api->webhooks);
	garbage_free(api->garbage);
	watches_free(api->watches);
	resources_done(&api->resources);
	store_free(api->store);
	map_done(&api->tokens);
	mem_free(api);
}

const struct http_route *api_routes(const struct api *api, size_t *ret_n)
{
	*ret_n = ARRAY_LEN(api->routes);
	return api->routes;
}
