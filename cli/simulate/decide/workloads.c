// SPDX-License-Identifier: Apache-2.0
/*
 * Controllers of workloads, as far as simulated clusters need them: compare what is owned with what
 * is wanted. The nodes process carries the plan out, and asks again when anything of it changes.
 */
#include "cli/simulate/decide/workloads.h"

#include <string.h>

#include "cli/simulate/decide/scheduler.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/pod.h"

#define HASH_LABEL     "pod-template-hash"
#define REVISION_LABEL "controller-revision-hash"

struct plan_of {
	const json_t *object;
	const char *kind, *now;
	char hash[20]; /* of the template */
	json_t *create, *scale, *remove;
};

/* ---- parts ----------------------------------------------------------------------------------- */

static int64_t replicas_of(const json_t *object)
{
	const json_t *replicas = json_at(object, "spec", "replicas");

	return replicas ? json_integer_value(replicas) : 1;
}

static bool is_ready(const json_t *pod)
{
	return str_eq(condition_status_of(json_at(pod, "status", "conditions"), "Ready"), "True");
}

static bool is_of_template(const struct plan_of *p, const json_t *owned, const char *label)
{
	return str_eq(json_str_at(owned, "metadata", "labels", label), p->hash);
}

static json_t *owner_of(const struct plan_of *p)
{
	return json_pack("[{s:s, s:s, s:s, s:s, s:b, s:b}]", "apiVersion", "apps/v1", "kind",
			 p->kind, "name", json_name(p->object), "uid", json_uid(p->object),
			 "controller", 1, "blockOwnerDeletion", 1);
}

/* An object from the template, new: with its labels and annotations, ours and the owner. */
static json_t *from_template(const struct plan_of *p, const char *label)
{
	json_t *made = json_deep_copy(json_at(p->object, "spec", "template"));
	json_t *metadata;

	if (!made)
		made = json_object();
	metadata = json_need_object(made, "metadata");
	json_put_str(metadata, "namespace", json_namespace(p->object));
	json_put(metadata, "ownerReferences", owner_of(p));
	json_put_str(json_need_object(metadata, "labels"), label, p->hash);
	return made;
}

static json_t *pod_from_template(const struct plan_of *p, const char *label)
{
	json_t *pod = from_template(p, label);
	json_t *metadata = json_at(pod, "metadata");

	json_put_str(pod, "apiVersion", "v1");
	json_put_str(pod, "kind", "Pod");
	json_put(metadata, "generateName", json_fmt("%s-", json_name(p->object)));
	return pod;
}

static void drop(const struct plan_of *p, const json_t *owned)
{
	if (!object_is_terminating(owned))
		json_array_append_new(p->remove, json_string(json_name(owned)));
}

static json_t *status_new(const struct plan_of *p)
{
	json_t *status = json_object();

	json_put_int(status, "observedGeneration", json_generation(p->object));
	return status;
}

/* ---- ReplicaSet ------------------------------------------------------------------------------ */

static json_t *plan_replica_set(const struct plan_of *p, const json_t *pods)
{
	const char *hash = json_str_at(p->object, "metadata", "labels", HASH_LABEL);
	int64_t wanted = replicas_of(p->object), alive = 0, ready = 0;
	json_t *pod, *status = status_new(p);
	size_t i;

	json_array_foreach ((json_t *)pods, i, pod) {
		if (pod_has_terminated(pod) || object_is_terminating(pod))
			continue;
		if (++alive > wanted)
			drop(p, pod);
		else
			ready += is_ready(pod);
	}
	for (int64_t n = alive; n < wanted; n++) {
		json_t *made = pod_from_template(p, HASH_LABEL);

		if (hash)
			json_put_str(json_at(made, "metadata", "labels"), HASH_LABEL, hash);
		else
			json_object_del(json_at(made, "metadata", "labels"), HASH_LABEL);
		json_array_append_new(p->create, made);
	}
	if (alive > wanted)
		alive = wanted;
	json_put_int(status, "replicas", alive);
	json_put_int(status, "fullyLabeledReplicas", alive);
	json_put_int(status, "readyReplicas", ready);
	json_put_int(status, "availableReplicas", ready);
	return status;
}

