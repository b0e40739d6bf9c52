// SPDX-License-Identifier: Apache-2.0
/*
 * Rounds: one write asks the webhooks that match it one after the other, through lib/kube's client,
 * one for each server that a configuration names. Called by write.c between its steps.
 */
#include "cli/simulate/api/webhooks.h"

#include <assert.h>
#include <string.h>

#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/patch.h"
#include "lib/base/base64.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/random.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/client.h"
#include "reconcilers/core/labels.h"
#include "reconcilers/core/names.h"
#include "reconcilers/core/problems.h"

enum {
	/* Servers that configurations name; the client of the oldest is dropped beyond. */
	SERVERS_MAX = 16,
	/* What timeoutSeconds may say. */
	TIMEOUT_MAX_S = 30,
	TIMEOUT_DEFAULT_S = 10,
};

struct server {
	char *url; /* without a path */
	char *bundle;
	struct kube_config config;
	struct kube_client *client;
};

struct round {
	struct round *next;
	struct webhooks *all;
	json_t *hooks;   /* those that match, in order */
	size_t at;       /* the one that is asked */
	json_t *request; /* of the AdmissionReview, without the objects */
	json_t *object, *old;
	bool is_mutating;
	struct kube_call *call;
	webhooks_done_fn *done;
	void *arg;
};

struct webhooks {
	struct api *api;
	struct server servers[SERVERS_MAX];
	size_t servers_len;
	struct round *rounds; /* in flight */
};

struct webhooks *webhooks_new(struct api *api)
{
	struct webhooks *webhooks = mem_new(struct webhooks);

	webhooks->api = api;
	return webhooks;
}

static void server_done(struct server *server)
{
	kube_client_free(server->client);
	kube_config_done(&server->config);
	mem_free(server->url);
	mem_free(server->bundle);
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool list_takes(const json_t *list, const char *value)
{
	return json_list_has(list, "*") || json_list_has(list, value);
}

/* Resources and subresources: RESOURCE, RESOURCE/SUBRESOURCE, each of them a name or a star. */
static bool takes_resource(const json_t *list, const char *plural, const char *subresource)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const char *text = json_str_or(item, ""), *slash = strchr(text, '/');
		size_t len = slash ? (size_t)(slash - text) : strlen(text);
		bool is_any = len == 1 && text[0] == '*';

		if (!is_any && (strlen(plural) != len || strncmp(plural, text, len) != 0))
			continue;
		if (subresource
			    ? slash && (str_eq(slash + 1, "*") || str_eq(slash + 1, subresource))
			    : !slash || (is_any && str_eq(slash + 1, "*")))
			return true;
	}
	return false;
}

static bool rule_matches(const json_t *rule, const struct admission *a)
{
	const char *scope = json_str_or(json_at(rule, "scope"), "*");
	bool is_namespaced = a->resource->flags & RESOURCE_NAMESPACED;

	return list_takes(json_at(rule, "operations"), a->operation) &&
	       list_takes(json_at(rule, "apiGroups"), a->resource->group) &&
	       list_takes(json_at(rule, "apiVersions"), a->resource->version) &&
	       takes_resource(json_at(rule, "resources"), a->resource->plural, a->subresource) &&
	       (str_eq(scope, "*") || str_eq(scope, is_namespaced ? "Namespaced" : "Cluster"));
}

static bool selector_takes(const json_t *selector, const json_t *object)
{
	auto_problems struct problems problems = {0};

	if (!selector || json_object_size(selector) == 0)
		return true;
	label_selector_check(selector, "selector", &problems);
	return problems.total == 0 &&
	       label_selector_matches(selector, json_at(object, "metadata", "labels"));
}

