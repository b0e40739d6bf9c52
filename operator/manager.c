// SPDX-License-Identifier: Apache-2.0
/*
 * One queue per controller; a turn takes keys from them in rotation until the window is full or its
 * time is over.
 */
#include "operator/manager.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/queue.h"
#include "lib/kube/status.h"
#include "operator/applier.h"
#include "operator/census.h"
#include "operator/controllers.h"
#include "operator/gather.h"
#include "operator/lanes.h"
#include "operator/looks.h"
#include "operator/nad_definition.h"
#include "operator/pace.h"
#include "operator/pod_demand.h"
#include "operator/webhook_setup.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/ipam/assign.h"

struct manager {
	struct manager_config config;
	struct mirror *mirror;
	struct looks *looks;
	struct census *census;
	struct nad_definition *nad_definition;
	struct applier *applier;
	struct controller_sources sources;
	struct controller_state {
		struct queue *queue;
		bool caught_up;        /* looked at every key once since it could */
		int64_t busy_since_ms; /* 0: nothing waits and nothing is at work */
		int64_t took_cpu_us;   /* the last decision, with what it looked at */
	} controllers[CONTROLLER_COUNT];
	struct deferred *turn;
	struct timer *later; /* when QUEUE_LATER may be worked on, or a rest is over */
	struct lanes lanes;
	struct pace pace;
	struct pod_demand pod_demand;
	enum controller_id first; /* whose turn it is to go first */
	size_t working, awaited;  /* keys; of these, such that pods wait for */
	uint64_t decisions;       /* so far */
	bool leading;
	char trouble[sizeof(((struct err *)0)->text)]; /* what was said last about watching */
	json_t *errors;                                /* manager_errors */
	bool learning;   /* changes told now are answers to our own writes */
	bool removed;    /* our namespace is being deleted */
	bool lacks_nads; /* the server knows no NetworkAttachmentDefinitions */
	struct metric *reconciles, *seconds, *waiting, *found;
	struct metric *depth;
	struct metric *left, *window, *later_wait;
	struct metric *conditions, *policy_vfs, *resource_nodes, *drains, *oldest_drain;
};

/* A key at work. */
struct job {
	struct manager *manager;
	enum controller_id id;
	uint64_t number; /* of the decision, in log lines from the key to the last write */
	char *key;
};

/* ---- waking ---------------------------------------------------------------------------------- */

static void wake_turn(void *arg)
{
	struct manager *manager = arg;

	if (manager->leading)
		deferred_run(manager->turn);
}

/*
 * How long a key waits until what it sums up is looked at again. What is for people rests; drains
 * and addresses go on.
 */
static int64_t summary_delay_ms(const struct manager *manager, enum controller_id id,
				const char *key)
{
	int64_t rest_ms = manager->controllers[id].took_cpu_us * MANAGER_SUMMARY_REST / 1000;

	if (controllers[id].is_urgent && controllers[id].is_urgent(&manager->sources, key))
		return MANAGER_URGENT_MS;
	if (!controllers[id].status_waits || rest_ms < controllers[id].every_ms)
		return controllers[id].every_ms;
	return rest_ms < MANAGER_SUMMARY_MS ? rest_ms : MANAGER_SUMMARY_MS;
}

/*
 * What follows from our own writes (a status, above all) waits until nothing else does: first every
 * object gets what it asked for, then the conditions say so.
 */
static void wake(void *arg, enum controller_id id, const char *key, enum queue_lane lane)
{
	struct manager *manager = arg;
	struct queue *queue = manager->controllers[id].queue;

	if (controllers[id].every_ms)
		queue_add_after(queue, key, summary_delay_ms(manager, id, key));
	else
		queue_add(queue, key, manager->learning ? QUEUE_LATER : lane);
}

/* Look again at all objects that may carry a finalizer. */
static void wake_finalizers(struct manager *manager)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		const struct cache *cache = mirror_cache(manager->mirror, controllers[id].kind);
		const char *key = NULL;
		size_t iter = 0;

		while (controllers[id].finalizer && (key = cache_next(cache, &iter)))
			queue_add(manager->controllers[id].queue, key, QUEUE_MAIN);
	}
}

/*
 * Whoever removes the program deletes its namespace, and maybe its kinds too. Policies that
 * vanish then are no wish that their VFs go: nothing is decided until there is a namespace again,
 * and nodes keep what they have. But finalizers are taken off all objects, of those that stay too:
 * nobody would do it once we are gone, and their deletion would hang.
 */
