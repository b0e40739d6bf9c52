/*
 * One queue per controller; a turn takes keys from them in rotation until the window is full or its time is over.
 */
#include "operator/manager.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/queue.h"
#include "lib/kube/status.h"
#include "operator/applier.h"
#include "operator/controllers.h"
#include "operator/worlds.h"

struct manager {
	struct manager_config config;
	struct mirror *mirror;
	struct reports *reports;
	struct findings *findings;
	struct ip_pool_index *pools;
	struct node_resources *resources;
	struct applier *applier;
	struct controller_sources sources;
	struct controller_state {
		struct manager *manager;
		struct queue *queue;
		bool caught_up;        /* looked at every key once since it could */
		int64_t busy_since_ms; /* 0: nothing waits and nothing is at work */
	} controllers[CONTROLLER_COUNT];
	struct deferred *turn;
	struct timer *later; /* when QUEUE_LATER may be worked on */
	int64_t last_main_ms, later_since_ms;
	enum controller_id first; /* whose turn it is to go first */
	size_t working;
	bool leading;
	char trouble[sizeof(((struct err *)0)->text)]; /* what was said last about watching */
	bool learning; /* changes told now are answers to our own writes */
	bool removed;  /* our namespace is being deleted */
	struct metric *reconciles, *seconds, *waiting, *found;
};

/* A key at work. */
struct job {
	struct manager *manager;
	enum controller_id id;
	char *key;
};

/* ---- waking ------------------------------------------------------------------------------------------------------- */

static void wake_turn(void *arg)
{
	struct manager *manager = arg;

	if (manager->leading)
		deferred_run(manager->turn);
}

/*
 * What follows from our own writes (a status, above all) waits until nothing else does: first every object gets what it
 * asked for, then the conditions say so.
 */
static void wake(void *arg, enum controller_id id, const char *key)
{
	struct manager *manager = arg;
	const struct controller *controller = &controllers[id];
	struct queue *queue = manager->controllers[id].queue;

	if (controller->every_ms)
		queue_add_after(queue, key, controller->every_ms);
	else
		queue_add(queue, key, manager->learning ? QUEUE_LATER : QUEUE_MAIN);
}

/*
 * Who removes the product deletes its namespace and its kinds at the same time. Policies that vanish then are no wish that
 * their VFs go: from here on nothing is decided, and nodes keep what they have, until there is a namespace again.
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
		log_warn("our namespace is being deleted: deciding nothing more",
			 F_STR("namespace", key));
	wake_turn(manager);
}

static void on_changed(void *arg, const char *kind, const char *key, const json_t *old,
		       const json_t *now)
{
	struct manager *manager = arg;

	note_removal(manager, kind, key, now);
	controllers_map(&manager->sources, kind, key, old, now, wake, manager);
	if (manager->config.changed)
		manager->config.changed(manager->config.arg, kind, now);
}

static void on_report_changed(void *arg, const char *policy)
{
	wake(arg, CONTROLLER_POLICY_STATUS, policy);
}

static void on_report(void *arg, const char *node, const json_t *policies)
{
	struct manager *manager = arg;

	reports_set(manager->reports, node, policies, on_report_changed, manager);
}

static bool on_found(void *arg, const json_t *op, const json_t *object)
{
	struct manager *manager = arg;
	const char *kind = json_str_at(op, "kind"), *key = json_str_at(op, "key");

	if (!findings_set(manager->findings, kind, key, json_uid(object),
			  object ? json_str_at(op, "reason") : NULL, json_str_at(op, "message")))
		return false;
	controllers_map_finding(&manager->sources, kind, key, wake, manager);
	return true;
}

static void on_learning(void *arg, bool begins)
{
	struct manager *manager = arg;

	manager->learning = begins;
}

/* ---- kinds that are not there yet, or not allowed ----------------------------------------------------------------- */

static bool all_synced(const struct manager *manager)
{
	const char *kind = NULL;

	for (size_t i = 0; (kind = mirror_kind(i)); i++)
		if (!mirror_is_synced(manager->mirror, kind))
			return false;
	return true;
}

