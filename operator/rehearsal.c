// SPDX-License-Identifier: Apache-2.0
/*
 * Shows the objects to a mirror without a client, then takes one awake key after the other as the
 * manager's turn would, without queues, pace and writes. What plans leave in memory is left there,
 * too.
 */
#include "operator/rehearsal.h"

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/cache/pod_demand.h"
#include "operator/controllers/controllers.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/writer/applier_patch.h"
#include "reconcilers/ipam/ip_pool.h"
#include "reconcilers/maintenance/drain.h"
#include "reconcilers/sriov/node_agent.h"

/* The keys of a controller that are awake, in the order in which they were woken. */
struct wakefulness {
	json_t *keys;  /* { key: true } */
	json_t *times; /* { key: how often it was decided } */
	bool left_out;
};

struct rehearsal {
	const struct rehearsal_config *config;
	struct mirror *mirror;
	struct controller_sources sources;
	struct webhook_settings webhook;
	struct pod_demand demand;
	struct wakefulness controllers[CONTROLLER_COUNT];
};

/* ---- waking ---------------------------------------------------------------------------------- */

static void wake(void *arg, enum controller_id id, const char *key, enum queue_lane lane)
{
	struct rehearsal *r = arg;
	struct wakefulness *w = &r->controllers[id];
	/* Pods that wait for addresses are one key, a thousand at a time. */
	json_int_t max = id == CONTROLLER_ADDRESSES ? REHEARSAL_PASSES_MAX : REHEARSAL_TIMES_MAX;

	if (!w->left_out && json_integer_value(json_object_get(w->times, key)) < max)
		json_put_bool(w->keys, key, true);
}

static void on_simulated_changed(void *arg, const char *kind, const char *key, const json_t *old,
				 const json_t *now)
{
	struct rehearsal *r = arg;

	pod_demand_changed(&r->demand, kind, old, now);
	controllers_map(&r->sources, kind, key, old, now);
}

/* ---- what is read of the API server before something is taken from a pod --------------------- */

