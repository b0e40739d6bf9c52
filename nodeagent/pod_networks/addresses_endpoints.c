// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of SpiderEndpoints with this node's label, for addresses_watch.c, addresses_release.c and
 * addresses_report.c. Users may write these objects and their label: an answer is cut into objects
 * while it arrives, one that is too large is never parsed, and of the others little is kept, one
 * page at a time.
 */
#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/identity.h"
#include "lib/kube/splitter.h"
#include "nodeagent/pod_networks/addresses_internal.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/conflict.h"
#include "reconcilers/ipam/endpoint.h"

/*
 * Of an endpoint that is parsed, json_weight(): some 10 MB for a moment. All annotations that the
 * API server stores, and the items of a pod, are less.
 */
enum { ENDPOINT_WEIGHT = 65536 };

struct endpoints_list {
	struct addresses *addresses;
	char *ns; /* NULL: all namespaces */
	endpoints_fn *fn;
	void *arg;
	struct kube_call *call;
	struct splitter splitter;
	json_t *page;  /* what has arrived of it */
	char *next;    /* the page after it; NULL: none */
	bool is_whole; /* the answer is a list, to its end */
};

/* What is read of an endpoint. Returns new. */
static json_t *project_endpoint(const json_t *endpoint)
{
	static const char *const kept[] = {ENDPOINT_DOWN_ANNOTATION, ENDPOINT_ASKS_ANNOTATION,
					   ENDPOINT_CONFLICTS_ANNOTATION, NULL};
	const json_t *from = json_at(endpoint, "metadata"), *status = json_at(endpoint, "status");
	json_t *to = json_object(), *metadata = json_need_object(to, "metadata");

	json_put_str(metadata, "name", json_str_at(from, "name"));
	json_put_str(metadata, "namespace", json_str_at(from, "namespace"));
	json_put_str(metadata, "resourceVersion", json_str_at(from, "resourceVersion"));
	json_put(metadata, "annotations", limits_annotations(json_at(from, "annotations"), kept));
	json_put(to, "status", endpoint_addresses(status));
	json_put_str(json_at(to, "status"), "ownerControllerName",
		     json_str_at(status, "ownerControllerName"));
	return to;
}

/* Said once: users could write any number of them. */
static void leave_out(struct endpoints_list *list, const struct splitter_object *object)
{
	struct identity who = {0};

	if (list->addresses->has_left_out)
		return;
	list->addresses->has_left_out = true;
	(void)identity_read(object->text, object->len, false, &who);
	log_warn("a SpiderEndpoint of this node is too large, leaving it out",
		 F_STR("namespace", who.ns), F_STR("name", who.name),
		 F_INT("bytes", (int64_t)object->len), F_STR("remedy", "delete it"));
}

static int on_object(void *arg, const struct splitter_object *object, struct err *err)
{
	struct endpoints_list *list = arg;
	json_auto_t *parsed = NULL;

	if (object->is_rest) {
		parsed = json_parse(object->text, object->len, err);
		list->is_whole = kube_resource_version(parsed) > 0;
		if (!str_empty(json_str_at(parsed, "metadata", "continue")))
			list->next = str_dup(json_str_at(parsed, "metadata", "continue"));
		return parsed ? 0 : -1;
	}
	if (!object->unreadable &&
	    json_weight(object->text, object->len, ENDPOINT_WEIGHT) <= ENDPOINT_WEIGHT)
		parsed = json_parse(object->text, object->len, NULL);
	if (parsed)
		json_array_append_new(list->page, project_endpoint(parsed));
	else
		leave_out(list, object);
	return 0;
}

static int on_bytes(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct endpoints_list *list = arg;

	return splitter_feed(&list->splitter, bytes, len, err);
}

/* Perhaps not for the first time. */
static void on_open(void *arg)
{
	static const splitter_path drops[] = {
		{"metadata", "managedFields"},
		{"metadata", "labels"},
		{"metadata", "ownerReferences"},
		{"status", "current", "ips", "routes"},
	};
	struct endpoints_list *list = arg;

	json_array_clear(list->page);
	mem_free(take_ptr(list->next));
	list->is_whole = false;
	splitter_done(&list->splitter);
	splitter_init(&list->splitter, SPLITTER_LIST, drops, ARRAY_LEN(drops), false, on_object,
		      list);
}

static void on_done(void *arg, const struct kube_response *response, const struct err *err)
{
	struct endpoints_list *list = arg;
	json_auto_t *page = list->page;
	struct err broken = {0};

	list->call = NULL;
	list->page = json_array();
	if (!err && !list->is_whole) {
		(void)err_set(&broken, ERR_TRANSIENT, "BadStream",
			      "the server's answer for " KIND_ENDPOINT " is not a list");
		err = &broken;
	}
	/* It may free the list. */
	list->fn(list->arg, err ? NULL : page, !err && !list->next, err);
}

void endpoints_list_next(struct endpoints_list *list)
{
	auto_free char *label = addresses_node_query(list->addresses), *path = NULL;
	auto_strbuf struct strbuf query = {0};

	assert(!list->call);
	strbuf_addf(&query, "%s&limit=%d", label, ADDRESSES_ENDPOINTS_PAGE);
	if (list->next) {
		strbuf_adds(&query, "&continue=");
		kube_path_encode(&query, list->next);
	}
	path = kube_path(&addresses_endpoint, list->ns, NULL, NULL, strbuf_str(&query));
	list->call = kube_call(list->addresses->config.client, &(struct kube_request){
								       .verb = "list",
								       .method = "GET",
								       .path = path,
								       .on_bytes = on_bytes,
								       .on_open = on_open,
								       .done = on_done,
								       .arg = list,
							       });
}

struct endpoints_list *endpoints_list_new(struct addresses *addresses, const char *ns,
					  endpoints_fn *fn, void *arg)
{
	struct endpoints_list *list = mem_new(struct endpoints_list);

	assert(fn);
	list->addresses = addresses;
	list->ns = ns ? str_dup(ns) : NULL;
	list->fn = fn;
	list->arg = arg;
	list->page = json_array();
	endpoints_list_next(list);
	return list;
}

void endpoints_list_free(struct endpoints_list *list)
{
	if (!list)
		return;
	kube_call_cancel(list->call);
	splitter_done(&list->splitter);
	json_decref(list->page);
	mem_free(list->next);
	mem_free(list->ns);
	mem_free(list);
}
