// SPDX-License-Identifier: Apache-2.0
/* Paths, bodies and answers of the API's verbs; the calls themselves are call.c's. */
#include "lib/kube/api.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/json/parse_within.h"

const struct kube_resource kube_pods = {"", "v1", "pods", "Pod", true};
const struct kube_resource kube_nodes = {"", "v1", "nodes", "Node", false};
const struct kube_resource kube_config_maps = {"", "v1", "configmaps", "ConfigMap", true};
const struct kube_resource kube_events = {"", "v1", "events", "Event", true};
const struct kube_resource kube_leases = {"coordination.k8s.io", "v1", "leases", "Lease", true};

void kube_path_encode(struct strbuf *out, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || strchr("-._~", c);

		if (plain)
			strbuf_addc(out, (char)c);
		else
			strbuf_addf(out, "%%%02X", c);
	}
}

static void add_segment(struct strbuf *path, const char *segment)
{
	strbuf_addc(path, '/');
	kube_path_encode(path, segment);
}

char *kube_path(const struct kube_resource *resource, const char *ns, const char *name,
		const char *subresource, const char *query)
{
	auto_strbuf struct strbuf path = {0};

	assert(resource->version && resource->plural);
	if (resource->group[0])
		strbuf_addf(&path, "/apis/%s/%s", resource->group, resource->version);
	else
		strbuf_addf(&path, "/api/%s", resource->version);
	if (resource->namespaced && !str_empty(ns)) {
		strbuf_adds(&path, "/namespaces");
		add_segment(&path, ns);
	}
	add_segment(&path, resource->plural);
	if (name)
		add_segment(&path, name);
	if (subresource)
		add_segment(&path, subresource);
	if (!str_empty(query))
		strbuf_addf(&path, "?%s", query);
	return strbuf_take(&path);
}

json_t *kube_object_new(const struct kube_resource *resource, const char *ns, const char *name)
{
	json_t *object = json_object(), *metadata = json_need_object(object, "metadata");

	assert(resource->version && resource->kind);
	json_put(object, "apiVersion",
		 *resource->group ? json_fmt("%s/%s", resource->group, resource->version)
				  : json_string(resource->version));
	json_put_str(object, "kind", resource->kind);
	json_put_str(metadata, "name", name);
	json_put_str(metadata, "namespace", ns);
	return object;
}

