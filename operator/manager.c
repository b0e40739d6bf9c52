// SPDX-License-Identifier: Apache-2.0
/*
 * Objects that change wake keys (controllers_map, schedule.h). A turn takes keys while there is
 * room and time: the world of a key is gathered, its controller makes a plan, the applier carries
 * it out. What plans say beside writes goes to their controllers' callbacks (controllers.h).
 */
#include "operator/manager.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "operator/cache/live_reads.h"
#include "operator/cache/object_counts.h"
#include "operator/cache/pod_demand.h"
#include "operator/controllers/gather.h"
#include "operator/controllers/ipam_book.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/informer_reports.h"
#include "operator/object_metrics.h"
#include "operator/schedule.h"
#include "operator/writer/applier.h"
#include "reconcilers/core/owner.h"

struct manager {
	struct manager_config config;
	struct mirror *mirror;
	struct controller_sources sources;
	struct schedule schedule;
	struct applier *applier;
	struct live_reads *looks;
	struct informer_reports informers;
	struct pod_demand pod_demand;
	struct deferred *turn;
	struct timer *later; /* when QUEUE_LATER may be worked on, or a rest is over */
	uint64_t decisions;  /* so far */
	bool leading;
	bool learning;  /* changes reported now are responses to our own writes */
	json_t *errors; /* manager_errors */
	/* When decisions began to fail that nothing has carried out since; 0: they do not. */
	int64_t failing_since_ms[CONTROLLER_COUNT];
	struct object_metrics objects;
	struct metric *reconciles, *seconds, *failing, *waiting, *depth, *left, *window,
		*later_wait;
};

/* A key at work. */
struct job {
	struct manager *manager;
	enum controller_id id;
	uint64_t number; /* of the decision, in log lines from the key to the last write */
	char *key;
	uint64_t as_of; /* ipam_book_revision() that its world shows */
};

/* ---- waking ---------------------------------------------------------------------------------- */

static void wake_turn(void *arg)
{
	struct manager *manager = arg;

	if (manager->leading)
		deferred_run(manager->turn);
}

/*
 * What follows from our own writes (a status, above all) waits until nothing else does: first every
 * object gets what it asked for, then the conditions say so.
 */
static void wake(void *arg, enum controller_id id, const char *key, enum queue_lane lane)
{
	struct manager *manager = arg;

	schedule_wake(&manager->schedule, id, key, manager->learning ? QUEUE_LATER : lane);
}

/*
 * A user made, removed or edited an object that we act upon. What we write to it is not an edit,
 * nor is a deletion that waits for our finalizer: the user who deleted it waits for us, and so does
 * its end.
 */
static bool is_users_change(const struct manager *manager, const char *kind, const json_t *old,
			    const json_t *now)
{
	if (manager->schedule.removed || manager->learning || !controllers_are_for(kind) ||
	    !mirror_is_synced(manager->mirror, kind))
		return false;
	if (object_is_terminating(now ? now : old))
		return false;
	return !now || !old || json_generation(old) != json_generation(now);
}

static void on_object_changed(void *arg, const char *kind, const char *key, const json_t *old,
			      const json_t *now)
{
	struct manager *manager = arg;
	bool is_answer = manager->learning;

	manager->learning |= now && manager->applier &&
			     operator_kind_find(kind)->tells_own_writes &&
			     applier_is_writing(manager->applier, kind, now);
	if (is_users_change(manager, kind, old, now))
		write_limit_seen(&manager->schedule.pace, clock_ms());
	if (schedule_note_removal(&manager->schedule, kind, key, now)) {
		manager->informers.removed = manager->schedule.removed;
		wake_turn(manager);
	}
	pod_demand_changed(&manager->pod_demand, kind, old, now);
	pod_demand_tell(&manager->pod_demand, manager->mirror);
	object_counts_update(manager->objects.counts, kind, old, now);
	controllers_map(&manager->sources, kind, key, old, now);
	if (manager->config.changed)
		manager->config.changed(manager->config.arg, kind, now);
	manager->learning = is_answer;
}

/* ---- what plans say beside writes ------------------------------------------------------------ */