static void note_removal(struct manager *manager, const char *kind, const char *key,
			 const json_t *now)
{
	bool removed = !now || json_at(now, "metadata", "deletionTimestamp");

	if (!str_eq(kind, KIND_NAMESPACE) || !str_eq(key, manager->sources.ns) ||
	    removed == manager->removed)
		return;
	manager->removed = removed;
	if (removed)
		log_warn("our namespace is being deleted: deciding nothing, releasing finalizers",
			 F_STR("namespace", key));
	wake_finalizers(manager);
	wake_turn(manager);
}

/*
 * A user made, removed or edited an object that we act upon. What we write to it is no edit, nor is
 * a deletion that waits for our finalizer: whoever deleted it waits for us, and so does its end.
 */
static bool is_users_change(const struct manager *manager, const char *kind, const json_t *old,
			    const json_t *now)
{
	if (manager->removed || manager->learning || !controllers_are_for(kind) ||
	    !mirror_is_synced(manager->mirror, kind))
		return false;
	if (object_is_terminating(now ? now : old))
		return false;
	return !now || !old || json_generation(old) != json_generation(now);
}

static void on_changed(void *arg, const char *kind, const char *key, const json_t *old,
		       const json_t *now)
{
	struct manager *manager = arg;
	bool is_answer = manager->learning;

	manager->learning |= now && manager->applier &&
			     operator_kind_find(kind)->tells_own_writes &&
			     applier_is_writing(manager->applier, kind, now);
	if (is_users_change(manager, kind, old, now))
		pace_seen(&manager->pace, clock_ms());
	note_removal(manager, kind, key, now);
	pod_demand_changed(&manager->pod_demand, kind, old, now);
	mirror_want(manager->mirror, KIND_POD, pod_demand_is_there(&manager->pod_demand));
	mirror_want(manager->mirror, KIND_BOUND_POD, manager->pod_demand.pools > 0);
	census_update(manager->census, kind, old, now);
	controllers_map(&manager->sources, kind, key, old, now);
	if (manager->config.changed)
		manager->config.changed(manager->config.arg, kind, now);
	manager->learning = is_answer;
}

/* ---- what plans say beside writes ------------------------------------------------------------ */

static void on_report(void *arg, const char *node, const json_t *policies)
{
	const struct job *job = arg;

	controllers[job->id].reported(&job->manager->sources, node, policies);
}

static bool on_found(void *arg, const json_t *op, const json_t *object)
{
	const struct job *job = arg;

	if (!controllers_found(&job->manager->sources, op, object))
		return false;
	if (object && json_at(op, "reason"))
		log_info("found something that needs somebody",
			 F_STR("kind", json_str_at(op, "kind")),
			 F_STR("key", json_str_at(op, "key")),
			 F_STR("reason", json_str_at(op, "reason")),
			 F_STR("message", json_str_at(op, "message")));
	return true;
}

static void on_posted(void *arg, const char *box, const char *key, json_t *value)
{
	const struct job *job = arg;

	controllers_posted(&job->manager->sources, job->id, box, key, value);
}

static void on_evicted(void *arg, const char *key, json_t *answer)
{
	const struct job *job = arg;

	controllers[job->id].evicted(&job->manager->sources, key, answer);
}

static void on_look(void *arg, const char *key, const json_t *wanted)
{
	const struct job *job = arg;

	looks_begin(job->manager->looks, job->id, key, wanted);
}

static void on_looked(void *arg, unsigned int of, const char *key, json_t *found,
		      const struct err *err)
{
	struct manager *manager = arg;

	controllers[of].read(&manager->sources, key, found, err);
	if (err)
		queue_add_after(manager->controllers[of].queue, key, MANAGER_LOOK_AGAIN_MS);
}

