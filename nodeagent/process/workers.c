// SPDX-License-Identifier: Apache-2.0
/*
 * The supervisor's half reads an order, forks, and reports; the other half sends orders and reads
 * events. What a worker of each kind is called and may do stands in the table. Between the
 * supervisor's loop and the processes that order (orders.c).
 */
#include "nodeagent/process/workers.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/log.h"
#include "lib/base/packet.h"
#include "nodeagent/process/privileges.h"

/*
 * Added to a worker's oom_score_adj: in a container that runs into its memory limit (what counts
 * there is a share of that limit) the worker goes first, which is replaced, then the others. Among
 * all processes of a node it hardly moves.
 */
#define OOM_MORE 100

/* ---- packets --------------------------------------------------------------------------------- */

int workers_send(int socket, enum workers_order_kind kind, pid_t pid)
{
	struct workers_order order = {.kind = kind, .pid = pid};

	return packet_send(socket, &order, sizeof(order), -1, MSG_DONTWAIT);
}

int workers_receive(int socket, struct workers_event *ret, int *ret_fd)
{
	ssize_t n = packet_receive(socket, ret, sizeof(*ret), ret_fd);

	if (n < 0 && errno == EAGAIN)
		return 0;
	return n == (ssize_t)sizeof(*ret) ? 1 : -1;
}

/* -1: the agent is gone, or has left a socket buffer full of events unread. */
static int report(const struct workers *workers, enum workers_event_kind kind, pid_t pid, int value,
		  int fd)
{
	struct workers_event event = {.kind = kind, .pid = pid, .value = value};

	return packet_send(workers->fd, &event, sizeof(event), fd, MSG_DONTWAIT);
}

/* ---- a worker -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	size_t max;
	int (*limit)(struct err *err);
} kinds[] = {
	[WORKERS_HOST] = {WORKER_NAME, WORKERS_MAX, privileges_limit_hostd},
	[WORKERS_METER] = {METER_NAME, WORKERS_MAX, privileges_limit_meter},
	[WORKERS_CNI] = {CNI_WORKER_NAME, WORKERS_CNI_MAX, privileges_limit_cni_worker},
};

static _Noreturn void be_worker(const struct workers *workers, int fd)
{
	struct err err = {0};

	if (kinds[workers->kind].limit(&err) < 0) {
		log_error("a worker cannot limit its rights", F_ERR(&err));
		_exit(1);
	}
	workers->work(fd, workers->arg);
	_exit(0);
}

/* 0 or errno. *ret_fd: the agent's end. */
static int fork_worker(const struct workers *workers, pid_t *ret_pid, int *ret_fd)
{
	int pair[2], failed;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errno;
	/* Ctrl-C at a terminal is for the supervisor, which has the agent finish a step. */
	pid = child_fork(&(struct child_config){
		.name = kinds[workers->kind].name,
		.dies_by = SIGKILL,
		.oom_more = OOM_MORE,
		.leads_session = true,
		.resets_handlers = true,
		.keep = &pair[1],
		.n_keep = 1,
	});
	failed = pid < 0 ? errno : 0;
	if (pid == 0)
		be_worker(workers, pair[1]);
	(void)close(pair[1]);
	if (failed) {
		(void)close(pair[0]);
		return failed;
	}
	*ret_pid = pid;
	*ret_fd = pair[0];
	return 0;
}

static pid_t *find(struct workers *workers, pid_t pid)
{
	for (size_t i = 0; i < kinds[workers->kind].max; i++)
		if (workers->ids[i] == pid)
			return &workers->ids[i];
	return NULL;
}

/* -1: the agent is gone. */
static int start(struct workers *workers)
{
	pid_t *place = find(workers, 0), pid = 0;
	int fd = -1, failed = place ? fork_worker(workers, &pid, &fd) : EAGAIN;

	if (failed)
		return report(workers, WORKERS_NOT_STARTED, 0, failed, -1);
	*place = pid;
	/* If it cannot be passed on, closing it here is what ends the worker. */
	failed = report(workers, WORKERS_STARTED, pid, 0, fd) < 0 ? errno : 0;
	(void)close(fd);
	return failed ? report(workers, WORKERS_NOT_STARTED, 0, failed, -1) : 0;
}

/* ---- the interface --------------------------------------------------------------------------- */

int workers_attach(struct workers *workers)
{
	int pair[2];

	assert(workers->fd < 0);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	workers->fd = pair[0];
	return pair[1];
}

int workers_take_order(struct workers *workers)
{
	struct workers_order order;
	ssize_t n = recv(workers->fd, &order, sizeof(order), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n != (ssize_t)sizeof(order))
		return -1;
	switch (order.kind) {
	case WORKERS_START:
		return start(workers) < 0 ? -1 : WORKERS_START;
	case WORKERS_KILL:
		/* A child that was not waited for keeps its number: this cannot hit anyone else. */
		if (order.pid > 0 && find(workers, order.pid))
			(void)kill(order.pid, SIGKILL);
		return WORKERS_KILL;
	case WORKERS_ALIVE:
	case WORKERS_READY:
	case WORKERS_NOT_READY:
		return (int)order.kind;
	default:
		return -1;
	}
}

bool workers_ended(struct workers *workers, pid_t pid, int status)
{
	pid_t *place = pid > 0 ? find(workers, pid) : NULL;

	if (!place)
		return false;
	*place = 0;
	/* An agent that is gone, or does not read, is found out by its socket. */
	if (workers->fd >= 0 && report(workers, WORKERS_ENDED, pid, status, -1) < 0)
		workers_drop(workers);
	return true;
}

void workers_drop(struct workers *workers)
{
	if (workers->fd < 0)
		return;
	(void)close(workers->fd);
	workers->fd = -1;
	for (size_t i = 0; i < kinds[workers->kind].max; i++)
		if (workers->ids[i])
			(void)kill(workers->ids[i], SIGKILL);
}