bool webhooks_match(const json_t *webhook, const struct admission *admission,
		    const json_t *namespace_object)
{
	const char *effects = json_str_or(json_at(webhook, "sideEffects"), "");
	bool is_namespace = str_eq(admission->resource->plural, "namespaces");
	json_t *rule;
	size_t i;

	if (admission->is_dry_run && !str_eq(effects, "None") && !str_eq(effects, "NoneOnDryRun"))
		return false;
	if (is_namespace)
		namespace_object = admission->object ? admission->object : admission->old;
	if (namespace_object &&
	    !selector_takes(json_at(webhook, "namespaceSelector"), namespace_object))
		return false;
	if (!selector_takes(json_at(webhook, "objectSelector"), admission->object) &&
	    !(admission->old && selector_takes(json_at(webhook, "objectSelector"), admission->old)))
		return false;
	json_array_foreach (json_at(webhook, "rules"), i, rule)
		if (rule_matches(rule, admission))
			return true;
	return false;
}

static json_t *matching(const struct webhooks *webhooks, bool is_mutating,
			const struct admission *admission)
{
	const struct resources *resources = &webhooks->api->resources;
	const struct collection *configurations =
		resources_find(resources, "admissionregistration.k8s.io", "v1",
			       is_mutating ? "mutatingwebhookconfigurations"
					   : "validatingwebhookconfigurations")
			->collection;
	json_auto_t *ns = NULL;
	json_t *hooks = json_array();

	/* Configurations themselves are never asked about: a bad one could not be removed. */
	if (configurations->len == 0 ||
	    str_eq(admission->resource->group, "admissionregistration.k8s.io"))
		return hooks;
	if (admission->ns)
		ns = collection_object(
			resources_find(resources, "", "v1", "namespaces")->collection,
			admission->ns);
	for (size_t i = 0; i < configurations->len; i++) {
		json_auto_t *configuration =
			collection_object(configurations, configurations->entries[i]->key);
		json_t *webhook;
		size_t j;

		json_array_foreach (json_at(configuration, "webhooks"), j, webhook)
			if (webhooks_match(webhook, admission, ns))
				json_array_append(hooks, webhook);
	}
	return hooks;
}

/* ---- the server ------------------------------------------------------------------------------ */