static void on_group_ended(void *arg, const char *group, const json_t *op, const struct err *err)
{
	const struct job *job = arg;
	struct manager *manager = job->manager;
	const char *kind = json_str_or(json_at(op, "kind"), "");
	const char *key = json_str_or(json_at(op, "key"), "");
	json_auto_t *object = NULL;

	if (err && err->class == ERR_CONFLICT) {
		log_debug("overtaken, will decide again", F_STR("kind", kind), F_STR("key", key),
			  F_ERR(err));
		return;
	}
	if (controllers[job->id].group_ended)
		controllers[job->id].group_ended(&manager->sources, kind, group, err);
	if (!err)
		return;
	log_error("cannot write an object, its part of the decision waits", F_STR("kind", kind),
		  F_STR("key", key), F_ERR(err));
	object = cache_get(mirror_cache(manager->mirror, kind), key);
	if (object)
		recorder_emit(manager->config.recorder,
			      &(struct event_object){
				      .resource = mirror_resource(manager->mirror, kind),
				      .ns = json_namespace(object),
				      .name = json_name(object),
				      .uid = json_uid(object),
			      },
			      true, "ObjectNotWritten", err->text);
}

static void on_answered(void *arg, const char *kind, const char *verb, int64_t took_us,
			const struct err *err)
{
	struct manager *manager = arg;

	if (manager->working > manager->awaited)
		pace_rest(&manager->pace, took_us, clock_ms());
	if (err && (err->retry_after_ms > 0 || kube_err_is(err, "DeadlineExceeded")))
		pace_refused(&manager->pace, (unsigned int)manager->working, clock_ms());
	/* Beyond the window it is our own load that makes answers slow. */
	else if ((!err || err->class == ERR_CONFLICT) &&
		 (manager->awaited == 0 || manager->working <= pace_window(&manager->pace)))
		pace_answered(&manager->pace, kind, verb, took_us, (unsigned int)manager->working,
			      clock_ms());
}

static bool is_pressed(const struct manager *manager)
{
	return pace_is_pressed(&manager->pace, clock_ms());
}

static void on_learning(void *arg, bool begins)
{
	struct manager *manager = arg;

	manager->learning = begins;
}

/* ---- kinds that are not there yet, or not allowed -------------------------------------------- */

static void on_synced(void *arg, const char *kind)
{
	struct manager *manager = arg;

	(void)troubles_end(manager->config.troubles, kind);
	log_info("mirrored", F_STR("kind", kind),
		 F_INT("objects", (int64_t)cache_len(mirror_cache(manager->mirror, kind))));
	wake_turn(manager);
}

/* Emit an event about this operator. Only the leader can write one. */
static void emit(const struct manager *manager, bool warning, const char *reason,
		 const char *message)
{
	if (manager->leading)
		recorder_emit(manager->config.recorder, manager->config.self, warning, reason,
			      message);
}

static void emit_trouble(void *arg, const char *kind, const char *reason, const char *text)
{
	auto_free char *message = str_printf("cannot watch %s: %s", kind, text);

	emit(arg, true, "WatchFailed", message);
}

/* What ails all kinds alike (the API server does not answer) is logged for the first one. */
static void log_trouble(struct manager *manager, const char *kind, const struct err *err,
			const char *remedy)
{
	enum log_level level =
		str_eq(manager->trouble, err->text) ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR;

	snprintf(manager->trouble, sizeof(manager->trouble), "%s", err->text);
	log_at(level, "cannot watch, will retry", F_STR("kind", kind), F_ERR(err),
	       F_STR("remedy", remedy ? remedy : "none needed once the API server answers"));
}

static void trouble_is_over(struct manager *manager, const char *kind)
{
	auto_free char *message = str_printf("watching %s again", kind);

	manager->trouble[0] = '\0';
	/* A first list that is still to come ends it, too. */
	if (!mirror_is_synced(manager->mirror, kind) ||
	    !troubles_end(manager->config.troubles, kind))
		return;
	log_info("watching again", F_STR("kind", kind));
	emit(manager, false, "WatchResumed", message);
}

/* The list may say so before we lead, and says it once. */
static void define_nads(struct manager *manager)
{
	if (manager->lacks_nads && manager->leading && !manager->removed)
		nad_definition_create(manager->nad_definition);
}

static void on_trouble(void *arg, const char *kind, const struct err *err)
{
	struct manager *manager = arg;
	const struct kind_info *info = kind_find(kind);
	auto_free char *remedy = NULL;

	if (str_eq(kind, KIND_NAD)) {
		manager->lacks_nads = err && kube_err_is(err, "NotServed");
		define_nads(manager);
	}
	if (!err) {
		trouble_is_over(manager, kind);
		return;
	}
	if (kube_err_is(err, "NotServed") && info && info->crd_file)
		remedy = str_printf("%s.%s is not installed: kubectl apply -f %s", info->id,
				    info->group, info->crd_file);
	else if (kube_err_is(err, "Forbidden"))
		remedy = str_printf("grant the operator's service account the verbs list and watch "
				    "on %s (manifests/base/rbac.yaml)",
				    mirror_resource(manager->mirror, kind)->plural);
	troubles_begin(manager->config.troubles, kind, err->reason, remedy ? remedy : err->text);
	log_trouble(manager, kind, err, remedy);
	emit_trouble(manager, kind, err->reason, remedy ? remedy : err->text);
}