/* [{"kind", "key"}, …] → { kind: { key: object, or null } } */
static json_t *look_up(const struct rehearsal *r, const json_t *wanted)
{
	json_t *found = json_object(), *item, *object;
	size_t i;

	json_array_foreach (wanted, i, item) {
		const char *kind = json_str_or(json_at(item, "kind"), "");
		const char *key = json_str_or(json_at(item, "key"), "");

		object = json_at(r->config->objects, kind, key);
		json_object_set_new(json_need_object(found, kind), key,
				    object ? json_deep_copy(object) : json_null());
	}
	return found;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Time stands still; what was read was read now. */
static int64_t stands_still(void)
{
	return 0;
}

/* True when people are told of it. */
static bool remember_op(struct rehearsal *r, enum controller_id id, const char *key,
			const json_t *op, const json_t *object)
{
	const char *what = json_str_at(op, "op");

	if (str_eq(json_str_at(op, "box"), BOX_LOOK)) {
		json_auto_t *found = look_up(r, json_at(op, "value"));

		controllers[id].read(&r->sources, json_str_at(op, "key"), found, NULL);
		return false;
	}
	if (str_eq(what, "requeue") && id == CONTROLLER_ADDRESSES)
		wake(r, id, key, QUEUE_MAIN);
	return controllers_remember(&r->sources, id, op, object, UINT64_MAX) && object &&
	       json_at(op, "reason");
}

/* ---- what an operation would change ---------------------------------------------------------- */

static void judge_apply(struct rehearsal_op *ret, const json_t *present, const json_t *op)
{
	json_auto_t *patch = NULL;
	json_t *after;

	if (!present) {
		ret->does = "create";
		ret->after = json_incref(json_at(op, "object"));
		return;
	}
	patch = applier_patch(present, json_at(op, "object"));
	if (!patch)
		return;
	after = json_deep_copy(present);
	json_merge_patch(after, patch);
	ret->does = "patch";
	ret->after = after;
}

static void judge_status(struct rehearsal_op *ret, const json_t *present, const json_t *op)
{
	json_t *after;

	if (!present || json_same(json_at(present, "status"), json_at(op, "status")))
		return;
	after = json_copy((json_t *)present);
	json_object_set(after, "status", json_at(op, "status"));
	ret->does = "status";
	ret->after = after;
}

/* Members of the status or of the metadata. */
static void judge_part(struct rehearsal_op *ret, const json_t *present, const char *member,
		       const json_t *part, const char *does)
{
	json_auto_t *patch = json_pack("{s:O}", member, part);

	if (!present || !json_merge_changes(json_object_get(present, member), part))
		return;
	ret->does = does;
	ret->after = json_deep_copy(present);
	json_merge_patch((json_t *)ret->after, patch);
}

static void judge_meta(struct rehearsal_op *ret, const json_t *present, const json_t *op)
{
	json_t *after;

	judge_part(ret, present, "metadata", json_at(op, "metadata"), "patch");
	if (!present || !json_at(op, "status"))
		return;
	after = ret->after ? (json_t *)ret->after : json_deep_copy(present);
	plan_put_condition(after, op);
	ret->does = "patch";
	ret->after = after;
}

/* As the applier would. before and after are new. */
static struct rehearsal_op judge_op(const json_t *op, const json_t *present)
{
	struct rehearsal_op ret = {.op = op, .before = json_incref((json_t *)present)};
	const char *what = json_str_or(json_at(op, "op"), "");

	if (str_eq(what, "apply"))
		judge_apply(&ret, present, op);
	else if (str_eq(what, "status"))
		judge_status(&ret, present, op);
	else if (str_eq(what, "status-part"))
		judge_part(&ret, present, "status", json_at(op, "status"), "status");
	else if (str_eq(what, "meta"))
		judge_meta(&ret, present, op);
	else if (str_eq(what, "cordon"))
		judge_part(&ret, present, "spec", json_at(op, "spec"), "patch");
	else if (str_eq(what, "delete") && present &&
		 !json_at(present, "metadata", "deletionTimestamp"))
		ret.does = "delete";
	else if (str_eq(what, "evict"))
		ret.does = "evict";
	else if (str_eq(what, "event") && present)
		ret.does = "event";
	return ret;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static int make_plan(const struct rehearsal *r, enum controller_id id, const char *key,
		     struct plan *plan, struct err *err)
{
	const struct controller *controller = &controllers[id];
	json_auto_t *ns = cache_get(mirror_cache(r->mirror, KIND_NAMESPACE), r->config->ns);
	json_auto_t *world = json_object();
	const json_t *object = NULL;

	gather_env(&r->sources, world);
	json_put_str(json_at(world, "env"), "now", r->config->now);
	controllers_gather(&r->sources, id, key, world);
	if (!json_at(ns, "metadata", "deletionTimestamp"))
		return controller->reconcile(world, key, plan, err);
	/* It is being deleted: nothing is decided, finalizers are taken off. */
	object = world_get(world, controller->kind, key);
	if (object && controller->finalizer)
		plan_release(plan, controller->kind, key, object, controller->finalizer);
	return 0;
}

static void decide_key(struct rehearsal *r, enum controller_id id, const char *key)
{
	auto_plan struct plan plan = {0};
	struct err err = {0};
	struct rehearsal_step step = {.controller = controllers[id].name, .key = key};
	struct rehearsal_op *ops;

	if (make_plan(r, id, key, &plan, &err) < 0)
		step.err = &err;
	ops = mem_calloc(json_array_size(plan.ops) + 1, sizeof(*ops));
	for (; step.n < json_array_size(plan.ops); step.n++) {
		const json_t *op = json_array_get(plan.ops, step.n);
		const struct cache *cache =
			mirror_cache(r->mirror, json_str_or(json_at(op, "kind"), ""));
		json_auto_t *present =
			cache ? cache_get(cache, json_str_or(json_at(op, "key"), "")) : NULL;

		ops[step.n] = judge_op(op, present);
		if (remember_op(r, id, key, op, present))
			ops[step.n].does = "finding";
	}
	step.ops = ops;
	r->config->decided(r->config->arg, &step);
	for (size_t i = 0; i < step.n; i++) {
		json_decref((json_t *)ops[i].before);
		json_decref((json_t *)ops[i].after);
	}
	mem_free(ops);
}

static bool sleeps(const struct rehearsal *r, enum controller_id id)
{
	return json_object_size(r->controllers[id].keys) == 0;
}

/* Those with a pace of their own look at much at once: they wait for those that have none. */
static bool others_sleep(const struct rehearsal *r)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++)
		if (!controllers[id].every_ms && !sleeps(r, id))
			return false;
	return true;
}