static bool on_remember(void *arg, const json_t *op, const json_t *object)
{
	const struct job *job = arg;
	bool is_news =
		controllers_remember(&job->manager->sources, job->id, op, object, job->as_of);

	if (is_news && object && json_at(op, "reason"))
		log_info("found something that needs somebody",
			 F_STR("kind", json_str_at(op, "kind")),
			 F_STR("key", json_str_at(op, "key")),
			 F_STR("reason", json_str_at(op, "reason")),
			 F_STR("message", json_str_at(op, "message")));
	return is_news;
}

static void on_evicted(void *arg, const char *key, json_t *answer)
{
	const struct job *job = arg;

	controllers[job->id].evicted(&job->manager->sources, key, answer);
}

static void on_look(void *arg, const char *key, const json_t *wanted)
{
	const struct job *job = arg;

	live_reads_begin(job->manager->looks, job->id, key, wanted,
			 controllers[job->id].reads_once);
}

static void on_looked(void *arg, unsigned int of, const char *key, json_t *found,
		      const struct err *err)
{
	struct manager *manager = arg;

	assert(of < CONTROLLER_COUNT && controllers[of].read);
	controllers[of].read(&manager->sources, key, found, err);
	if (err)
		queue_add_after(manager->schedule.controllers[of].queue, key,
				MANAGER_LOOK_AGAIN_MS);
}

/* An event on the object, if it is still there. */
static void warn_about(const struct manager *manager, const char *kind, const char *key,
		       const char *reason, const char *message)
{
	json_auto_t *object = cache_get(mirror_cache(manager->mirror, kind), key);

	if (object)
		recorder_emit(manager->config.recorder,
			      &(struct event_object){
				      .resource = mirror_resource(manager->mirror, kind),
				      .ns = json_namespace(object),
				      .name = json_name(object),
				      .uid = json_uid(object),
			      },
			      true, reason, message);
}

static void on_group_ended(void *arg, const char *group, const json_t *op, const struct err *err)
{
	const struct job *job = arg;
	struct manager *manager = job->manager;
	const char *kind = json_str_or(json_at(op, "kind"), "");
	const char *key = json_str_or(json_at(op, "key"), "");

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
	warn_about(manager, kind, key, "ObjectNotWritten", err->text);
}

static void on_answered(void *arg, const char *kind, const char *verb, int64_t took_us,
			const struct err *err)
{
	struct manager *manager = arg;

	schedule_answered(&manager->schedule, kind, verb, took_us, err);
}

static void on_learning(void *arg, bool begins)
{
	struct manager *manager = arg;

	manager->learning = begins;
}

/* ---- informers ------------------------------------------------------------------------------- */

static void on_synced(void *arg, const char *kind)
{
	struct manager *manager = arg;

	informer_reports_synced(&manager->informers, manager->mirror, kind);
	wake_turn(manager);
}

static void on_trouble(void *arg, const char *kind, const struct err *err)
{
	struct manager *manager = arg;

	informer_reports_trouble(&manager->informers, manager->mirror, kind, err);
}

/* ---- working --------------------------------------------------------------------------------- */

/* Overtaken decisions are made again as a matter of course; the rest needs an administrator. */
static void tell_failure(struct manager *manager, const struct job *job, const struct err *err)
{
	const struct controller *controller = &controllers[job->id];

	if (err->class == ERR_CONFLICT || kube_err_is(err, "NotLeader")) {
		log_debug("overtaken, will decide again", F_INT("id", (int64_t)job->number),
			  F_STR("controller", controller->name), F_STR("key", job->key),
			  F_ERR(err));
		return;
	}
	log_error("cannot carry out a decision, will retry", F_INT("id", (int64_t)job->number),
		  F_STR("controller", controller->name), F_STR("key", job->key), F_ERR(err));
	if (err->class == ERR_INVALID)
		warn_about(manager, controller->kind, job->key, err->reason, err->text);
}

/* err NULL: it succeeded. */
static void note_outcome(struct manager *manager, const struct job *job, const struct err *err)
{
	auto_free char *name = str_printf("%s %s", controllers[job->id].name, job->key);
	char now[RFC3339_SIZE];
	json_t *entry = NULL;

	if (!err)
		manager->failing_since_ms[job->id] = 0;
	else if (err->class != ERR_CONFLICT && !manager->failing_since_ms[job->id])
		manager->failing_since_ms[job->id] = clock_ms();
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
		     queue_failures(manager->schedule.controllers[job->id].queue, job->key) + 1);
}

