// SPDX-License-Identifier: Apache-2.0
/*
 * The controllers of workloads: reads what an object owns, has decide/workloads.h compare, writes
 * the difference. All writes of a plan go out at once; the key is done when all are answered.
 */
#include <string.h>

#include "cli/simulate/decide/workloads.h"
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"

const struct kube_resource workload_resources[WORKLOAD_KINDS] = {
	[WORKLOAD_DEPLOYMENT] = {"apps", "v1", "deployments", "Deployment", true},
	[WORKLOAD_REPLICA_SET] = {"apps", "v1", "replicasets", "ReplicaSet", true},
	[WORKLOAD_DAEMON_SET] = {"apps", "v1", "daemonsets", "DaemonSet", true},
	[WORKLOAD_STATEFUL_SET] = {"apps", "v1", "statefulsets", "StatefulSet", true},
};

struct work {
	struct nodes *nodes;
	enum workload_kind kind;
	char *key; /* of the queue */
	size_t open;
	struct err failed;
};

static const struct kube_write as_controller = {.field_manager = NODES_MANAGER};

static void end_one(struct work *work, const struct err *err)
{
	struct queue *queue = work->nodes->queue;

	if (err && !kube_err_is(err, "NotFound") && !kube_err_is(err, "AlreadyExists") &&
	    !work->failed.class)
		work->failed = *err;
	if (--work->open > 0)
		return;
	if (work->failed.class && work->failed.class != ERR_CONFLICT)
		log_warn("write failed, will retry", F_STR("key", work->key), F_ERR(&work->failed));
	queue_done(queue, work->key, work->failed.class ? &work->failed : NULL);
	mem_free(work->key);
	mem_free(work);
}

/* Known before the watch says it, so that nothing is created twice. */
static void on_pod(void *arg, json_t *object, const struct err *err)
{
	struct work *work = arg;

	if (object)
		informer_learn(work->nodes->pod_informer, object);
	end_one(work, err);
}

static void on_set(void *arg, json_t *object, const struct err *err)
{
	struct work *work = arg;

	if (object)
		informer_learn(work->nodes->workload_informers[WORKLOAD_REPLICA_SET], object);
	end_one(work, err);
}

static void on_deleted(void *arg, json_t *object, const struct err *err)
{
	end_one(arg, err);
}

static void on_status(void *arg, json_t *object, const struct err *err)
{
	struct work *work = arg;

	if (object)
		informer_learn(work->nodes->workload_informers[work->kind], object);
	end_one(work, err);
}

/* ---- what there is --------------------------------------------------------------------------- */

struct collect {
	const struct cache *cache;
	json_t *list;
};

static void collect_one(void *arg, const char *key)
{
	struct collect *collect = arg;
	json_t *object = cache_get(collect->cache, key);

	if (object)
		json_array_append_new(collect->list, object);
}

static json_t *owned_by(const struct nodes *nodes, enum workload_kind kind, const char *uid)
{
	struct collect collect = {.list = json_array()};

	if (kind == WORKLOAD_DEPLOYMENT) {
		collect.cache = nodes->workload_caches[WORKLOAD_REPLICA_SET];
		cache_find(collect.cache, 0, uid, collect_one, &collect);
	} else {
		collect.cache = nodes->pod_cache;
		cache_find(collect.cache, PODS_BY_OWNER, uid, collect_one, &collect);
	}
	return collect.list;
}

static json_t *all_nodes(const struct nodes *nodes)
{
	json_t *list = json_array();
	size_t i = 0;
	const char *key;

	while ((key = cache_next(nodes->node_cache, &i)))
		json_array_append_new(list, cache_get(nodes->node_cache, key));
	return list;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void create_all(struct work *work, const json_t *objects)
{
	const json_t *object;
	size_t i;

	json_array_foreach ((json_t *)objects, i, object) {
		bool is_pod = str_eq(json_str_at(object, "kind"), "Pod");

		work->open++;
		kube_create(work->nodes->client,
			    is_pod ? &kube_pods : &workload_resources[WORKLOAD_REPLICA_SET], object,
			    &as_controller, is_pod ? on_pod : on_set, work);
	}
}

static void write_status(struct work *work, const json_t *object, const json_t *status)
{
	json_auto_t *diff = status ? json_merge_diff(json_at(object, "status"), status) : NULL;
	json_auto_t *patch = NULL;
	struct kube_write how = as_controller;

	if (!diff)
		return;
	patch = json_pack("{s:O}", "status", diff);
	how.subresource = "status";
	work->open++;
	kube_patch(work->nodes->client, &workload_resources[work->kind], json_namespace(object),
		   json_name(object), KUBE_PATCH_MERGE, patch, &how, on_status, work);
}

void workload_turn(struct nodes *nodes, enum workload_kind kind, const char *key)
{
	const char *of = strchr(key + strlen(KEY_WORKLOAD), '/') + 1;
	json_auto_t *object = cache_get(nodes->workload_caches[kind], of);
	json_auto_t *owned = NULL, *all = NULL, *plan = NULL;
	struct work *work;
	char now[RFC3339_SIZE];
	const json_t *name;
	size_t i;
	const json_t *scale;

	if (!object || !informer_is_synced(nodes->pod_informer) ||
	    !informer_is_synced(nodes->node_informer) ||
	    !informer_is_synced(nodes->workload_informers[WORKLOAD_REPLICA_SET])) {
		queue_done(nodes->queue, key, NULL);
		return;
	}
	rfc3339_write(clock_wall_us(), now);
	owned = owned_by(nodes, kind, json_uid(object));
	all = kind == WORKLOAD_DAEMON_SET ? all_nodes(nodes) : json_array();
	plan = workload_plan(workload_resources[kind].kind, object, owned, all, now);
	work = mem_new(struct work);
	*work = (struct work){.nodes = nodes, .kind = kind, .key = str_dup(key), .open = 1};
	create_all(work, json_at(plan, "create"));
	json_array_foreach ((json_t *)json_at(plan, "scale"), i, scale) {
		json_auto_t *patch =
			json_pack("{s:{s:O}}", "spec", "replicas", json_at(scale, "replicas"));

		work->open++;
		kube_patch(work->nodes->client, &workload_resources[WORKLOAD_REPLICA_SET],
			   json_namespace(object), json_str_at(scale, "name"), KUBE_PATCH_MERGE,
			   patch, &as_controller, on_set, work);
	}
	json_array_foreach ((json_t *)json_at(plan, "delete"), i, name) {
		work->open++;
		kube_delete(work->nodes->client, &kube_pods, json_namespace(object),
			    json_string_value(name), NULL, NULL, &as_controller, on_deleted, work);
	}
	write_status(work, object, json_at(plan, "status"));
	end_one(work, NULL);
}