/* ---- Deployment ------------------------------------------------------------------------------ */

static json_t *replica_set_new(const struct plan_of *p)
{
	json_t *template = json_deep_copy(json_at(p->object, "spec", "template"));
	json_t *metadata, *labels;
	json_t *set = json_pack(
		"{s:s, s:s, s:{s:o, s:s, s:o, s:O*}, s:{s:I, s:{s:O*}, s:o}}", "apiVersion",
		"apps/v1", "kind", "ReplicaSet", "metadata", "name",
		json_fmt("%s-%s", json_name(p->object), p->hash), "namespace",
		json_namespace(p->object), "ownerReferences", owner_of(p), "labels",
		json_at(p->object, "spec", "template", "metadata", "labels"), "spec", "replicas",
		(json_int_t)replicas_of(p->object), "selector", "matchLabels",
		json_at(p->object, "spec", "selector", "matchLabels"), "template", template);

	metadata = json_need_object(template, "metadata");
	json_put_str(json_need_object(metadata, "labels"), HASH_LABEL, p->hash);
	/* Not the template's own, which would change with it. */
	labels = json_deep_copy(json_at(metadata, "labels"));
	json_put(json_at(set, "metadata"), "labels", labels);
	json_put(json_need_object(json_at(set, "spec"), "selector"), "matchLabels",
		 json_deep_copy(json_at(p->object, "spec", "selector", "matchLabels")));
	json_put_str(json_need_object(json_at(set, "spec", "selector"), "matchLabels"), HASH_LABEL,
		     p->hash);
	return set;
}

static int64_t status_count(const json_t *object, const char *key)
{
	return json_integer_value(json_at(object, "status", key));
}

static void put_conditions(const struct plan_of *p, json_t *status, bool available)
{
	const json_t *before = json_at(p->object, "status", "conditions");
	static const char *const types[] = {"Available", "Progressing"};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		const json_t *old = condition_find(before, types[i]);
		const char *value = i == 1 || available ? "True" : "False";
		const char *reason = i == 1      ? "NewReplicaSetAvailable"
				     : available ? "MinimumReplicasAvailable"
						 : "MinimumReplicasUnavailable";
		const char *since = str_eq(json_str_at(old, "status"), value)
					    ? json_str_at(old, "lastTransitionTime")
					    : NULL;

		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", types[i],
						"status", value, "reason", reason, "message", "",
						"lastTransitionTime", since ? since : p->now));
	}
	json_put(status, "conditions", list);
}

static json_t *plan_deployment(const struct plan_of *p, const json_t *sets)
{
	int64_t wanted = replicas_of(p->object), all = 0, ready = 0, updated = 0;
	json_t *set, *status = status_new(p);
	bool found = false;
	size_t i;

	json_array_foreach ((json_t *)sets, i, set) {
		bool current = is_of_template(p, set, HASH_LABEL);
		int64_t should = current ? wanted : 0;

		if (object_is_terminating(set))
			continue;
		found |= current;
		if (replicas_of(set) != should)
			json_array_append_new(p->scale,
					      json_pack("{s:s, s:I}", "name", json_name(set),
							"replicas", (json_int_t)should));
		all += status_count(set, "replicas");
		ready += current ? status_count(set, "readyReplicas") : 0;
		updated += current ? status_count(set, "replicas") : 0;
	}
	if (!found)
		json_array_append_new(p->create, replica_set_new(p));
	json_put_int(status, "replicas", all);
	json_put_int(status, "updatedReplicas", updated);
	json_put_int(status, "readyReplicas", ready);
	json_put_int(status, "availableReplicas", ready);
	if (wanted > ready)
		json_put_int(status, "unavailableReplicas", wanted - ready);
	put_conditions(p, status, ready >= wanted);
	return status;
}