/* ---- working --------------------------------------------------------------------------------- */

/* Overtaken decisions are made again as a matter of course; the rest is somebody's business. */
static void tell_failure(struct manager *manager, const struct job *job, const struct err *err)
{
	const struct controller *controller = &controllers[job->id];
	json_auto_t *object = NULL;

	if (err->class == ERR_CONFLICT || kube_err_is(err, "NotLeader")) {
		log_debug("overtaken, will decide again", F_INT("id", (int64_t)job->number),
			  F_STR("controller", controller->name), F_STR("key", job->key),
			  F_ERR(err));
		return;
	}
	log_error("cannot carry out a decision, will retry", F_INT("id", (int64_t)job->number),
		  F_STR("controller", controller->name), F_STR("key", job->key), F_ERR(err));
	object = cache_get(mirror_cache(manager->mirror, controller->kind), job->key);
	if (object && err->class == ERR_INVALID)
		recorder_emit(
			manager->config.recorder,
			&(struct event_object){
				.resource = mirror_resource(manager->mirror, controller->kind),
				.ns = json_namespace(object),
				.name = json_name(object),
				.uid = json_uid(object),
			},
			true, err->reason, err->text);
}

/* err NULL: it succeeded. */
static void note_outcome(struct manager *manager, const struct job *job, const struct err *err)
{
	auto_free char *name = str_printf("%s %s", controllers[job->id].name, job->key);
	char now[RFC3339_SIZE];
	json_t *entry = NULL;

	json_object_del(manager->errors, name);
	if (!err || json_object_size(manager->errors) >= MANAGER_ERRORS_MAX)
		return;
	rfc3339_write(clock_wall_us(), now);
	entry = json_need_object(manager->errors, name);
	json_put_str(entry, "reason", err->reason);
	json_put_str(entry, "message", err->text);
	json_put_str(entry, "time", now);
	json_put_int(entry, "id", (int64_t)job->number);
	json_put_int(entry, "failures",
		     queue_failures(manager->controllers[job->id].queue, job->key) + 1);
}

static void on_carried_out(void *arg, const struct applier_result *result, const struct err *err)
{
	struct job *job = arg;
	struct manager *manager = job->manager;
	struct queue *queue = manager->controllers[job->id].queue;

	manager->working--;
	manager->awaited -= controllers[job->id].awaited;
	metric_add(manager->reconciles, 1, controllers[job->id].name,
		   err ? err->reason : (result->wrote ? "wrote" : "nothing to do"));
	if (err)
		tell_failure(manager, job, err);
	if (err && err->class == ERR_CONFLICT && controllers[job->id].overtaken)
		controllers[job->id].overtaken(&manager->sources);
	note_outcome(manager, job, err);
	if (!str_empty(result->did))
		lanes_wrote(&manager->lanes, clock_ms());
	if (!err && !str_empty(result->did))
		log_info("decision carried out", F_INT("id", (int64_t)job->number),
			 F_STR("controller", controllers[job->id].name), F_STR("key", job->key),
			 F_STR("did", result->did));
	if (!err && result->again_ms >= 0)
		queue_add_after(queue, job->key, result->again_ms);
	if (!err && result->left) {
		metric_add(manager->left, 1, controllers[job->id].name);
		queue_add(queue, job->key, QUEUE_LATER);
	}
	queue_done(queue, job->key, err);
	mem_free(job->key);
	mem_free(job);
	wake_turn(manager);
}

/* More objects wait than can be at work: they shall all have what pods need first. */
static bool is_crowded(const struct manager *manager, enum controller_id id)
{
	return queue_waiting(manager->controllers[id].queue, QUEUE_MAIN) >= MANAGER_WINDOW;
}

/* What people read of an object follows later. */
static bool leaves_status(const struct manager *manager, enum controller_id id,
			  enum queue_lane lane)
{
	return controllers[id].status_waits && lane == QUEUE_MAIN &&
	       (is_pressed(manager) || is_crowded(manager, id));
}