/* Find or make the client of a URL's server; *ret_path is what follows in the URL. */
static struct kube_client *client_of(struct webhooks *webhooks, const char *url, const char *bundle,
				     const char **ret_path, struct err *err)
{
	const char *path =
		str_starts(url, "https://") ? strchr(url + strlen("https://"), '/') : NULL;
	auto_free char *base = path ? str_ndup(url, (size_t)(path - url)) : str_dup(url);
	json_auto_t *config = NULL;
	auto_free char *text = NULL;
	struct server server = {0};

	if (!str_starts(url, "https://")) {
		(void)err_set(err, ERR_INVALID, "BadUrl", "clientConfig.url %s: must be https://",
			      url);
		return NULL;
	}
	*ret_path = path ? path : "/";
	for (size_t i = 0; i < webhooks->servers_len; i++)
		if (str_eq(webhooks->servers[i].url, base) &&
		    str_eq(webhooks->servers[i].bundle, bundle))
			return webhooks->servers[i].client;
	config = json_pack("{s:s, s:[{s:s, s:{s:s, s:s*}}], s:[{s:s, s:{s:s, s:s}}], s:[{s:s, "
			   "s:{}}], s:s}",
			   "kind", "Config", "clusters", "name", "w", "cluster", "server", base,
			   "certificate-authority-data", bundle[0] ? bundle : NULL, "contexts",
			   "name", "w", "context", "cluster", "w", "user", "w", "users", "name",
			   "w", "user", "current-context", "w");
	text = json_text(config);
	if (kube_config_parse(&(struct kube_config_source){.kubeconfig = "clientConfig"}, text,
			      strlen(text), &server.config, err) < 0)
		return NULL;
	if (webhooks->servers_len == SERVERS_MAX) {
		(void)err_set(err, ERR_TRANSIENT, "TooMany", "more than %d servers of webhooks",
			      SERVERS_MAX);
		kube_config_done(&server.config);
		return NULL;
	}
	server.url = take_ptr(base);
	server.bundle = str_dup(bundle);
	webhooks->servers[webhooks->servers_len] = server;
	webhooks->servers[webhooks->servers_len].client = kube_client_new(
		webhooks->api->loop, &webhooks->servers[webhooks->servers_len].config, NULL);
	return webhooks->servers[webhooks->servers_len++].client;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

/* Takes the refusal's object. */
static void round_end(struct round *round, struct outcome refusal)
{
	webhooks_done_fn *done = round->done;
	json_t *object = refusal.status ? NULL : json_incref(round->object);
	void *arg = round->arg;
	struct round **at = &round->all->rounds;

	while (*at != round)
		at = &(*at)->next;
	*at = round->next;
	json_decref(round->hooks);
	json_decref(round->request);
	json_decref(round->object);
	json_decref(round->old);
	mem_free(round);
	done(arg, refusal, object);
}

static void ask_next(struct round *round);

static const json_t *hook_of(const struct round *round)
{
	return json_array_get(round->hooks, round->at);
}

/* It could not be asked, or its answer is none. */
static void on_failure(struct round *round, const char *why)
{
	const json_t *hook = hook_of(round);
	auto_free char *message = NULL;

	log_warn("webhook failed", F_STR("webhook", json_str_or(json_at(hook, "name"), "")),
		 F_STR("policy", json_str_or(json_at(hook, "failurePolicy"), "")),
		 F_STR("error", why));
	if (str_eq(json_str_at(hook, "failurePolicy"), "Ignore")) {
		round->at++;
		ask_next(round);
		return;
	}
	message = str_printf("Internal error occurred: failed calling webhook \"%s\": %s",
			     json_str_or(json_at(hook, "name"), ""), why);
	round_end(round, outcome_of(failure_status(500, "InternalError", message, NULL)));
}

static struct outcome denied(const json_t *hook, const json_t *response)
{
	const json_t *status = json_at(response, "status");
	const char *said = json_str_or(json_at(status, "message"), "");
	int64_t code = json_integer_value(json_at(status, "code"));
	auto_free char *message = str_printf("admission webhook \"%s\" denied the request%s%s",
					     json_str_or(json_at(hook, "name"), ""),
					     said[0] ? ": " : " without explanation", said);

	return outcome_of(failure_status(code >= 400 && code < 600 ? (int)code : 403,
					 json_str_or(json_at(status, "reason"), "Forbidden"),
					 message, json_at(status, "details")));
}

/* Apply what a mutating webhook answered. */
static int mutate(struct round *round, const json_t *response, struct err *err)
{
	const char *text = json_str_at(response, "patch");
	auto_strbuf struct strbuf bytes = {0};
	json_auto_t *patch = NULL, *after = NULL;

	if (!text || !round->is_mutating)
		return 0;
	if (!str_eq(json_str_at(response, "patchType"), "JSONPatch"))
		return err_set(err, ERR_INVALID, "BadPatch", "patchType must be JSONPatch");
	if (base64_decode(text, strlen(text), &bytes, err) < 0)
		return -1;
	patch = json_parse(strbuf_str(&bytes), bytes.len, err);
	if (!patch || patch_object(PATCH_JSON, NULL, round->object, patch, &after, err) < 0)
		return -1;
	if (!json_is_object(json_at(after, "metadata")))
		return err_set(err, ERR_INVALID, "BadPatch", "the patch removes metadata");
	json_replace(&round->object, json_incref(after));
	return 0;
}

static void on_answer(void *arg, const struct kube_response *answer, const struct err *failure)
{
	struct round *round = arg;
	json_auto_t *review = NULL;
	struct err err = {0};
	const json_t *response;

	round->call = NULL;
	if (failure) {
		on_failure(round, failure->text);
		return;
	}
	review = json_parse(answer->body, answer->body_len, &err);
	response = json_at(review, "response");
	if (!response ||
	    !str_eq(json_str_at(response, "uid"), json_str_at(round->request, "uid"))) {
		on_failure(round, review ? "expected response.uid of the request" : err.text);
		return;
	}
	if (!json_is_true(json_at(response, "allowed"))) {
		round_end(round, denied(hook_of(round), response));
		return;
	}
	if (mutate(round, response, &err) < 0) {
		on_failure(round, err.text);
		return;
	}
	round->at++;
	ask_next(round);
}

static json_t *review_of(const struct round *round)
{
	json_t *request = json_copy(round->request);

	json_put(request, "object", round->object ? json_incref(round->object) : json_null());
	json_put(request, "oldObject", round->old ? json_incref(round->old) : json_null());
	return json_pack("{s:s, s:s, s:o}", "kind", "AdmissionReview", "apiVersion",
			 "admission.k8s.io/v1", "request", request);
}

static void ask_next(struct round *round)
{
	const json_t *hook = hook_of(round);
	const char *url = json_str_at(hook, "clientConfig", "url"), *path = "";
	int64_t timeout_s = json_integer_value(json_at(hook, "timeoutSeconds"));
	json_auto_t *review = NULL;
	struct kube_client *client;
	struct err err = {0};
	char *body;

	if (!hook) {
		round_end(round, (struct outcome){0});
		return;
	}
	if (!url) {
		on_failure(round, "clientConfig.service leads nowhere: this server has no pod "
				  "network, use clientConfig.url");
		return;
	}
	client = client_of(round->all, url,
			   json_str_or(json_at(hook, "clientConfig", "caBundle"), ""), &path, &err);
	if (!client) {
		on_failure(round, err.text);
		return;
	}
	if (timeout_s < 1 || timeout_s > TIMEOUT_MAX_S)
		timeout_s = TIMEOUT_DEFAULT_S;
	review = review_of(round);
	body = json_text(review);
	round->call = kube_call(client, &(struct kube_request){
						.verb = "review",
						.method = "POST",
						.path = path,
						.content_type = "application/json",
						.body = body,
						.body_len = strlen(body),
						.timeout_ms = timeout_s * 1000,
						.once = true,
						.done = on_answer,
						.arg = round,
					});
}

static json_t *group_version(const struct resource *resource, const char *key, const char *value)
{
	return json_pack("{s:s, s:s, s:s}", "group", resource->group, "version", resource->version,
			 key, value);
}

static json_t *request_of(const struct admission *a)
{
	json_t *request = json_object();
	unsigned char b[8];

	random_bytes(b, sizeof(b));
	json_put(request, "uid",
		 json_fmt("%02x%02x%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5],
			  b[6], b[7]));
	json_put(request, "kind", group_version(a->resource, "kind", a->resource->kind));
	json_put(request, "resource", group_version(a->resource, "resource", a->resource->plural));
	json_put_str(request, "subResource", a->subresource);
	json_put(request, "requestKind", group_version(a->resource, "kind", a->resource->kind));
	json_put(request, "requestResource",
		 group_version(a->resource, "resource", a->resource->plural));
	json_put_str(request, "name", a->name);
	json_put_str(request, "namespace", a->ns);
	json_put_str(request, "operation", a->operation);
	json_put(request, "userInfo",
		 json_pack("{s:s, s:[s, s]}", "username", a->user, "groups",
			   str_eq(a->user, API_ADMIN) ? "system:masters" : "system:serviceaccounts",
			   "system:authenticated"));
	json_put_bool(request, "dryRun", a->is_dry_run);
	return request;
}

void webhooks_ask(struct webhooks *webhooks, bool is_mutating, const struct admission *admission,
		  webhooks_done_fn *done, void *arg)
{
	struct round *round = mem_new(struct round);

	assert(admission && done);
	round->all = webhooks;
	round->hooks = matching(webhooks, is_mutating, admission);
	round->request = request_of(admission);
	round->object = admission->object ? json_incref((json_t *)admission->object) : NULL;
	round->old = admission->old ? json_incref((json_t *)admission->old) : NULL;
	round->is_mutating = is_mutating;
	round->done = done;
	round->arg = arg;
	round->next = webhooks->rounds;
	webhooks->rounds = round;
	ask_next(round);
}

void webhooks_free(struct webhooks *webhooks)
{
	if (!webhooks)
		return;
	while (webhooks->rounds) {
		kube_call_cancel(webhooks->rounds->call);
		round_end(webhooks->rounds, outcome_of(failure_status(503, "ServiceUnavailable",
								      "the server ends", NULL)));
	}
	for (size_t i = 0; i < webhooks->servers_len; i++)
		server_done(&webhooks->servers[i]);
	mem_free(webhooks);
}
