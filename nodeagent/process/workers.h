// SPDX-License-Identifier: Apache-2.0
/*
 * Workers, as the supervisor keeps them: started, ended and waited for, never waited on.
 *
 * A process without privileges orders workers: the agent, and the server of CNI plugins. The
 * supervisor has privileges and forks. It makes the socket pair of each worker itself and passes
 * one end to the process that ordered it: descriptors, and orders for other processes than its own
 * children, never come from the side without privileges. Nothing here blocks: a process that does
 * not read its events is given up.
 *
 * The socket for orders closes: its workers are killed. The supervisor ends, however: the kernel
 * kills them (PR_SET_PDEATHSIG).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Names in ps(1), at most 15 bytes. */
#define WORKER_NAME     "ow-worker"
#define METER_NAME      "ow-meter"
#define CNI_WORKER_NAME "ow-cni-worker"

/* What a worker is for decides on its name and its rights (privileges.h). */
enum workers_kind {
	WORKERS_HOST,  /* the agent's: observe the host, execute steps */
	WORKERS_METER, /* the agent's: read counters and nothing else, so that neither a device that
			  does not answer nor a step that takes long has the other wait */
	WORKERS_CNI,   /* the CNI server's: one job each (cni/worker/cni_worker.h) */
};

enum {
	/*
	 * That live at the same time: as many as the agent leaves behind (HOSTD_STUCK_MAX), and as
	 * many as it has at work (HOSTD_PARALLEL_MAX).
	 */
	WORKERS_MAX = 16,
	/*
	 * Of CNI: those of runtimes' calls (SERVER_WORKERS_MAX) may each wait for one per network
	 * of their pod, when plugins call others for their addresses.
	 */
	WORKERS_CNI_MAX = 512,
};

/* ---- orders and events: one packet each, without padding ------------------------------------- */

enum workers_order_kind {
	WORKERS_START = 1,
	WORKERS_KILL,  /* pid, if it is a worker that has not ended */
	WORKERS_ALIVE, /* the agent's loop turns: a heartbeat for the watchdog */
	/*
	 * Is the agent ready? The supervisor reports it to probes, for which the agent may write no
	 * file.
	 */
	WORKERS_READY,
	WORKERS_NOT_READY,
};

struct workers_order {
	uint32_t kind;
	int32_t pid;
};

enum workers_event_kind {
	WORKERS_STARTED = 1, /* pid, with the descriptor of its socket */
	WORKERS_NOT_STARTED, /* value: errno; EAGAIN: as many as may live do so already */
	WORKERS_ENDED,       /* pid, value: status as of waitpid(2) */
};

struct workers_event {
	uint32_t kind;
	int32_t pid;
	int32_t value;
};

/* The agent's half; neither waits. -1 with errno set. */
int workers_send(int socket, enum workers_order_kind kind, pid_t pid);
/*
 * The next event: 1. 0: there is none now. -1: the supervisor is gone. *ret_fd: the descriptor that
 * came with it, close-on-exec, the caller's; else -1.
 */
int workers_receive(int socket, struct workers_event *ret, int *ret_fd);

/* ---- the supervisor's half ------------------------------------------------------------------- */

/* What a worker does with its end of the pair. It ends when this returns. */
typedef void worker_fn(int fd, void *arg);

struct workers {
	enum workers_kind kind;
	worker_fn *work;
	void *arg; /* for `work`; each worker has its own copy of all memory */
	/* To the process that orders them; -1: none. To be polled for orders. */
	int fd;
	pid_t ids[WORKERS_CNI_MAX]; /* 0: free */
};

/*
 * Make the socket of the next process that orders, and return its end, close-on-exec; -1 with errno
 * set. The socket and the workers of the one before must have been dropped.
 */
int workers_attach(struct workers *workers);

/*
 * Carry out the next order. Returns its kind; 0 when there is none now; -1 when the other process
 * is gone, sends no order, or does not read: call workers_drop() then, and end it.
 */
int workers_take_order(struct workers *workers);

/*
 * A child has ended. False: it is not a worker. Reported to the process that orders, if there is
 * one.
 */
bool workers_ended(struct workers *workers, pid_t pid, int status);

/* Close the socket and kill all workers; they count until workers_ended(). */
void workers_drop(struct workers *workers);