uint64_t kube_resource_version(const json_t *object)
{
	const char *text = json_str_at(object, "metadata", "resourceVersion");
	int64_t version = 0;

	return str_to_int(text, 0, INT64_MAX, &version) ? (uint64_t)version : 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

struct waiting {
	kube_object_fn *done;
	void *arg;
	json_t *(*parse)(const char *text, size_t len, struct err *err);
};

static void on_answer(void *arg, const struct kube_response *response, const struct err *err)
{
	struct waiting *w = arg;
	json_auto_t *object = NULL;
	struct err parse = {0};

	if (!err) {
		object = w->parse(response->body, response->body_len, &parse);
		if (!object) {
			err_in(&parse, "the API server's answer");
			parse.class = ERR_TRANSIENT;
			err = &parse;
		}
	}
	w->done(w->arg, object, err);
}

static struct kube_call *send_and_parse(struct kube_client *client, struct kube_request *request,
					json_t *(*parse)(const char *text, size_t len,
							 struct err *err),
					kube_object_fn *done, void *arg)
{
	struct waiting *w = mem_new(struct waiting);

	w->done = done;
	w->arg = arg;
	w->parse = parse;
	request->done = on_answer;
	request->arg = w;
	request->free_arg = mem_free;
	return kube_call(client, request);
}

static struct kube_call *send_request(struct kube_client *client, struct kube_request *request,
				      kube_object_fn *done, void *arg)
{
	return send_and_parse(client, request, json_parse, done, arg);
}

static json_t *parse_object_within(const char *text, size_t len, struct err *err)
{
	return json_parse_within(text, len, false, err);
}

static json_t *parse_list_within(const char *text, size_t len, struct err *err)
{
	return json_parse_within(text, len, true, err);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

struct kube_call *kube_get_path(struct kube_client *client, const char *path, kube_object_fn *done,
				void *arg)
{
	return send_request(client,
			    &(struct kube_request){.verb = "get", .method = "GET", .path = path},
			    done, arg);
}

struct kube_call *kube_get(struct kube_client *client, const struct kube_resource *resource,
			   const char *ns, const char *name, const char *subresource,
			   kube_object_fn *done, void *arg)
{
	auto_free char *path = kube_path(resource, ns, name, subresource, NULL);

	assert(done);
	return kube_get_path(client, path, done, arg);
}

struct kube_call *kube_list(struct kube_client *client, const struct kube_resource *resource,
			    const char *ns, const char *query, kube_object_fn *done, void *arg)
{
	auto_free char *path = kube_path(resource, ns, NULL, NULL, query);

	return send_request(client,
			    &(struct kube_request){.verb = "list", .method = "GET", .path = path},
			    done, arg);
}

struct kube_call *kube_get_within(struct kube_client *client, const struct kube_resource *resource,
				  const char *ns, const char *name, kube_object_fn *done, void *arg)
{
	auto_free char *path = kube_path(resource, ns, name, NULL, NULL);

	assert(done);
	return send_and_parse(client,
			      &(struct kube_request){.verb = "get", .method = "GET", .path = path},
			      parse_object_within, done, arg);
}

struct kube_call *kube_list_within(struct kube_client *client, const struct kube_resource *resource,
				   const char *query, kube_object_fn *done, void *arg)
{
	auto_free char *path = kube_path(resource, NULL, NULL, NULL, query);

	assert(done);
	return send_and_parse(client,
			      &(struct kube_request){.verb = "list", .method = "GET", .path = path},
			      parse_list_within, done, arg);
}

static char *write_query(const struct kube_write *how)
{
	auto_strbuf struct strbuf query = {0};

	if (how->field_manager) {
		strbuf_adds(&query, "fieldManager=");
		kube_path_encode(&query, how->field_manager);
	}
	if (how->force)
		strbuf_addf(&query, "%sforce=true", query.len ? "&" : "");
	if (how->dry_run)
		strbuf_addf(&query, "%sdryRun=All", query.len ? "&" : "");
	return strbuf_take(&query);
}

static struct kube_call *send_write(struct kube_client *client, struct kube_request *request,
				    const json_t *body, const struct kube_write *how,
				    kube_object_fn *done, void *arg)
{
	struct strbuf text = {0};

	json_write(body, &text);
	request->body_len = text.len;
	request->body = strbuf_take(&text);
	request->fenced = how->fenced;
	request->faults_once = how->faults_once;
	request->timeout_ms = how->timeout_ms;
	if (!request->content_type)
		request->content_type = "application/json";
	return send_request(client, request, done, arg);
}

struct kube_call *kube_create(struct kube_client *client, const struct kube_resource *resource,
			      const json_t *object, const struct kube_write *how,
			      kube_object_fn *done, void *arg)
{
	auto_free char *query = write_query(how);
	/* What is created under a name ("eviction", "token") carries that name itself. */
	auto_free char *path =
		kube_path(resource, json_namespace(object),
			  how->subresource ? json_name(object) : NULL, how->subresource, query);
	struct kube_request request = {.verb = "create", .method = "POST", .path = path};

	return send_write(client, &request, object, how, done, arg);
}

struct kube_call *kube_update(struct kube_client *client, const struct kube_resource *resource,
			      const json_t *object, const struct kube_write *how,
			      kube_object_fn *done, void *arg)
{
	auto_free char *query = write_query(how);
	auto_free char *path = kube_path(resource, json_namespace(object), json_name(object),
					 how->subresource, query);
	struct kube_request request = {.verb = "update", .method = "PUT", .path = path};

	return send_write(client, &request, object, how, done, arg);
}

static const char *patch_type(enum kube_patch type)
{
	switch (type) {
	case KUBE_PATCH_MERGE:
		return "application/merge-patch+json";
	case KUBE_PATCH_STRATEGIC:
		return "application/strategic-merge-patch+json";
	case KUBE_PATCH_JSON:
		return "application/json-patch+json";
	case KUBE_PATCH_APPLY:
		return "application/apply-patch+yaml"; /* JSON is YAML */
	}
	return NULL;
}

struct kube_call *kube_patch(struct kube_client *client, const struct kube_resource *resource,
			     const char *ns, const char *name, enum kube_patch type,
			     const json_t *patch, const struct kube_write *how,
			     kube_object_fn *done, void *arg)
{
	auto_free char *query = write_query(how);
	auto_free char *path = kube_path(resource, ns, name, how->subresource, query);
	struct kube_request request = {
		.verb = type == KUBE_PATCH_APPLY ? "apply" : "patch",
		.method = "PATCH",
		.path = path,
		.content_type = patch_type(type),
	};

	return send_write(client, &request, patch, how, done, arg);
}

struct kube_call *kube_delete(struct kube_client *client, const struct kube_resource *resource,
			      const char *ns, const char *name, const char *uid,
			      const char *resource_version, const struct kube_write *how,
			      kube_object_fn *done, void *arg)
{
	auto_free char *query = write_query(&(struct kube_write){.dry_run = how->dry_run});
	auto_free char *path = kube_path(resource, ns, name, NULL, query);
	struct kube_request request = {.verb = "delete", .method = "DELETE", .path = path};
	json_auto_t *options =
		json_pack("{s:s, s:s, s:s, s:{}}", "apiVersion", "v1", "kind", "DeleteOptions",
			  "propagationPolicy", "Background", "preconditions");
	json_t *preconditions = json_at(options, "preconditions");

	assert(name && how);
	json_put_str(preconditions, "uid", uid);
	json_put_str(preconditions, "resourceVersion", resource_version);
	if (how->at_once)
		json_put_int(options, "gracePeriodSeconds", 0);
	return send_write(client, &request, options, how, done, arg);
}
