// SPDX-License-Identifier: Apache-2.0
/*
 * Two timers, and a worker for each that runs out; what a look knows goes on to the next one, since
 * its worker ends. Beside cni_server.c, which has the sandboxes.
 *
 * The runtime's folders. A change: an event of inotify, or another profile.
 *
 *	state            on a change      when the timer ends   when the worker ends
 *	quiet            settling         looking               -
 *	settling         settling         looking               -
 *	looking          looking, again   -                     quiet: a minute, or 3 s
 *	looking, again   looking, again   -                     settling
 */
#include "nodeagent/cni/server/node_keeper.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/cni/server/worker_process.h"
#include "nodeagent/cni/state/folder_watch.h"
#include "nodeagent/cni/worker/cni_job.h"
#include "nodeagent/host/watch.h"

enum {
	/* Events come in swarms. */
	SETTLE_MS = 50,
	/*
	 * From one look at the folders to the next, whatever changes: less than a second, in which
	 * a change is to be seen, and long for a program that writes there all the time.
	 */
	PROFILE_GAP_MS = 500,
	/*
	 * Where something else than a change is waited for, or changes cannot be seen. Also from
	 * look to look there: what a look begins and takes back, since the disk is full, is a
	 * change.
	 */
	PROFILE_AGAIN_MS = 3000,
	/* Events may be lost; and a file that could not be made is tried again. */
	PROFILE_LOOK_MS = 60000,
	RDMA_LOOK_MS = 60000,
	/* A look reads and writes a few folders; a disk may be busy. */
	WORKER_MS = 60000,
};

struct node_keeper {
	struct node_keeper_config config;
	struct timer *profile_look, *rdma_look;
	struct worker_process *profile_worker, *rdma_worker; /* NULL: none looks now */
	struct poller *events;
	int folders; /* descriptor of the watch of the runtime's folders; -1: none */
	struct poller *changes;
	enum profile profile;
	bool is_set;
	bool has_changed;  /* settling; or looking, again */
	int64_t looked_ms; /* when the last look began; 0: there was none */
	bool is_blind;     /* changes are not seen: logged already */
	bool is_failing;   /* the last look failed: logged already */
	bool is_open;      /* it did, or left something that no change ends */
	json_t *memory;    /* of the last look; NULL: there was none */
	json_t *networks;  /* as said last */
	bool is_stale;     /* RDMA: said already */
};

/* ---- the runtime's folders ------------------------------------------------------------------- */

static void say(struct node_keeper *keeper, json_t *networks)
{
	if (!networks || json_same(networks, keeper->networks))
		return;
	log_at(json_is_true(json_at(networks, "fault")) ? LOG_LEVEL_WARN : LOG_LEVEL_INFO,
	       "networks of pods", F_STR("profile", profile_name(keeper->profile)),
	       F_STR("reason", json_str_at(networks, "reason")),
	       F_STR("why", json_str_at(networks, "message")));
	json_decref(keeper->networks);
	keeper->networks = json_incref(networks);
	keeper->config.said(keeper->config.arg, networks);
}

/* Why a worker has not done its job; class ERR_NONE: it has. */
static struct err failure_of(const json_t *done, const struct err *failed)
{
	const json_t *error = json_object_get(done, "error");
	struct err err = {0};

	if (failed)
		return *failed;
	if (error)
		(void)ask_error_read(error, &err);
	else if (!done)
		(void)err_set(&err, ERR_HOST, "WorkerEnded",
			      "the process that was to look was killed or took longer than %d s; "
			      "see the agent's log and the kernel's",
			      WORKER_MS / 1000);
	return err;
}

/* The timer of the next look. */
static void settle(struct node_keeper *keeper)
{
	int64_t gap_ms = keeper->is_open ? PROFILE_AGAIN_MS : PROFILE_GAP_MS;
	int64_t due_ms = keeper->looked_ms ? keeper->looked_ms + gap_ms - clock_ms() : 0;

	timer_start(keeper->profile_look, due_ms > SETTLE_MS ? due_ms : SETTLE_MS);
}

static void on_change(struct node_keeper *keeper)
{
	if (keeper->has_changed || !keeper->is_set)
		return;
	keeper->has_changed = true;
	if (!keeper->profile_worker)
		settle(keeper);
}

static void on_folders(void *arg, int events)
{
	struct node_keeper *keeper = arg;

	if (folder_watch_drain(keeper->folders))
		on_change(keeper);
}

/* Once, until it is over. */
static void note_blindness(struct node_keeper *keeper, const struct err *err)
{
	bool is_blind = err->class != ERR_NONE;

	if (is_blind && !keeper->is_blind)
		log_warn("changes in the runtime's CNI folders cannot be seen, looking every few "
			 "seconds; raise fs.inotify.max_user_instances and max_user_watches",
			 F_ERR(err));
	keeper->is_blind = is_blind;
}

