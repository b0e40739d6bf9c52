// SPDX-License-Identifier: Apache-2.0
/*
 * First the lane, then the controllers in rotation. Keys that sandboxes of pods wait for (awaited)
 * also go when there is no room for others.
 */
#include "operator/schedule.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"

void schedule_init(struct schedule *s, struct loop *loop, struct metrics *metrics,
		   const struct controller_sources *sources, unsigned int writes_max,
		   loop_fn *ready, void *arg)
{
	assert(writes_max > 0 && writes_max <= SCHEDULE_WINDOW);
	*s = (struct schedule){.sources = sources, .writes_max = writes_max};
	write_limit_init(&s->pace, writes_max);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		s->controllers[i].queue = queue_new(loop, ready, arg);
		queue_measure(s->controllers[i].queue, metrics, controllers[i].name);
	}
}

void schedule_done(struct schedule *s)
{
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		queue_free(s->controllers[i].queue);
}

/* ---- keys that come -------------------------------------------------------------------------- */

/*
 * How long a key waits until what it sums up is looked at again. What is for people rests; drains
 * and addresses go on.
 */
static int64_t summary_delay_ms(const struct schedule *s, enum controller_id id, const char *key)
{
	int64_t rest_ms = s->controllers[id].took_cpu_us * SCHEDULE_SUMMARY_REST / 1000;

	if (controllers[id].is_urgent && controllers[id].is_urgent(s->sources, key))
		return SCHEDULE_URGENT_MS;
	if (!controllers[id].status_waits || rest_ms < controllers[id].every_ms)
		return controllers[id].every_ms;
	return rest_ms < SCHEDULE_SUMMARY_MS ? rest_ms : SCHEDULE_SUMMARY_MS;
}

void schedule_wake(struct schedule *s, enum controller_id id, const char *key, enum queue_lane lane)
{
	assert(id < CONTROLLER_COUNT && key);
	if (controllers[id].every_ms)
		queue_add_after(s->controllers[id].queue, key, summary_delay_ms(s, id, key));
	else
		queue_add(s->controllers[id].queue, key, lane);
}

/*
 * An administrator who removes the program deletes its namespace, and maybe its kinds too. Policies
 * that vanish then do not ask that their VFs go: nothing is decided until the namespace exists
 * again, and nodes keep what they have. But finalizers are removed from all objects, also from
 * those that stay: without the operator their deletion would hang.
 */
bool schedule_note_removal(struct schedule *s, const char *kind, const char *key, const json_t *now)
{
	bool removed = !now || json_at(now, "metadata", "deletionTimestamp");

	if (!str_eq(kind, KIND_NAMESPACE) || !str_eq(key, s->sources->ns) || removed == s->removed)
		return false;
	s->removed = removed;
	if (removed)
		log_warn("our namespace is being deleted: deciding nothing, releasing finalizers",
			 F_STR("namespace", key));
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		const struct cache *cache = mirror_cache(s->sources->mirror, controllers[id].kind);
		const char *name = NULL;
		size_t iter = 0;

		while (controllers[id].finalizer && (name = cache_next(cache, &iter)))
			queue_add(s->controllers[id].queue, name, QUEUE_MAIN);
	}
	return true;
}

/* ---- keys that go ---------------------------------------------------------------------------- */

static bool needs_met(const struct schedule *s, enum controller_id id)
{
	const char *const *needs = controllers[id].needs;

	for (size_t i = 0; i < CONTROLLER_MAX_NEEDS && needs[i]; i++)
		if (!mirror_is_synced(s->sources->mirror, needs[i]) ||
		    !mirror_is_whole(s->sources->mirror, needs[i]))
			return false;
	return true;
}

void schedule_note_progress(struct schedule *s)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		struct schedule_controller *state = &s->controllers[id];

		if (queue_waiting(state->queue, QUEUE_MAIN) == 0 &&
		    queue_waiting(state->queue, QUEUE_LATER) == 0 &&
		    queue_working(state->queue) == 0) {
			state->busy_since_ms = 0;
			state->caught_up = state->caught_up || needs_met(s, id);
		} else if (state->busy_since_ms == 0) {
			state->busy_since_ms = clock_ms();
		}
	}
}

/*
 * A summary waits until what it sums up has looked at everything once, and while it is at work,
 * lest one change of a policy be told once a second; but not for ever.
 */
static bool may_work(const struct schedule *s, enum controller_id id)
{
	const struct controller *controller = &controllers[id];
	const struct schedule_controller *after = &s->controllers[controller->after];

	if (!needs_met(s, id))
		return false;
	if (s->removed)
		return controller->finalizer != NULL;
	return !controller->every_ms || controller->after == id ||
	       (after->caught_up && (after->busy_since_ms == 0 ||
				     clock_ms() - after->busy_since_ms >= SCHEDULE_SUMMARY_MS));
}

