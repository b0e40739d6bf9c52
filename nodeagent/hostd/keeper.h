/*
 * The keeper: a small process that starts workers, ends them when told to, and tells when they have ended.
 *
 * It is forked while the agent still has its privileges and gives up those that steps do not need (privileges.h); its
 * workers inherit the rest. It opens nothing, decides nothing, and never waits for a worker, so it cannot hang. It makes
 * the socket pair of each worker itself and passes one end to the agent: descriptors and orders for other processes
 * than its own children never come from the side that has no privileges.
 *
 * The agent's socket closes: the keeper exits. The keeper ends, however: the kernel kills its workers (PR_SET_PDEATHSIG).
 */
#ifndef ORBWEAVER_NODEAGENT_HOSTD_KEEPER_H
#define ORBWEAVER_NODEAGENT_HOSTD_KEEPER_H

#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"

/* Names in ps(1), at most 15 bytes. */
#define KEEPER_NAME "orbweaver-hostd"
#define WORKER_NAME "orbweaver-step"

/* What a worker does with its end of the pair. It ends when this returns. */
typedef void keeper_work_fn(int fd, void *arg);

/*
 * Fork the keeper. Returns the descriptor of its socket, close-on-exec, once the keeper is ready; -1 with err ERR_HOST
 * "HostdNotStarted". `arg` is for the workers, which have their own copy of all memory.
 */
int keeper_fork(keeper_work_fn *work, void *arg, struct err *err);

/* Both directions: one packet each, without padding. */
enum keeper_order_kind {
	KEEPER_START = 1,
	KEEPER_KILL, /* pid, if it is a child that has not ended */
};

struct keeper_order {
	uint32_t kind;
	int32_t pid;
};

enum keeper_event_kind {
	KEEPER_READY = 1,   /* value: 0, or errno of what failed; the first event */
	KEEPER_STARTED,     /* pid, with the descriptor of its socket */
	KEEPER_NOT_STARTED, /* value: errno */
	KEEPER_ENDED, /* pid, value: status as of waitpid(2); also of what workers left behind */
};

struct keeper_event {
	uint32_t kind;
	int32_t pid;
	int32_t value;
};

/* The agent's half; neither waits. -1 with errno set. */
int keeper_send(int keeper, enum keeper_order_kind kind, pid_t pid);
/*
 * The next event: 1. 0: there is none now. -1: the keeper is gone. *ret_fd: the descriptor that came with it,
 * close-on-exec, the caller's; else -1.
 */
int keeper_receive(int keeper, struct keeper_event *ret, int *ret_fd);

#endif