static void on_synced(void *arg, const char *kind)
{
	struct manager *manager = arg;

	health_set(manager->config.ready, kind, true, NULL);
	log_info("mirrored", F_STR("kind", kind),
		 F_INT("objects", (int64_t)cache_len(mirror_cache(manager->mirror, kind))));
	if (all_synced(manager))
		mem_drop_code();
	wake_turn(manager);
}

/* What ails all kinds alike (the API server does not answer, the token is no good) is said for the first one. */
static void tell_trouble(struct manager *manager, const char *kind, const struct err *err,
			 const char *remedy)
{
	enum log_level level =
		str_eq(manager->trouble, err->text) ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR;

	snprintf(manager->trouble, sizeof(manager->trouble), "%s", err->text);
	log_at(level, "cannot watch, waiting", F_STR("kind", kind), F_ERR(err),
	       F_STR("remedy", remedy ? remedy : "none needed once the API server answers"));
}

static void on_trouble(void *arg, const char *kind, const struct err *err)
{
	struct manager *manager = arg;
	const struct kind_info *info = kind_find(kind);
	auto_free char *remedy = NULL;
	bool synced = mirror_is_synced(manager->mirror, kind);

	if (!err) {
		if (*manager->trouble)
			log_info("watching again", F_STR("kind", kind));
		manager->trouble[0] = '\0';
		if (synced)
			health_set(manager->config.ready, kind, true, NULL);
		return;
	}
	if (kube_err_is(err, "NotServed") && info && info->crd_file)
		remedy = str_printf("%s.%s is not installed: kubectl apply -f %s", info->id,
				    info->group, info->crd_file);
	else if (kube_err_is(err, "Forbidden"))
		remedy = str_printf("grant the operator's service account the verbs list and watch "
				    "on %s (manifests/base/rbac.yaml)",
				    mirror_resource(manager->mirror, kind)->plural);
	/* Without what it need not have, an operator does all but its SpiderCoordinator. */
	health_set(manager->config.ready, kind, mirror_is_optional(kind),
		   remedy ? remedy : err->text);
	tell_trouble(manager, kind, err, remedy);
}

/* ---- working ------------------------------------------------------------------------------------------------------ */

static json_t *new_world(struct manager *manager, const struct controller *controller,
			 const char *key)
{
	json_t *world = json_object();

	worlds_add_env(&manager->sources, world);
	controller->look(&manager->sources, controller, key, world);
	return world;
}

/* Overtaken decisions are made again as a matter of course; the rest is somebody's business. */
static void tell_failure(struct manager *manager, const struct job *job, const struct err *err)
{
	const struct controller *controller = &controllers[job->id];
	json_auto_t *object = NULL;

	if (err->class == ERR_CONFLICT || kube_err_is(err, "NotLeader")) {
		log_debug("decided again", F_STR("controller", controller->name),
			  F_STR("key", job->key), F_ERR(err));
		return;
	}
	log_error("not carried out, trying again", F_STR("controller", controller->name),
		  F_STR("key", job->key), F_ERR(err));
	object = cache_get(mirror_cache(manager->mirror, controller->kind), job->key);
	if (object && err->class == ERR_INVALID)
		recorder_tell(
			manager->config.recorder,
			&(struct event_object){
				.resource = mirror_resource(manager->mirror, controller->kind),
				.ns = json_namespace(object),
				.name = json_name(object),
				.uid = json_uid(object),
			},
			true, err->reason, err->text);
}

static void on_carried_out(void *arg, const struct applier_result *result, const struct err *err)
{
	struct job *job = arg;
	struct manager *manager = job->manager;
	struct queue *queue = manager->controllers[job->id].queue;

	manager->working--;
	metric_add(manager->reconciles, 1, controllers[job->id].name,
		   err ? err->reason : (result->wrote ? "wrote" : "nothing to do"));
	if (err)
		tell_failure(manager, job, err);
	if (!err && result->again_ms >= 0)
		queue_add_after(queue, job->key, result->again_ms);
	queue_done(queue, job->key, err != NULL);
	mem_free(job->key);
	mem_free(job);
	wake_turn(manager);
}