/* ---- DaemonSet ------------------------------------------------------------------------------- */

/* The controller's own, so that pods run on nodes that no other pods may use. */
static void put_daemon_tolerations(json_t *pod)
{
	static const char *const taints[] = {
		"node.kubernetes.io/not-ready",     "node.kubernetes.io/unreachable",
		"node.kubernetes.io/disk-pressure", "node.kubernetes.io/memory-pressure",
		"node.kubernetes.io/pid-pressure",  "node.kubernetes.io/unschedulable",
	};
	json_t *spec = json_need_object(pod, "spec");

	if (!json_is_array(json_at(spec, "tolerations")))
		json_put(spec, "tolerations", json_array());
	for (size_t i = 0; i < ARRAY_LEN(taints); i++)
		json_array_append_new(
			json_at(spec, "tolerations"),
			json_pack("{s:s, s:s}", "key", taints[i], "operator", "Exists"));
}

static void bind_to(json_t *pod, const char *node)
{
	json_t *affinity = json_need_object(json_need_object(pod, "spec"), "affinity");

	json_put(json_need_object(affinity, "nodeAffinity"),
		 "requiredDuringSchedulingIgnoredDuringExecution",
		 json_pack("{s:[{s:[{s:s, s:s, s:[s]}]}]}", "nodeSelectorTerms", "matchFields",
			   "key", "metadata.name", "operator", "In", "values", node));
}

/* The node that a pod of ours is for. */
static const char *node_of(const json_t *pod)
{
	const json_t *terms =
		json_at(pod, "spec", "affinity", "nodeAffinity",
			"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms");
	const json_t *field = json_array_get(json_at(json_array_get(terms, 0), "matchFields"), 0);
	const char *bound = json_str_at(pod, "spec", "nodeName");

	return bound ? bound : json_string_value(json_array_get(json_at(field, "values"), 0));
}

static json_t *plan_daemon_set(const struct plan_of *p, const json_t *pods, const json_t *nodes)
{
	json_auto_t *model = pod_from_template(p, REVISION_LABEL), *has = json_object();
	int64_t desired = 0, current = 0, ready = 0, updated = 0;
	json_t *pod, *node, *status = status_new(p);
	size_t i;

	put_daemon_tolerations(model);
	json_array_foreach ((json_t *)pods, i, pod) {
		const char *name = node_of(pod);

		if (!name || pod_has_terminated(pod) || !is_of_template(p, pod, REVISION_LABEL) ||
		    json_object_get(has, name))
			drop(p, pod);
		else
			json_object_set(has, name, pod);
	}
	json_array_foreach ((json_t *)nodes, i, node) {
		const char *name = json_name(node);
		const json_t *mine = json_object_get(has, name);
		bool may = !scheduler_refusal(model, node);

		desired += may;
		if (may && !mine) {
			json_t *made = json_deep_copy(model);

			bind_to(made, name);
			json_array_append_new(p->create, made);
		} else if (!may && mine) {
			drop(p, mine);
		} else if (mine) {
			current++;
			updated++;
			ready += is_ready(mine) && !object_is_terminating(mine);
		}
		json_object_del(has, name);
	}
	/* Nodes that are gone. */
	{
		const char *name;

		json_each (has, name, pod)
			drop(p, pod);
	}
	json_put_int(status, "desiredNumberScheduled", desired);
	json_put_int(status, "currentNumberScheduled", current);
	json_put_int(status, "updatedNumberScheduled", updated);
	json_put_int(status, "numberReady", ready);
	json_put_int(status, "numberAvailable", ready);
	json_put_int(status, "numberMisscheduled", 0);
	return status;
}

/* ---- StatefulSet ----------------------------------------------------------------------------- */

