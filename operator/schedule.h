// SPDX-License-Identifier: Apache-2.0
/*
 * Which key of which controller goes next: one queue per controller, taken from in rotation, by the
 * lane whose turn it is (queue_priority.h) and as many as may be at work (write_limit.h). An
 * aggregate waits for what it sums up.
 */
#pragma once

#include "operator/controllers/controllers.h"
#include "operator/queue_priority.h"
#include "operator/writer/applier.h"
#include "operator/writer/write_limit.h"

enum {
	/*
	 * Plans being carried out at a time, at most: each has one write in flight (write_limit.h).
	 */
	SCHEDULE_WINDOW = 64,
	/* A summary waits for what it sums up, but not longer than this. */
	SCHEDULE_SUMMARY_MS = 30000,
	/* It rests so many times what it took, up to as long: 5 % of the time for each of them. */
	SCHEDULE_SUMMARY_REST = 20,
	/* How soon a key of an aggregate is looked at that is urgent (is_urgent). */
	SCHEDULE_URGENT_MS = 100,
};

struct schedule {
	const struct controller_sources *sources; /* borrowed */
	struct schedule_controller {
		struct queue *queue;
		bool caught_up;        /* looked at every key once since it could */
		int64_t busy_since_ms; /* 0: nothing waits and nothing is at work */
		int64_t took_cpu_us;   /* the last decision, with what it looked at */
	} controllers[CONTROLLER_COUNT];
	struct queue_priority lanes;
	struct write_limit pace;
	enum controller_id first; /* whose turn it is to go first */
	unsigned int writes_max;
	size_t working, awaited; /* keys; of these, such that pods wait for */
	bool removed; /* our namespace is being deleted: finalizers go, nothing is decided */
};

/* A key that was taken: at work until schedule_ended. */
struct schedule_key {
	enum controller_id id;
	enum queue_lane lane;
	const char *key; /* borrowed until then; NULL: none */
};

/* ready(arg): a key may be ready, and a worker free. sources: borrowed, may be filled in later. */
void schedule_init(struct schedule *s, struct loop *loop, struct metrics *metrics,
		   const struct controller_sources *sources, unsigned int writes_max,
		   loop_fn *ready, void *arg);
void schedule_done(struct schedule *s);

/* The key has to be looked at: at once, or, of an aggregate, after its delay. */
void schedule_wake(struct schedule *s, enum controller_id id, const char *key,
		   enum queue_lane lane);

/*
 * An object of a cache is `now` like this, NULL: gone. True when `removed` changed: our namespace
 * is being deleted, or is there again.
 */
bool schedule_note_removal(struct schedule *s, const char *kind, const char *key,
			   const json_t *now);

/* Before a turn: note who has nothing left to do. */
void schedule_note_progress(struct schedule *s);

/*
 * The next key for which there is room; none until the namespaces were listed. *ret_wait_ms: ask
 * again after this; -1: no need.
 */
struct schedule_key schedule_next(struct schedule *s, int64_t *ret_wait_ms);

/* Statuses of a plan for the key can wait: others load the server, or many keys wait. */
bool schedule_leaves_status(const struct schedule *s, const struct schedule_key *key);

/*
 * A decision was made, in this time, and is carried out. It has been, err NULL, or has failed: the
 * key comes back as the plan, or err, calls for.
 */
void schedule_begun(struct schedule *s, enum controller_id id, int64_t cpu_us);
void schedule_ended(struct schedule *s, enum controller_id id, const char *key,
		    const struct applier_result *result, const struct err *err);

/* A write was answered (applier.h). */
void schedule_answered(struct schedule *s, const char *kind, const char *verb, int64_t took_us,
		       const struct err *err);
