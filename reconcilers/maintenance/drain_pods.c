// SPDX-License-Identifier: Apache-2.0
/* Pods that hold what has to change: who they are, and what becomes of each. */
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/maintenance/drain_internal.h"

#define MIRROR_ANNOTATION "kubernetes.io/config.mirror"

void pod_verdict_done(struct pod_verdict *verdict)
{
	mem_free(verdict->message);
}

json_t *drain_pods_of(const json_t *state)
{
	json_t *pods = json_object(), *entry;
	size_t i;

	json_array_foreach (json_at(state, "status", "impact", "pods"), i, entry) {
		const char *pod = json_str_at(entry, "pod");

		if (pod && strchr(pod, '/') && !json_object_get(pods, pod))
			json_put_str(pods, pod, json_str_or(json_at(entry, "device"), "a device"));
	}
	return pods;
}

const json_t *drain_looked(const json_t *world)
{
	const json_t *look = world_get(world, BOX_DRAIN_LOOK, DRAIN_KEY);
	int64_t age = json_integer_value(json_at(world, "env", "nowMs")) -
		      json_integer_value(json_at(look, "atMs"));

	return age <= DRAIN_LOOK_OLD_MS ? look : NULL;
}

static struct pod_verdict ending(const json_t *pod, const char *key)
{
	const char *finalizer =
		json_string_value(json_array_get(json_at(pod, "metadata", "finalizers"), 0));

	return (struct pod_verdict){
		POD_ENDING, "PodTerminating",
		finalizer
			? str_printf("pod %s was asked to end, and its finalizer %.100s keeps it: "
				     "see who is to take that off",
				     key, finalizer)
			: str_printf("pod %s was asked to end: wait for its grace period", key),
		NULL};
}

static int64_t pause_after(int64_t tries)
{
	int64_t pause = DRAIN_LOOK_MS;

	for (int64_t i = 1; i < tries && pause < DRAIN_RETRY_MAX_MS; i++)
		pause *= 2;
	return pause < DRAIN_RETRY_MAX_MS ? pause : DRAIN_RETRY_MAX_MS;
}

/* It may be asked, but for what was answered lately. */
static struct pod_verdict asked(const json_t *world, const json_t *pod, const char *key)
{
	const json_t *answer = world_get(world, BOX_EVICTIONS, key);
	int64_t age = json_integer_value(json_at(world, "env", "nowMs")) -
		      json_integer_value(json_at(answer, "atMs"));
	const char *reason = json_str_at(answer, "reason");
	struct pod_verdict verdict = {.fate = POD_EVICTED, .uid = json_uid(pod)};

	if (!answer || !str_eq(json_str_at(answer, "uid"), json_uid(pod)))
		return verdict;
	if (!reason) {
		if (age < DRAIN_LOOK_OLD_MS)
			return ending(pod, key);
		return verdict;
	}
	if (age < pause_after(json_integer_value(json_at(answer, "tries"))))
		verdict.fate = POD_REFUSED;
	verdict.reason = reason;
	verdict.message = str_printf("pod %s: %s", key,
				     json_str_or(json_at(answer, "message"), "eviction refused"));
	return verdict;
}

/* On the deployment's own pods: the label of manifests/. */
static bool is_operator(const json_t *world, const json_t *pod)
{
	return str_eq(json_namespace(pod), world_env(world, "namespace")) &&
	       str_eq(json_str_at(pod, "metadata", "labels", "app.kubernetes.io/name"),
		      "orbweaver-operator");
}

/*
 * Static: the kubelet makes its own Node the owner, with its UID. Users can write the annotation,
 * and references to what they cannot read.
 * https://github.com/kubernetes/kubernetes/blob/v1.31.0/pkg/kubelet/pod/mirror_client.go
 */
static bool is_static(const json_t *world, const json_t *pod)
{
	const json_t *owner = owner_controller(pod);
	const char *name = json_str_at(pod, "spec", "nodeName");
	const json_t *node = name ? world_get(world, KIND_NODE, name) : NULL;

	return json_at(pod, "metadata", "annotations", MIRROR_ANNOTATION) && node &&
	       *json_uid(node) && str_eq(json_str_at(owner, "apiVersion"), "v1") &&
	       str_eq(json_str_at(owner, "kind"), "Node") &&
	       str_eq(json_str_at(owner, "name"), name) &&
	       str_eq(json_str_at(owner, "uid"), json_uid(node));
}