static void work_on(struct manager *manager, enum controller_id id, const char *key,
		    enum queue_lane lane)
{
	const struct controller *controller = &controllers[id];
	int64_t started_us = clock_us(), started_cpu_us = clock_cpu_us();
	struct applier_result nothing = {.again_ms = -1};
	json_auto_t *world = json_object();
	auto_plan struct plan plan = {0};
	struct err err = {0};
	struct job *job = mem_new(struct job);
	int result = 0;

	gather_env(&manager->sources, world);
	controllers_gather(&manager->sources, id, key, world);
	if (!manager->removed)
		result = controller->reconcile(world, key, &plan, &err);
	else if (world_get(world, controller->kind, key))
		plan_release(&plan, controller->kind, key, world_get(world, controller->kind, key),
			     controller->finalizer);
	else
		/* wake_finalizers would not find it, should there be a namespace again. */
		plan_requeue(&plan, MANAGER_KEEP_MS);
	manager->controllers[id].took_cpu_us = clock_cpu_us() - started_cpu_us;
	metric_observe(manager->seconds, (double)(clock_us() - started_us) / 1e6, controller->name);
	*job = (struct job){manager, id, ++manager->decisions, str_dup(key)};
	log_debug("decided", F_INT("id", (int64_t)job->number),
		  F_STR("controller", controller->name), F_STR("key", key),
		  F_INT("operations", (int64_t)json_array_size(plan.ops)));
	manager->working++;
	manager->awaited += controller->awaited;
	if (!controller->awaited)
		pace_begun(&manager->pace, clock_ms());
	if (result < 0)
		on_carried_out(job, &nothing, &err);
	else
		applier_run(manager->applier, job->number, &plan, leaves_status(manager, id, lane),
			    on_carried_out, job);
}

static bool needs_met(const struct manager *manager, enum controller_id id)
{
	const char *const *needs = controllers[id].needs;

	for (size_t i = 0; i < CONTROLLER_MAX_NEEDS && needs[i]; i++)
		if (!mirror_is_synced(manager->mirror, needs[i]) ||
		    !mirror_is_whole(manager->mirror, needs[i]))
			return false;
	return true;
}

static bool is_busy(const struct controller_state *state)
{
	return queue_waiting(state->queue, QUEUE_MAIN) > 0 ||
	       queue_waiting(state->queue, QUEUE_LATER) > 0 || queue_working(state->queue) > 0;
}

/*
 * A summary waits until what it sums up has looked at everything once, and while it is at work,
 * lest one change of a policy be told once a second; but not for ever.
 */
static bool summary_is_due(const struct manager *manager, const struct controller *controller)
{
	const struct controller_state *after = &manager->controllers[controller->after];

	return after->caught_up && (after->busy_since_ms == 0 ||
				    clock_ms() - after->busy_since_ms >= MANAGER_SUMMARY_MS);
}

static bool may_work(const struct manager *manager, enum controller_id id)
{
	const struct controller *controller = &controllers[id];

	if (!needs_met(manager, id))
		return false;
	if (manager->removed)
		return controller->finalizer != NULL;
	return !controller->every_ms || controller->after == id ||
	       summary_is_due(manager, controller);
}

static void note_progress(struct manager *manager)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		struct controller_state *state = &manager->controllers[id];

		if (!is_busy(state)) {
			state->busy_since_ms = 0;
			state->caught_up = state->caught_up || needs_met(manager, id);
		} else if (state->busy_since_ms == 0) {
			state->busy_since_ms = clock_ms();
		}
	}
}

/*
 * The object is there, and nothing is known of it: reconcilers would take it for deleted. It is
 * looked at again when it can be read, or is gone.
 */
static bool is_unknown(const struct manager *manager, enum controller_id id, const char *key)
{
	return cache_is_unknown(mirror_cache(manager->mirror, controllers[id].kind), key);
}

static bool has_room(const struct manager *manager, bool awaited)
{
	/* Our rights go in a moment, with the namespace. */
	if (manager->removed)
		return manager->working < manager->config.writes_max;
	return pace_has_room(&manager->pace, (unsigned int)manager->awaited,
			     (unsigned int)(manager->working - manager->awaited), awaited,
			     clock_ms());
}