/* And a summary for what it sums up. */
static bool may_decide(const struct rehearsal *r, enum controller_id id)
{
	const struct controller *controller = &controllers[id];

	if (sleeps(r, id))
		return false;
	return !controller->every_ms ||
	       (others_sleep(r) && (controller->after == id || sleeps(r, controller->after)));
}

/* One key; false when all sleep. */
static bool decide_one(struct rehearsal *r)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		struct wakefulness *w = &r->controllers[id];
		auto_free char *key = NULL;

		if (!may_decide(r, id))
			continue;
		key = str_dup(json_object_iter_key(json_object_iter(w->keys)));
		json_object_del(w->keys, key);
		json_put_int(w->times, key, json_integer_value(json_object_get(w->times, key)) + 1);
		decide_key(r, id, key);
		return true;
	}
	return false;
}

/* ---- the cluster ----------------------------------------------------------------------------- */

/* Objects of each resource that some kind of the table shows. */
static void show_all(struct rehearsal *r)
{
	for (const struct operator_kind *row = operator_kinds; row->kind; row++) {
		const struct kube_resource *resource = mirror_resource(r->mirror, row->kind);
		const char *key;
		json_t *object;

		json_each (json_at(r->config->objects, resource->plural), key, object)
			mirror_show(r->mirror, resource, object);
	}
}

static void on_synced(void *arg, const char *kind)
{
}

static void on_trouble(void *arg, const char *kind, const struct err *err)
{
}

static void rehearsal_init(struct rehearsal *r, const struct rehearsal_config *config)
{
	r->config = config;
	r->webhook.listen = config->webhooks ? "0" : NULL;
	r->demand.listening = config->webhooks;
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		r->controllers[i] = (struct wakefulness){json_object(), json_object(), false};
	r->sources = (struct controller_sources){
		.wake = wake,
		.wake_arg = r,
		.now_ms = stands_still,
		.ns = config->ns,
		.resource_prefix = config->resource_prefix,
		.policy_namespaces = config->policy_namespaces,
		.config_ns = config->config_ns,
		.cilium_config = config->cilium_config,
		.webhook = &r->webhook,
	};
	controller_sources_init(&r->sources, NULL);
	r->mirror = mirror_new(NULL, NULL,
			       &(struct mirror_config){
				       .ns = config->ns,
				       .config_ns = config->config_ns,
				       .cilium_config = config->cilium_config,
				       .changed = on_simulated_changed,
				       .synced = on_synced,
				       .trouble = on_trouble,
				       .arg = r,
			       });
	r->sources.mirror = r->mirror;
}

void rehearse(const struct rehearsal_config *config)
{
	struct rehearsal r = {0};

	rehearsal_init(&r, config);

	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		const char *const *needs = controllers[id].needs;

		for (size_t i = 0; i < CONTROLLER_MAX_NEEDS && needs[i]; i++) {
			const struct operator_kind *row = operator_kind_find(needs[i]);

			if (!str_eq(needs[i], MIRROR_CERTIFICATE) &&
			    r.config->has(r.config->arg, row))
				continue;
			r.controllers[id].left_out = true;
			r.config->left_out(r.config->arg, controllers[id].name, row);
			break;
		}
	}
	show_all(&r);
	/* Pods are mirrored only where something else calls for it. */
	pod_demand_tell(&r.demand, r.mirror);
	show_all(&r);
	while (decide_one(&r))
		;
	mirror_free(r.mirror);
	controller_sources_done(&r.sources);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		json_decref(r.controllers[i].keys);
		json_decref(r.controllers[i].times);
	}
}