static void on_carried_out(void *arg, const struct applier_result *result, const struct err *err)
{
	struct job *job = arg;
	struct manager *manager = job->manager;

	metric_add(manager->reconciles, 1, controllers[job->id].name,
		   err ? err->reason : (result->wrote ? "wrote" : "nothing to do"));
	if (err)
		tell_failure(manager, job, err);
	if (err && err->class == ERR_CONFLICT && controllers[job->id].overtaken)
		controllers[job->id].overtaken(&manager->sources);
	note_outcome(manager, job, err);
	if (!err && !str_empty(result->did))
		log_info("decision carried out", F_INT("id", (int64_t)job->number),
			 F_STR("controller", controllers[job->id].name), F_STR("key", job->key),
			 F_STR("did", result->did));
	if (!err && result->left)
		metric_add(manager->left, 1, controllers[job->id].name);
	schedule_ended(&manager->schedule, job->id, job->key, result, err);
	mem_free(job->key);
	mem_free(job);
	wake_turn(manager);
}

static void work_on(struct manager *manager, const struct schedule_key *next)
{
	const struct controller *controller = &controllers[next->id];
	int64_t started_us = clock_us(), started_cpu_us = clock_cpu_us();
	struct applier_result nothing = {.again_ms = -1};
	json_auto_t *world = json_object();
	auto_plan struct plan plan = {0};
	struct err err = {0};
	struct job *job = mem_new(struct job);
	int result = 0;

	gather_env(&manager->sources, world);
	controllers_gather(&manager->sources, next->id, next->key, world);
	if (!manager->schedule.removed)
		result = controller->reconcile(world, next->key, &plan, &err);
	else if (world_get(world, controller->kind, next->key))
		plan_release(&plan, controller->kind, next->key,
			     world_get(world, controller->kind, next->key), controller->finalizer);
	else
		/* Else it would not be found, should there be a namespace again. */
		plan_requeue(&plan, MANAGER_KEEP_MS);
	schedule_begun(&manager->schedule, next->id, clock_cpu_us() - started_cpu_us);
	metric_observe(manager->seconds, (double)(clock_us() - started_us) / 1e6, controller->name);
	*job = (struct job){manager, next->id, ++manager->decisions, str_dup(next->key),
			    ipam_book_revision(manager->sources.addresses)};
	log_debug("decided", F_INT("id", (int64_t)job->number),
		  F_STR("controller", controller->name), F_STR("key", next->key),
		  F_INT("operations", (int64_t)json_array_size(plan.ops)));
	if (result < 0)
		on_carried_out(job, &nothing, &err);
	else
		applier_run(manager->applier, job->number, &plan,
			    schedule_leaves_status(&manager->schedule, next), on_carried_out, job);
}

/* One key for which there is room; false when there is nothing to do now. */
static bool work_next(struct manager *manager)
{
	int64_t wait_ms;
	struct schedule_key next = schedule_next(&manager->schedule, &wait_ms);

	if (wait_ms >= 0)
		timer_start(manager->later, wait_ms);
	if (!next.key)
		return false;
	/*
	 * The object may be there and unknown: reconcilers would take it for deleted. It is looked
	 * at again when it can be read, or is gone.
	 */
	if (cache_is_unknown(mirror_cache(manager->mirror, controllers[next.id].kind), next.key))
		queue_done(manager->schedule.controllers[next.id].queue, next.key, NULL);
	else
		work_on(manager, &next);
	return true;
}