/*
 * A DaemonSet brings its pod back at once, and the node its static ones, whichever pod is evicted.
 */
static bool comes_back(const json_t *world, const json_t *pod)
{
	return str_eq(json_str_at(owner_controller(pod), "kind"), "DaemonSet") ||
	       is_static(world, pod) || is_operator(world, pod);
}

json_t *drain_pods_on(const json_t *world, const char *node)
{
	const json_t *pods = json_at(drain_looked(world), BOX_PODS_OF_NODE, node);
	json_t *ret, *pod;
	const char *key;

	assert(node);
	if (!pods)
		return NULL;
	ret = json_object();
	json_each (pods, key, pod)
		if (!pod_has_terminated(pod) && !comes_back(world, pod))
			json_put_str(ret, key, "the node");
	return ret;
}

struct pod_verdict drain_judge_pod(const json_t *world, const json_t *looked, const json_t *pool,
				   const char *node, const char *key)
{
	const json_t *pod = json_at(looked, key);
	const char *may = json_str_at(pool, "metadata", "annotations", DRAIN_UNMANAGED_ANNOTATION);

	assert(node && key);
	if (!pod)
		return (struct pod_verdict){.fate = POD_UNKNOWN};
	/* One of the same name elsewhere is another pod. */
	if (json_is_null(pod) || !str_eq(json_str_at(pod, "spec", "nodeName"), node) ||
	    pod_has_terminated(pod))
		return (struct pod_verdict){.fate = POD_GONE};
	if (json_at(pod, "metadata", "deletionTimestamp"))
		return ending(pod, key);
	if (is_static(world, pod))
		return (struct pod_verdict){
			POD_KEPT, "UnmanagedPod",
			str_printf("pod %s is static: nobody but its node can end it", key), NULL};
	if (!owner_controller(pod) && !str_eq(may, "true"))
		return (struct pod_verdict){
			POD_KEPT, "UnmanagedPod",
			str_printf("pod %s has no controller that makes it anew, so it is not "
				   "evicted: end it, or annotate the pool "
				   "with " DRAIN_UNMANAGED_ANNOTATION ": \"true\"",
				   key),
			NULL};
	return asked(world, pod, key);
}

void drain_project(json_t *object)
{
	static const char *const metadata[] = {"name",           "namespace",  "uid",
					       "labels",         "finalizers", "deletionTimestamp",
					       "ownerReferences"};
	json_t *kept = json_object(), *kept_metadata = json_need_object(kept, "metadata");

	for (size_t i = 0; i < ARRAY_LEN(metadata); i++)
		json_object_set(kept_metadata, metadata[i],
				json_at(object, "metadata", metadata[i]));
	if (json_at(object, "metadata", "annotations", MIRROR_ANNOTATION))
		json_put_str(json_need_object(kept_metadata, "annotations"), MIRROR_ANNOTATION,
			     "true");
	json_put_str(json_need_object(kept, "spec"), "nodeName",
		     json_str_at(object, "spec", "nodeName"));
	json_put_str(json_need_object(kept, "status"), "phase",
		     json_str_at(object, "status", "phase"));
	if (json_at(object, "spec", "unschedulable"))
		json_put_bool(json_need_object(kept, "spec"), "unschedulable", true);
	if (json_at(object, "status", "nodeInfo"))
		json_put_str(json_need_object(json_need_object(kept, "status"), "nodeInfo"),
			     "bootID", json_str_at(object, "status", "nodeInfo", "bootID"));
	if (json_at(object, "status", "conditions"))
		json_object_set(json_need_object(kept, "status"), "conditions",
				json_at(object, "status", "conditions"));
	if (json_at(object, "status", "allocatable"))
		json_object_set(json_need_object(kept, "status"), "allocatable",
				json_at(object, "status", "allocatable"));
	json_object_clear(object);
	json_object_update(object, kept);
	json_decref(kept);
}