static void work_on(struct manager *manager, enum controller_id id, const char *key)
{
	const struct controller *controller = &controllers[id];
	json_auto_t *world = new_world(manager, controller, key);
	struct applier_result nothing = {.again_ms = -1};
	auto_plan struct plan plan = {0};
	struct err err = {0};
	struct job *job = mem_new(struct job);
	int64_t started_us = clock_us();
	int result = controller->reconcile(world, key, &plan, &err);

	metric_observe(manager->seconds, (double)(clock_us() - started_us) / 1e6, controller->name);
	*job = (struct job){manager, id, str_dup(key)};
	manager->working++;
	if (result < 0)
		on_carried_out(job, &nothing, &err);
	else
		applier_run(manager->applier, &plan, on_carried_out, job);
}

static bool needs_met(const struct manager *manager, enum controller_id id)
{
	const char *const *needs = controllers[id].needs;

	for (size_t i = 0; i < CONTROLLER_MAX_NEEDS && needs[i]; i++)
		if (!mirror_is_synced(manager->mirror, needs[i]))
			return false;
	return true;
}

static bool is_busy(const struct controller_state *state)
{
	return queue_waiting(state->queue, QUEUE_MAIN) > 0 ||
	       queue_waiting(state->queue, QUEUE_LATER) > 0 || queue_working(state->queue) > 0;
}

/*
 * A summary waits until what it sums up has looked at everything once, and while it is at work, lest one change of a
 * policy be told once a second; but not for ever.
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

/* One key of one controller; false when there is none. */
static bool work_one(struct manager *manager, enum queue_lane lane)
{
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		enum controller_id id = (manager->first + i) % CONTROLLER_COUNT;
		struct queue *queue = manager->controllers[id].queue;

		if (!may_work(manager, id) || queue_waiting(queue, lane) == 0)
			continue;
		manager->first = (id + 1) % CONTROLLER_COUNT;
		work_on(manager, id, queue_take(queue, NULL));
		return true;
	}
	return false;
}

/*
 * May what follows from our own writes be done now? Once nothing else was to do for a moment, or when it has waited long.
 * Otherwise a timer says when.
 */
static bool later_is_due(struct manager *manager)
{
	int64_t now = clock_ms();
	int64_t due = manager->last_main_ms + MANAGER_QUIET_MS;

	if (manager->later_since_ms == 0)
		manager->later_since_ms = now;
	if (due > manager->later_since_ms + MANAGER_LATER_MS)
		due = manager->later_since_ms + MANAGER_LATER_MS;
	if (now >= due)
		return true;
	timer_start(manager->later, due - now);
	return false;
}

static bool has_later(const struct manager *manager)
{
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		if (queue_waiting(manager->controllers[i].queue, QUEUE_LATER) > 0)
			return true;
	return false;
}

static bool work_later(struct manager *manager)
{
	if (!has_later(manager)) {
		manager->later_since_ms = 0;
		return false;
	}
	return later_is_due(manager) && work_one(manager, QUEUE_LATER);
}

static bool work_main(struct manager *manager)
{
	if (!work_one(manager, QUEUE_MAIN))
		return false;
	manager->last_main_ms = clock_ms();
	return true;
}

static bool may_decide(const struct manager *manager)
{
	return manager->leading && !manager->removed &&
	       mirror_is_synced(manager->mirror, KIND_NAMESPACE);
}

