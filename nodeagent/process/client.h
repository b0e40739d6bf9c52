// SPDX-License-Identifier: Apache-2.0
/*
 * The agent's side of hostd: asks privileged workers, each for one thing at a time, and gives up
 * one that hangs.
 *
 * The supervisor starts the workers (workers.h). A worker executes requests in plain blocking code
 * and ends when its socket closes: also when there has been nothing to do for a while. When a
 * worker ends before its time or misses a deadline, it is killed and the next request gets a new
 * one. A worker that cannot be killed (asleep in the kernel) is left behind and counted:
 * hostd_stuck().
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"

struct hostd;

enum {
	/* Of what may run side by side: with those that are stuck no more than WORKERS_MAX. */
	HOSTD_PARALLEL_MAX = 8,
};

struct hostd_config {
	int orders;      /* socket to the supervisor (workers.h); taken. With `answer`: unused */
	size_t parallel; /* so many requests may be under way; 0: one */
	/* The supervisor is gone: nothing works any more, the process should end. Called once. */
	void (*lost)(void *arg);
	/*
	 * In place of workers, for a host that cannot hang: the reply to a request
	 * (answer_request()), new. From the loop, one at a time. NULL: workers.
	 */
	json_t *(*answer)(void *arg, const json_t *message);
	void *arg;
	struct metrics *metrics; /* may be NULL */
};

struct hostd *hostd_new(struct loop *loop, const struct hostd_config *config);
/*
 * No callback comes after it. The workers are killed, and a step that runs is cut off between two
 * system calls, as it would be if the agent were killed: the next run looks again. Who wants it
 * finished waits for its `done` first.
 */
void hostd_free(struct hostd *hostd);

/*
 * result: what the operation returned, borrowed; NULL when it failed, with err. Besides errors of
 * the operation itself: ERR_HOST "HostHung" when the deadline passed (what was asked for may still
 * happen) or HOSTD_STUCK_MAX workers hang already, "HostdDied" when the worker ended (with the
 * signal) or the supervisor is gone, "HostdNotStarted" when no worker can be had, ERR_BUG
 * "BadReply", "MessageTooLarge".
 */
typedef void (*hostd_done_fn)(void *arg, const json_t *result, const struct err *err);

/*
 * Requests begin in order, as many side by side as `parallel` says: who needs one to be over before
 * the next waits for its `done`, which comes from the loop, never from here.
 */

/* host_observe(); flags of observe.h. */
void hostd_observe(struct hostd *hostd, unsigned int flags, hostd_done_fn done, void *arg);
/* host_execute(), with the deadline of step_deadline_ms(); a little is added for the way. */
void hostd_step(struct hostd *hostd, const json_t *step, int deadline_ms, hostd_done_fn done,
		void *arg);
/*
 * The state file, var/lib/orbweaver/state.json below the root: replaced as a whole, durable before
 * done. Loading gives {} when there is none; a damaged one is kept beside it under another name and
 * is ERR_HOST "StateDamaged" once.
 */
void hostd_load(struct hostd *hostd, hostd_done_fn done, void *arg);
void hostd_save(struct hostd *hostd, const json_t *state, hostd_done_fn done, void *arg);
/*
 * counters_list() of these VFs (an array of PCI addresses; NULL: all), and counters_read() of one
 * of its devices. Both are for a hostd of meters (workers.h); deadlines HOSTD_DEVICES_MS and
 * HOSTD_COUNTERS_MS.
 */
void hostd_devices(struct hostd *hostd, const json_t *vfs, hostd_done_fn done, void *arg);
void hostd_counters(struct hostd *hostd, const json_t *device, hostd_done_fn done, void *arg);
/* gids_find(), of nodeagent/host/gids.h; deadline HOSTD_GIDS_MS. Not for meters. */
void hostd_gids(struct hostd *hostd, const json_t *wanted, hostd_done_fn done, void *arg);
/* port_details_read(), of nodeagent/host/port_details.h; deadline HOSTD_PORT_MS. Likewise. */
void hostd_port(struct hostd *hostd, const json_t *port, hostd_done_fn done, void *arg);
/* host_inspect() of what a look sees; deadline HOSTD_INSPECT_MS. Likewise. */
void hostd_inspect(struct hostd *hostd, hostd_done_fn done, void *arg);
/* For host_set_node_addresses(); remembered for workers to come. */
void hostd_set_node_addresses(struct hostd *hostd, const json_t *addresses);
/*
 * For host_set_held(): goes with each step that is asked for from now on; NULL: not known. It adds
 * to what the kubelet reports to the worker.
 */
void hostd_set_held(struct hostd *hostd, const json_t *held);

enum {
	/* Every namespace is entered, and every function looked at, some ten files each. */
	HOSTD_DEVICES_MS = 2000,
	/*
	 * A few milliseconds, unless firmware does not respond or another process makes VFs and has
	 * the lock.
	 */
	HOSTD_COUNTERS_MS = 1000,
	/* GIDS_SLOTS_MAX files that the kernel has in memory. */
	HOSTD_GIDS_MS = 5000,
	/* Five readings of a transceiver: 10 to 100 ms each. */
	HOSTD_PORT_MS = 3000,
	/* A look, some files of each function and GPU, one of each process. */
	HOSTD_INSPECT_MS = 10000,
};

/*
 * With so many left behind nothing more is tried: each holds memory, and the kernel is in trouble
 * anyway.
 */
#define HOSTD_STUCK_MAX 8

/*
 * Workers left behind because they cannot be killed; what one of them was asked for, borrowed, or
 * NULL: a step, or the name of another request, {"kind": "observe"}.
 */
size_t hostd_stuck(const struct hostd *hostd, const json_t **ret_request);