/* One key of one controller, of an awaited one if so said; false when there is none. */
static bool work_one(struct manager *manager, enum queue_lane lane, bool awaited)
{
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		enum controller_id id = (manager->first + i) % CONTROLLER_COUNT;
		struct queue *queue = manager->controllers[id].queue;
		const char *key = NULL;

		if ((awaited && !controllers[id].awaited) || queue_waiting(queue, lane) == 0 ||
		    !may_work(manager, id) || !has_room(manager, controllers[id].awaited))
			continue;
		manager->first = (id + 1) % CONTROLLER_COUNT;
		key = queue_take_from(queue, lane);
		if (is_unknown(manager, id, key))
			queue_done(queue, key, NULL);
		else
			work_on(manager, id, key, lane);
		return true;
	}
	return false;
}

/* Keys wait in this lane that may be worked on. */
static bool has_work(const struct manager *manager, enum queue_lane lane)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++)
		if (queue_waiting(manager->controllers[id].queue, lane) > 0 &&
		    may_work(manager, id))
			return true;
	return false;
}

/* What people read of objects can wait a while longer. */
static bool is_patient(const struct manager *manager)
{
	if (is_pressed(manager))
		return true;
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++)
		if (is_crowded(manager, id))
			return true;
	return false;
}

/* One key of the lane whose turn it is; false when there is nothing to do now. */
static bool work_next(struct manager *manager)
{
	int64_t wait_ms = -1;

	switch (lanes_next(&manager->lanes, has_work(manager, QUEUE_MAIN),
			   has_work(manager, QUEUE_LATER), is_patient(manager), clock_ms(),
			   &wait_ms)) {
	case LANES_MAIN:
		return work_one(manager, QUEUE_MAIN, false);
	case LANES_LATER:
		return work_one(manager, QUEUE_LATER, false);
	case LANES_NOTHING:
		break;
	}
	if (wait_ms >= 0)
		timer_start(manager->later, wait_ms);
	return false;
}

static bool may_decide(const struct manager *manager)
{
	return manager->leading && mirror_is_synced(manager->mirror, KIND_NAMESPACE);
}

/* One key for which there is room; false when there is nothing to do now. */
static bool work_some(struct manager *manager)
{
	int64_t rest_ms;

	if (has_room(manager, false))
		return work_next(manager);
	rest_ms = pace_rest_ms(&manager->pace, clock_ms());
	if (rest_ms >= 0)
		timer_start(manager->later, rest_ms);
	return work_one(manager, QUEUE_MAIN, true);
}