static void on_profile_ended(void *arg, const json_t *done, const struct err *failed)
{
	struct node_keeper *keeper = arg;
	json_auto_t *kept = json_incref((json_t *)done);
	struct err err = failure_of(done, failed), blind = {0};

	worker_process_free(take_ptr(keeper->profile_worker));
	if (err.class != ERR_NONE && !keeper->is_failing)
		log_error("the runtime's folders cannot be looked after: networks of pods stay as "
			  "they are",
			  F_ERR(&err));
	keeper->is_failing = err.class != ERR_NONE;
	keeper->is_open = keeper->is_failing || json_is_true(json_at(kept, "isOpen"));
	if (json_at(kept, "blind"))
		(void)ask_error_read(json_at(kept, "blind"), &blind);
	if (keeper->folders >= 0 && !keeper->is_failing)
		note_blindness(keeper, &blind);
	if (keeper->has_changed)
		settle(keeper);
	else if (keeper->is_open || keeper->is_blind)
		timer_start(keeper->profile_look, PROFILE_AGAIN_MS);
	else
		timer_start(keeper->profile_look, PROFILE_LOOK_MS);
	if (!json_at(kept, "memory"))
		return;
	json_decref(keeper->memory);
	keeper->memory = json_incref(json_at(kept, "memory"));
	say(keeper, json_at(kept, "networks"));
}

static void on_profile_look(void *arg)
{
	struct node_keeper *keeper = arg;
	json_t *job = cni_job_new_of_node(CNI_JOB_PROFILE);

	assert(!keeper->profile_worker);
	json_put_str(job, "profile", profile_name(keeper->profile));
	json_put(job, "usage", keeper->config.usage(keeper->config.arg));
	if (keeper->memory)
		json_put(job, "memory", json_incref(keeper->memory));
	keeper->has_changed = false;
	keeper->looked_ms = clock_ms();
	keeper->profile_worker = worker_process_new(&(struct worker_process_config){
		.loop = keeper->config.loop,
		.orders = keeper->config.orders,
		.job = job,
		.fd = keeper->folders,
		.deadline_ms = WORKER_MS,
		.ended = on_profile_ended,
		.arg = keeper,
	});
}

void node_keeper_set(struct node_keeper *keeper, enum profile profile)
{
	if (keeper->is_set && keeper->profile == profile)
		return;
	keeper->is_set = true;
	keeper->profile = profile;
	keeper->is_open = false;
	on_change(keeper);
}

/* ---- RDMA devices ---------------------------------------------------------------------------- */

static void on_rdma_ended(void *arg, const json_t *done, const struct err *failed)
{
	struct node_keeper *keeper = arg;
	struct err err = failure_of(done, failed);

	worker_process_free(take_ptr(keeper->rdma_worker));
	if (err.class != ERR_NONE && !keeper->is_stale)
		log_error("device files of RDMA devices cannot be kept right: pods that have such "
			  "a device may not start",
			  F_ERR(&err));
	keeper->is_stale = err.class != ERR_NONE;
	if (!timer_is_active(keeper->rdma_look))
		timer_start(keeper->rdma_look, RDMA_LOOK_MS);
}

static void on_rdma_look(void *arg)
{
	struct node_keeper *keeper = arg;

	if (keeper->rdma_worker) {
		timer_start(keeper->rdma_look, SETTLE_MS);
		return;
	}
	keeper->rdma_worker = worker_process_new(&(struct worker_process_config){
		.loop = keeper->config.loop,
		.orders = keeper->config.orders,
		.job = cni_job_new_of_node(CNI_JOB_RDMA),
		.fd = -1,
		.deadline_ms = WORKER_MS,
		.ended = on_rdma_ended,
		.arg = keeper,
	});
}

static void on_event(void *arg, const struct watch_event *event)
{
	const struct node_keeper *keeper = arg;

	timer_start(keeper->rdma_look, SETTLE_MS);
}

static void on_uevents(void *arg, int events)
{
	struct node_keeper *keeper = arg;
	struct err err = {0};

	if (watch_read(keeper->config.watch, WATCH_UEVENT, on_event, keeper, &err) == 0)
		return;
	log_warn("the kernel's events cannot be read any more, looking once a minute", F_ERR(&err));
	poller_free(keeper->events);
	keeper->events = NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct node_keeper *node_keeper_new(const struct node_keeper_config *config)
{
	struct node_keeper *keeper = mem_new(struct node_keeper);
	int fd = config->watch ? watch_fd(config->watch, WATCH_UEVENT) : -1;
	struct err err = {0};

	keeper->config = *config;
	keeper->profile_look = timer_new(config->loop, on_profile_look, keeper);
	/* By the user that it is now, whose instances no other program uses up. */
	keeper->folders = folder_watch_open(&err);
	note_blindness(keeper, &err);
	if (keeper->folders >= 0) {
		keeper->changes = poller_new(config->loop, keeper->folders, on_folders, keeper);
		poller_want(keeper->changes, POLL_READ);
	}
	keeper->rdma_look = timer_new(config->loop, on_rdma_look, keeper);
	timer_start(keeper->rdma_look, 0);
	if (fd < 0)
		return keeper;
	keeper->events = poller_new(config->loop, fd, on_uevents, keeper);
	poller_want(keeper->events, POLL_READ);
	return keeper;
}

void node_keeper_free(struct node_keeper *keeper)
{
	if (!keeper)
		return;
	worker_process_free(keeper->profile_worker);
	worker_process_free(keeper->rdma_worker);
	poller_free(keeper->events);
	poller_free(keeper->changes);
	own_close_p(&keeper->folders);
	timer_free(keeper->profile_look);
	timer_free(keeper->rdma_look);
	json_decref(keeper->memory);
	json_decref(keeper->networks);
	mem_free(keeper);
}