static void take_turn(void *arg)
{
	struct manager *manager = arg;
	int64_t until_us = clock_us() + MANAGER_TURN_US;

	schedule_note_progress(&manager->schedule);
	while (manager->leading) {
		if (!work_next(manager))
			return;
		if (clock_us() >= until_us) {
			deferred_run(manager->turn);
			return;
		}
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

/* A standby keeps every key for a takeover; nothing waits for it. */
static void collect(void *arg)
{
	struct manager *manager = arg;
	const struct write_limit *pace = &manager->schedule.pace;
	int64_t since_ms = manager->leading ? manager->schedule.lanes.later_since_ms : 0;

	object_metrics_collect(&manager->objects, manager->leading ? &manager->sources : NULL);
	metric_set(manager->window,
		   write_limit_steps_aside(pace, clock_ms()) ? 1 : write_limit_window(pace));
	metric_set(manager->later_wait, since_ms ? (double)(clock_ms() - since_ms) / 1000 : 0);
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		const struct queue *queue = manager->schedule.controllers[id].queue;
		size_t waiting =
			queue_waiting(queue, QUEUE_MAIN) + queue_waiting(queue, QUEUE_LATER);
		double length = manager->leading ? (double)waiting : 0;
		int64_t failing_ms = manager->leading ? manager->failing_since_ms[id] : 0;

		metric_set(manager->failing,
			   failing_ms ? (double)(clock_ms() - failing_ms) / 1000 : 0,
			   controllers[id].name);
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
	manager->failing = metric_gauge(
		metrics, "orbweaver_decisions_failing_seconds",
		"Time since decisions began to fail, of which none was carried out since; 0 while "
		"they are.",
		"controller");
	manager->waiting = metric_gauge(
		metrics, "orbweaver_queue_length",
		"Keys that wait for this replica; 0 while another one decides.", "controller");
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
	metrics_on_collect(metrics, collect, manager);
}

struct manager *manager_new(const struct manager_config *config)
{
	struct manager *manager = mem_new(struct manager);

	assert(config->loop && config->client && config->writes_max > 0 && config->webhook);
	manager->config = *config;
	manager->pod_demand.listening = config->webhook->listen != NULL;
	manager->turn = deferred_new(config->loop, take_turn, manager);
	manager->later = timer_new(config->loop, wake_turn, manager);
	manager->errors = json_object();
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
	manager->looks = live_reads_new(config->client, on_looked, manager);
	schedule_init(&manager->schedule, config->loop, config->metrics, &manager->sources,
		      config->writes_max, wake_turn, manager);
	informer_reports_init(&manager->informers, config->client, config->troubles,
			      config->recorder, config->self);
	manager->mirror = mirror_new(config->loop, config->client,
				     &(struct mirror_config){
					     .ns = config->ns,
					     .config_ns = config->config_ns,
					     .cilium_config = config->cilium_config,
					     .metrics = config->metrics,
					     .changed = on_object_changed,
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
		.remember = on_remember,
		.look = on_look,
		.evicted = on_evicted,
		.group_ended = on_group_ended,
		.answered = on_answered,
		.learning = on_learning,
		.arg = manager,
	});
	add_metrics(manager);
	object_metrics_init(&manager->objects, config->metrics);
	return manager;
}

void manager_free(struct manager *manager)
{
	if (!manager)
		return;
	metrics_off_collect(manager->config.metrics, collect, manager);
	applier_free(manager->applier);
	live_reads_free(manager->looks);
	informer_reports_done(&manager->informers);
	mirror_free(manager->mirror);
	schedule_done(&manager->schedule);
	deferred_free(manager->turn);
	timer_free(manager->later);
	json_decref(manager->errors);
	controller_sources_done(&manager->sources);
	object_metrics_done(&manager->objects);
	mem_free(manager);
}

const struct controller_sources *manager_sources(const struct manager *manager)
{
	return &manager->sources;
}

void manager_lead(struct manager *manager, bool leading)
{
	bool begins = leading && !manager->leading;

	manager->leading = manager->informers.leading = leading;
	for (size_t i = 0; begins && i < CONTROLLER_COUNT; i++)
		queue_restart_waits(manager->schedule.controllers[i].queue);
	if (begins) {
		informer_reports_lead(&manager->informers);
		ipam_book_lead(&manager->sources);
	}
	wake_turn(manager);
}

size_t manager_working(const struct manager *manager)
{
	return manager->schedule.working;
}

const struct queue *manager_queue(const struct manager *manager, enum controller_id id)
{
	assert(id < CONTROLLER_COUNT);
	return manager->schedule.controllers[id].queue;
}

const struct dependency_health *manager_troubles(const struct manager *manager)
{
	return manager->config.troubles;
}

const json_t *manager_errors(const struct manager *manager)
{
	return manager->errors;
}