static bool has_room(const struct schedule *s, bool awaited)
{
	/* Our rights go in a moment, with the namespace. */
	if (s->removed)
		return s->working < s->writes_max;
	return write_limit_has_room(&s->pace, (unsigned int)s->awaited,
				    (unsigned int)(s->working - s->awaited), awaited, clock_ms());
}

/* A key of the lane, of an awaited controller if so said. */
static struct schedule_key take_from(struct schedule *s, enum queue_lane lane, bool awaited)
{
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		enum controller_id id = (s->first + i) % CONTROLLER_COUNT;
		struct queue *queue = s->controllers[id].queue;

		if ((awaited && !controllers[id].awaited) || queue_waiting(queue, lane) == 0 ||
		    !may_work(s, id) || !has_room(s, controllers[id].awaited))
			continue;
		s->first = (id + 1) % CONTROLLER_COUNT;
		return (struct schedule_key){id, lane, queue_take_from(queue, lane)};
	}
	return (struct schedule_key){0};
}

/* Keys wait in this lane that may be worked on. */
static bool has_work(const struct schedule *s, enum queue_lane lane)
{
	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++)
		if (queue_waiting(s->controllers[id].queue, lane) > 0 && may_work(s, id))
			return true;
	return false;
}

/* More objects wait than can be at work: they shall all have what pods need first. */
static bool is_crowded(const struct schedule *s, enum controller_id id)
{
	return queue_waiting(s->controllers[id].queue, QUEUE_MAIN) >= SCHEDULE_WINDOW;
}

/* What people read of objects can wait a while longer. */
static bool is_patient(const struct schedule *s)
{
	bool patient = write_limit_is_pressed(&s->pace, clock_ms());

	for (enum controller_id id = 0; !patient && id < CONTROLLER_COUNT; id++)
		patient = is_crowded(s, id);
	return patient;
}

struct schedule_key schedule_next(struct schedule *s, int64_t *ret_wait_ms)
{
	*ret_wait_ms = -1;
	if (!mirror_is_synced(s->sources->mirror, KIND_NAMESPACE))
		return (struct schedule_key){0};
	if (!has_room(s, false)) {
		*ret_wait_ms = write_limit_rest_ms(&s->pace, clock_ms());
		return take_from(s, QUEUE_MAIN, true);
	}
	switch (queue_priority_next(&s->lanes, has_work(s, QUEUE_MAIN), has_work(s, QUEUE_LATER),
				    is_patient(s), clock_ms(), ret_wait_ms)) {
	case QUEUE_PRIORITY_MAIN:
		return take_from(s, QUEUE_MAIN, false);
	case QUEUE_PRIORITY_LATER:
		return take_from(s, QUEUE_LATER, false);
	case QUEUE_PRIORITY_NOTHING:
		break;
	}
	return (struct schedule_key){0};
}

bool schedule_leaves_status(const struct schedule *s, const struct schedule_key *key)
{
	assert(key->id < CONTROLLER_COUNT && key->key);
	return controllers[key->id].status_waits && key->lane == QUEUE_MAIN &&
	       (write_limit_is_pressed(&s->pace, clock_ms()) || is_crowded(s, key->id));
}

/* ---- keys at work ---------------------------------------------------------------------------- */

void schedule_begun(struct schedule *s, enum controller_id id, int64_t cpu_us)
{
	assert(id < CONTROLLER_COUNT && s->working < SCHEDULE_WINDOW);
	s->controllers[id].took_cpu_us = cpu_us;
	s->working++;
	s->awaited += controllers[id].awaited;
	if (!controllers[id].awaited)
		write_limit_begun(&s->pace, clock_ms());
}

void schedule_ended(struct schedule *s, enum controller_id id, const char *key,
		    const struct applier_result *result, const struct err *err)
{
	struct queue *queue = s->controllers[id].queue;

	assert(id < CONTROLLER_COUNT && s->working > 0);
	assert(s->awaited <= s->working && s->awaited >= controllers[id].awaited);
	s->working--;
	s->awaited -= controllers[id].awaited;
	if (!str_empty(result->did))
		queue_priority_wrote(&s->lanes, clock_ms());
	if (!err && result->again_ms >= 0)
		queue_add_after(queue, key, result->again_ms);
	if (!err && result->left)
		queue_add(queue, key, QUEUE_LATER);
	queue_done(queue, key, err);
}

void schedule_answered(struct schedule *s, const char *kind, const char *verb, int64_t took_us,
		       const struct err *err)
{
	assert(kind && verb && s->awaited <= s->working);
	if (s->working > s->awaited)
		write_limit_rest(&s->pace, took_us, clock_ms());
	if (err && (err->retry_after_ms > 0 || kube_err_is(err, "DeadlineExceeded")))
		write_limit_refused(&s->pace, (unsigned int)s->working, clock_ms());
	/* Beyond the window it is our own load that makes answers slow. */
	else if ((!err || err->class == ERR_CONFLICT) &&
		 (s->awaited == 0 || s->working <= write_limit_window(&s->pace)))
		write_limit_answered(&s->pace, kind, verb, took_us, (unsigned int)s->working,
				     clock_ms());
}