static void take_turn(void *arg)
{
	struct manager *manager = arg;
	int64_t until_us = clock_us() + MANAGER_TURN_US;

	note_progress(manager);
	while (may_decide(manager)) {
		if (!work_some(manager))
			return;
		if (clock_us() >= until_us) {
			deferred_run(manager->turn);
			return;
		}
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void set_found(void *arg, const char *kind, const char *reason, size_t count)
{
	const struct manager *manager = arg;

	metric_set(manager->found, (double)count, kind, reason);
}

static void set_condition(void *arg, const char *kind, const char *type, const char *status,
			  const char *reason, size_t count)
{
	const struct manager *manager = arg;

	metric_set(manager->conditions, (double)count, kind, type, status, reason);
}

static void set_policy(void *arg, const char *policy, int64_t wanted, int64_t present)
{
	const struct manager *manager = arg;

	metric_set(manager->policy_vfs, (double)wanted, policy, "wanted");
	metric_set(manager->policy_vfs, (double)present, policy, "present");
}

static void set_resource(void *arg, const char *resource, size_t nodes, size_t empty,
			 size_t unselected)
{
	const struct manager *manager = arg;

	metric_set(manager->resource_nodes, (double)nodes, resource, "wanted");
	metric_set(manager->resource_nodes, (double)empty, resource, "empty");
	metric_set(manager->resource_nodes, (double)unselected, resource, "unselected");
}

struct drain_count {
	const struct manager *manager;
	json_t *oldest; /* {state: microseconds} */
};

static void count_drain(void *arg, const char *key)
{
	const struct drain_count *count = arg;
	json_auto_t *state = cache_get(mirror_cache(count->manager->mirror, KIND_NODE_STATE), key);
	const json_t *maintenance = json_at(state, "status", "maintenance");
	const char *phase = json_str_at(maintenance, "state");
	int64_t since, age;

	metric_add(count->manager->drains, 1, phase ? phase : "NotAllowed");
	if (!phase || !rfc3339_read(json_str_or(json_at(maintenance, "since"), ""), &since))
		return;
	age = clock_wall_us() - since;
	if (age < json_integer_value(json_at(count->oldest, phase)))
		return;
	json_put_int(count->oldest, phase, age);
	metric_set(count->manager->oldest_drain, (double)age / 1000000, phase);
}

static void count_drains(const struct manager *manager)
{
	json_auto_t *oldest = json_object();
	struct drain_count count = {manager, oldest};

	cache_find(mirror_cache(manager->mirror, KIND_NODE_STATE), NODE_STATE_DRAINS, MIRROR_DRAINS,
		   count_drain, &count);
}

/* Only who decides knows what there is to find; a sum over the replicas counts nothing twice. */
static void collect_findings(struct manager *manager)
{
	metric_clear(manager->found);
	metric_clear(manager->conditions);
	metric_clear(manager->policy_vfs);
	metric_clear(manager->resource_nodes);
	metric_clear(manager->drains);
	metric_clear(manager->oldest_drain);
	if (!manager->leading)
		return;
	count_drains(manager);
	findings_count(manager->sources.findings, set_found, manager);
	census_findings(manager->census, set_found, manager);
	census_conditions(manager->census, set_condition, manager);
	census_policies(manager->census, set_policy, manager);
	census_resources(manager->census, set_resource, manager);
}

/* A standby keeps every key for a takeover; nothing waits for it. */
static void collect(void *arg)
{
	struct manager *manager = arg;

	collect_findings(manager);
	metric_set(manager->window,
		   pace_steps_aside(&manager->pace, clock_ms()) ? 1 : pace_window(&manager->pace));
	metric_set(manager->later_wait,
		   manager->leading && manager->lanes.later_since_ms
			   ? (double)(clock_ms() - manager->lanes.later_since_ms) / 1000
			   : 0);
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		const struct queue *queue = manager->controllers[id].queue;
		size_t waiting =
			queue_waiting(queue, QUEUE_MAIN) + queue_waiting(queue, QUEUE_LATER);
		double length = manager->leading ? (double)waiting : 0;

		metric_set(manager->waiting, length, controllers[id].name);
		metric_set(manager->depth, length, controllers[id].name);
	}
}

static void add_metrics(struct manager *manager)
{
	struct metrics *metrics = manager->config.metrics;

	manager->reconciles = metric_counter(metrics, "orbweaver_reconciles_total",
					     "Keys decided on, by result.", "controller,result");
	manager->seconds = metric_histogram(metrics, "orbweaver_reconcile_seconds",
					    "Time to look and decide, without carrying out.",
					    "controller", METRIC_SECONDS);
	manager->waiting = metric_gauge(
		metrics, "orbweaver_queue_length",
		"Keys that wait for this replica; 0 while another one decides.", "controller");
	manager->found = metric_gauge(metrics, "orbweaver_findings",
				      "Objects that need somebody: Degraded, not Ready without "
				      "progress, or pods with a finding.",
				      "kind,reason");
	manager->left = metric_counter(
		metrics, "orbweaver_statuses_put_off_total",
		"Statuses and their events that wait for what is more urgent.", "controller");
	manager->window = metric_gauge(metrics, "orbweaver_writes_window",
				       "Writes that may be under way at a time: follows how quick "
				       "the API server is.",
				       "");
	manager->later_wait = metric_gauge(metrics, "orbweaver_statuses_wait_seconds",
					   "How long statuses have been waiting for what comes "
					   "before them.",
					   "");
	/*
	 * The name of client-go and controller-runtime, for dashboards that exist; queue_measure
	 * has the others.
	 */
	manager->depth = metric_gauge(metrics, "workqueue_depth",
				      "As orbweaver_queue_length, under client-go's name.", "name");
	manager->conditions =
		metric_gauge(metrics, "orbweaver_conditions", "Objects with this condition.",
			     "kind,type,status,reason");
	manager->policy_vfs =
		metric_gauge(metrics, "orbweaver_policy_vfs",
			     "VFs that a policy asks for, and that are there.", "policy,state");
	manager->resource_nodes =
		metric_gauge(metrics, "orbweaver_resource_nodes",
			     "Nodes that want devices of a resource, those of them that have no "
			     "healthy one (empty), and those of these where a shared entry "
			     "selects no NIC (unselected).",
			     "resource,state");
	manager->drains = metric_gauge(metrics, "orbweaver_drain_nodes",
				       "Nodes with pods in the way of a change, or that have to "
				       "boot, by how far their drain is; NotAllowed: nobody "
				       "allows one.",
				       "state");
	manager->oldest_drain = metric_gauge(metrics, "orbweaver_drain_oldest_seconds",
					     "How long the node that is in this state of its drain "
					     "for longest has been in it.",
					     "state");
	metrics_on_collect(metrics, collect, manager);
}

struct manager *manager_new(const struct manager_config *config)
{
	struct manager *manager = mem_new(struct manager);
	const char *kind = NULL;

	manager->config = *config;
	pace_init(&manager->pace, config->writes_max);
	manager->pod_demand.listening = config->webhook->listen != NULL;
	manager->turn = deferred_new(config->loop, take_turn, manager);
	manager->later = timer_new(config->loop, wake_turn, manager);
	manager->errors = json_object();
	manager->looks = looks_new(config->client, on_looked, manager);
	manager->census = census_new();
	manager->nad_definition = nad_definition_new(config->client);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		manager->controllers[i] = (struct controller_state){
			.queue = queue_new(config->loop, wake_turn, manager),
		};
		queue_measure(manager->controllers[i].queue, config->metrics, controllers[i].name);
	}
	for (size_t i = 0; (kind = operator_kinds[i].kind); i++)
		troubles_add(config->troubles, kind,
			     operator_kinds[i].optional || operator_kinds[i].on_demand);
	manager->sources = (struct controller_sources){
		.wake = wake,
		.wake_arg = manager,
		.now_ms = clock_ms,
		.own_write = &manager->learning,
		.ns = config->ns,
		.resource_prefix = config->resource_prefix,
		.config_ns = config->config_ns,
		.cilium_config = config->cilium_config,
		.policy_namespaces = config->policy_namespaces,
		.webhook = config->webhook,
	};
	controller_sources_init(&manager->sources, config->metrics);
	manager->mirror = mirror_new(config->loop, config->client,
				     &(struct mirror_config){
					     .ns = config->ns,
					     .config_ns = config->config_ns,
					     .cilium_config = config->cilium_config,
					     .metrics = config->metrics,
					     .changed = on_changed,
					     .synced = on_synced,
					     .trouble = on_trouble,
					     .arg = manager,
				     });
	manager->sources.mirror = manager->mirror;
	manager->applier = applier_new(&(struct applier_config){
		.client = config->client,
		.mirror = manager->mirror,
		.recorder = config->recorder,
		.metrics = config->metrics,
		.report = on_report,
		.posted = on_posted,
		.look = on_look,
		.evicted = on_evicted,
		.group_ended = on_group_ended,
		.found = on_found,
		.answered = on_answered,
		.learning = on_learning,
		.arg = manager,
	});
	add_metrics(manager);
	return manager;
}