/* Its number; -1: it is none of the set. */
static int64_t ordinal_of(const struct plan_of *p, const json_t *pod)
{
	const char *set = json_name(p->object), *name = json_name(pod);
	size_t len = strlen(set);
	int64_t ordinal;

	return strncmp(name, set, len) == 0 && name[len] == '-' &&
			       str_to_int(name + len + 1, 0, INT32_MAX, &ordinal)
		       ? ordinal
		       : -1;
}

static const json_t *pod_with(const struct plan_of *p, const json_t *pods, int64_t ordinal)
{
	const json_t *pod;
	size_t i;

	json_array_foreach ((json_t *)pods, i, pod)
		if (ordinal_of(p, pod) == ordinal)
			return pod;
	return NULL;
}

static json_t *stateful_pod(const struct plan_of *p, int64_t ordinal)
{
	json_t *pod = pod_from_template(p, REVISION_LABEL), *metadata = json_at(pod, "metadata");
	json_auto_t *name = json_fmt("%s-%lld", json_name(p->object), (long long)ordinal);

	json_object_del(metadata, "generateName");
	json_put(metadata, "name", json_incref(name));
	json_put(json_at(metadata, "labels"), "statefulset.kubernetes.io/pod-name",
		 json_incref(name));
	return pod;
}

/* One after the other, unless the policy is Parallel. */
static json_t *plan_stateful_set(const struct plan_of *p, const json_t *pods)
{
	bool parallel = str_eq(json_str_at(p->object, "spec", "podManagementPolicy"), "Parallel");
	int64_t wanted = replicas_of(p->object), there = 0, ready = 0, updated = 0;
	bool may_create = true;
	json_t *pod, *status = status_new(p);
	size_t i;

	for (int64_t n = 0; n < wanted; n++) {
		const json_t *mine = pod_with(p, pods, n);

		if (!mine && may_create)
			json_array_append_new(p->create, stateful_pod(p, n));
		if (mine && (pod_has_terminated(mine) || !is_of_template(p, mine, REVISION_LABEL)))
			drop(p, mine);
		there += mine != NULL;
		updated += mine && is_of_template(p, mine, REVISION_LABEL);
		ready += mine && is_ready(mine) && !object_is_terminating(mine);
		may_create &= parallel || (mine && is_ready(mine));
	}
	json_array_foreach ((json_t *)pods, i, pod)
		if (ordinal_of(p, pod) >= wanted)
			drop(p, pod);
	json_put_int(status, "replicas", there);
	json_put_int(status, "readyReplicas", ready);
	json_put_int(status, "availableReplicas", ready);
	json_put_int(status, "currentReplicas", updated);
	json_put_int(status, "updatedReplicas", updated);
	json_put(status, "currentRevision", json_fmt("%s-%s", json_name(p->object), p->hash));
	json_put(status, "updateRevision", json_fmt("%s-%s", json_name(p->object), p->hash));
	return status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

json_t *workload_plan(const char *kind, const json_t *object, const json_t *owned,
		      const json_t *nodes, const char *now)
{
	json_t *plan = json_pack("{s:[], s:[], s:[]}", "create", "scale", "delete"), *status;
	struct plan_of p = {
		.object = object,
		.kind = kind,
		.now = now,
		.create = json_at(plan, "create"),
		.scale = json_at(plan, "scale"),
		.remove = json_at(plan, "delete"),
	};
	auto_free char *text = NULL;
	uint64_t hash;

	if (object_is_terminating(object))
		return plan;
	text = json_text(json_at(p.object, "spec", "template"));
	hash = str_hash(text, strlen(text));
	(void)snprintf(p.hash, sizeof(p.hash), "%08x", (unsigned int)(hash ^ hash >> 32));
	if (str_eq(p.kind, "DaemonSet"))
		status = plan_daemon_set(&p, owned, nodes);
	else if (str_eq(p.kind, "StatefulSet"))
		status = plan_stateful_set(&p, owned);
	else if (str_eq(p.kind, "Deployment"))
		status = plan_deployment(&p, owned);
	else
		status = plan_replica_set(&p, owned);
	json_put(plan, "status", status);
	return plan;
}
