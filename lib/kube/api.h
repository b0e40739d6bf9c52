// SPDX-License-Identifier: Apache-2.0
/*
 * The verbs of the Kubernetes API on objects as JSON.
 *
 * All calls are asynchronous (client.h: when the callback comes and what is retried). Objects
 * handed to callbacks are borrowed; objects handed to calls are only read.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/kube/client.h"

/* One resource of the API. Strings are static or outlive every use. */
struct kube_resource {
	const char *group; /* "" for the core group */
	const char *version;
	const char *plural;
	const char *kind;
	bool namespaced;
};

/* Those of Kubernetes that several programs use. */
extern const struct kube_resource kube_pods, kube_nodes, kube_config_maps, kube_events, kube_leases;

/*
 * "/apis/GROUP/VERSION/namespaces/NS/PLURAL/NAME/SUBRESOURCE?query": every part after the resource
 * may be NULL. ns NULL for a namespaced resource means all namespaces. Names are percent-encoded;
 * query is used as it is. Returns new; free().
 */
char *kube_path(const struct kube_resource *resource, const char *ns, const char *name,
		const char *subresource, const char *query);

/* `s` percent-encoded for a path segment or a query value, appended. */
void kube_path_encode(struct strbuf *out, const char *s);

/* An object of this resource that has its type and its name alone, new. ns: NULL for none. */
json_t *kube_object_new(const struct kube_resource *resource, const char *ns, const char *name);

enum kube_patch {
	KUBE_PATCH_MERGE,     /* RFC 7386 */
	KUBE_PATCH_STRATEGIC, /* lists of kinds of Kubernetes merge by key */
	KUBE_PATCH_JSON,      /* RFC 6902: body is an array */
	KUBE_PATCH_APPLY,     /* server-side apply */
};

/* How a write is made. `{0}` is an ordinary one. */
struct kube_write {
	const char *subresource;   /* "status", "scale" or NULL */
	const char *field_manager; /* NULL: the server derives one from the user agent */
	bool force;                /* apply: take over fields of other managers */
	bool dry_run;              /* the server checks, and stores nothing */
	bool at_once;              /* delete: without a grace period, as kubelets end a pod */
	bool fenced;               /* only the leader may (client.h) */
	bool faults_once;          /* as in kube_request */
	int64_t timeout_ms;        /* as in kube_request */
};

/* object is the answer's body, NULL exactly when err is set. */
typedef void kube_object_fn(void *arg, json_t *object, const struct err *err);

struct kube_call *kube_get(struct kube_client *client, const struct kube_resource *resource,
			   const char *ns, const char *name, const char *subresource,
			   kube_object_fn *done, void *arg);

/*
 * One page: query as in the API ("limit=500&continue=…&labelSelector=…"), or NULL. The object is
 * the List.
 */
struct kube_call *kube_list(struct kube_client *client, const struct kube_resource *resource,
			    const char *ns, const char *query, kube_object_fn *done, void *arg);

/*
 * The same for objects that users write, who choose how large they are: a number may stand in the
 * place of a part (lib/json/parse_within.h). The list is of all namespaces.
 */
struct kube_call *kube_get_within(struct kube_client *client, const struct kube_resource *resource,
				  const char *ns, const char *name, kube_object_fn *done,
				  void *arg);
struct kube_call *kube_list_within(struct kube_client *client, const struct kube_resource *resource,
				   const char *query, kube_object_fn *done, void *arg);

/* metadata.name (or generateName) and metadata.namespace say where. */
struct kube_call *kube_create(struct kube_client *client, const struct kube_resource *resource,
			      const json_t *object, const struct kube_write *how,
			      kube_object_fn *done, void *arg);

/* PUT; metadata.resourceVersion in the object makes it conditional. */
struct kube_call *kube_update(struct kube_client *client, const struct kube_resource *resource,
			      const json_t *object, const struct kube_write *how,
			      kube_object_fn *done, void *arg);

struct kube_call *kube_patch(struct kube_client *client, const struct kube_resource *resource,
			     const char *ns, const char *name, enum kube_patch type,
			     const json_t *patch, const struct kube_write *how,
			     kube_object_fn *done, void *arg);

/*
 * uid and resource_version are preconditions, NULL for none. An object that is gone already is
 * NotFound. Background propagation. The answer is a Status or the object in its last state.
 */
struct kube_call *kube_delete(struct kube_client *client, const struct kube_resource *resource,
			      const char *ns, const char *name, const char *uid,
			      const char *resource_version, const struct kube_write *how,
			      kube_object_fn *done, void *arg);

/* A GET of any path that answers JSON ("/version", "/apis"). */
struct kube_call *kube_get_path(struct kube_client *client, const char *path, kube_object_fn *done,
				void *arg);

/*
 * metadata.resourceVersion as a number (0: none): etcd revisions, ordered within a resource type.
 */
uint64_t kube_resource_version(const json_t *object);