void manager_free(struct manager *manager)
{
	if (!manager)
		return;
	metrics_off_collect(manager->config.metrics, collect, manager);
	applier_free(manager->applier);
	looks_free(manager->looks);
	nad_definition_free(manager->nad_definition);
	mirror_free(manager->mirror);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		queue_free(manager->controllers[i].queue);
	deferred_free(manager->turn);
	timer_free(manager->later);
	json_decref(manager->errors);
	controller_sources_done(&manager->sources);
	census_free(manager->census);
	mem_free(manager);
}

const struct controller_sources *manager_sources(const struct manager *manager)
{
	return &manager->sources;
}

void manager_lead(struct manager *manager, bool leading)
{
	bool begins = leading && !manager->leading;

	manager->leading = leading;
	if (begins) {
		define_nads(manager);
		for (size_t i = 0; i < CONTROLLER_COUNT; i++)
			queue_restart_waits(manager->controllers[i].queue);
		troubles_visit(manager->config.troubles, emit_trouble, manager);
	}
	wake_turn(manager);
}

size_t manager_working(const struct manager *manager)
{
	return manager->working;
}

const struct queue *manager_queue(const struct manager *manager, enum controller_id id)
{
	assert(id < CONTROLLER_COUNT);
	return manager->controllers[id].queue;
}

const struct troubles *manager_troubles(const struct manager *manager)
{
	return manager->config.troubles;
}

const json_t *manager_errors(const struct manager *manager)
{
	return manager->errors;
}