static void take_turn(void *arg)
{
	struct manager *manager = arg;
	int64_t until_us = clock_us() + MANAGER_TURN_US;

	note_progress(manager);
	while (may_decide(manager) && manager->working < MANAGER_WINDOW) {
		if (!work_main(manager) && !work_later(manager))
			return;
		if (clock_us() >= until_us) {
			deferred_run(manager->turn);
			return;
		}
	}
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

static void set_found(void *arg, const char *kind, const char *reason, size_t count)
{
	const struct manager *manager = arg;

	metric_set(manager->found, (double)count, kind, reason);
}

/* Only who decides knows what there is to find; a sum over the replicas counts nothing twice. */
static void collect_findings(struct manager *manager)
{
	metric_clear(manager->found);
	if (manager->leading)
		findings_count(manager->findings, set_found, manager);
}

static void collect(void *arg)
{
	struct manager *manager = arg;

	collect_findings(manager);

	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		const struct queue *queue = manager->controllers[i].queue;

		metric_set(manager->waiting,
			   (double)(queue_waiting(queue, QUEUE_MAIN) +
				    queue_waiting(queue, QUEUE_LATER)),
			   controllers[i].name);
	}
}

static void add_metrics(struct manager *manager)
{
	struct metrics *metrics = manager->config.metrics;

	manager->reconciles = metric_counter(metrics, "orbweaver_reconciles_total",
					     "Keys looked at, by result.", "controller,result");
	manager->seconds = metric_histogram(metrics, "orbweaver_reconcile_seconds",
					    "Time to decide, without carrying out.", "controller",
					    METRIC_SECONDS);
	manager->waiting =
		metric_gauge(metrics, "orbweaver_queue_length", "Keys waiting.", "controller");
	manager->found = metric_gauge(metrics, "orbweaver_findings",
				      "Objects with which something is found wrong at present.",
				      "kind,reason");
	metrics_on_collect(metrics, collect, manager);
}

struct manager *manager_new(const struct manager_config *config)
{
	struct manager *manager = mem_new(struct manager);
	const char *kind = NULL;

	manager->config = *config;
	manager->turn = deferred_new(config->loop, take_turn, manager);
	manager->later = timer_new(config->loop, wake_turn, manager);
	manager->reports = reports_new();
	manager->findings = findings_new();
	manager->pools = ip_pool_index_new();
	manager->resources = node_resources_new();
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		manager->controllers[i] = (struct controller_state){
			.manager = manager,
			.queue = queue_new(config->loop, wake_turn, manager),
		};
	for (size_t i = 0; (kind = mirror_kind(i)); i++)
		health_set(config->ready, kind, mirror_is_optional(kind), "not listed yet");
	manager->mirror = mirror_new(config->loop, config->client,
				     &(struct mirror_config){
					     .ns = config->ns,
					     .config_ns = config->config_ns,
					     .stream_lists = config->stream_lists,
					     .metrics = config->metrics,
					     .changed = on_changed,
					     .synced = on_synced,
					     .trouble = on_trouble,
					     .arg = manager,
				     });
	manager->sources = (struct controller_sources){
		.mirror = manager->mirror,
		.reports = manager->reports,
		.findings = manager->findings,
		.pools = manager->pools,
		.resources = manager->resources,
		.ns = config->ns,
		.resource_prefix = config->resource_prefix,
		.config_ns = config->config_ns,
		.webhook = config->webhook,
	};
	manager->applier = applier_new(&(struct applier_config){
		.client = config->client,
		.mirror = manager->mirror,
		.recorder = config->recorder,
		.metrics = config->metrics,
		.report = on_report,
		.found = on_found,
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
	mirror_free(manager->mirror);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		queue_free(manager->controllers[i].queue);
	deferred_free(manager->turn);
	timer_free(manager->later);
	reports_free(manager->reports);
	findings_free(manager->findings);
	ip_pool_index_free(manager->pools);
	node_resources_free(manager->resources);
	mem_free(manager);
}

const struct controller_sources *manager_sources(const struct manager *manager)
{
	return &manager->sources;
}

void manager_lead(struct manager *manager, bool leading)
{
	manager->leading = leading;
	wake_turn(manager);
}

size_t manager_working(const struct manager *manager)
{
	return manager->working;
}
