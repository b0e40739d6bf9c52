// SPDX-License-Identifier: Apache-2.0
/*
 * The process around kubeletd_server.c: the supervisor's socket, which brings agents and says when
 * to end, and the heartbeat. Started by main.c once it has given up its rights.
 */
#include "nodeagent/kubelet/kubeletd_process.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/packet.h"
#include "nodeagent/kubelet/kubeletd_server.h"
#include "nodeagent/process/supervisor.h"

struct process {
	struct loop *loop;
	int control;
	struct poller *poller;
	struct timer *tidying, *heartbeat;
	int64_t heartbeat_ms;
	struct kubeletd_server *server;
	int status;
	bool is_closing;
};

/* This long after an agent has come it has what it needs, and is mostly idle. */
enum { TIDY_MS = 2000 };

static void on_tidying(void *arg)
{
	mem_trim();
}

/* A supervisor that does not receive it has ended, or is about to see our end. */
static void on_offering(void *arg)
{
	const struct process *process = arg;

	(void)packet_send(process->control, KUBELETD_OFFERING, 1, -1, MSG_DONTWAIT);
}

static void on_heartbeat(void *arg)
{
	const struct process *process = arg;

	(void)packet_send(process->control, KUBELETD_ALIVE, 1, -1, MSG_DONTWAIT);
	timer_start(process->heartbeat, process->heartbeat_ms);
}

static void on_closed(void *arg)
{
	const struct process *process = arg;

	loop_stop(process->loop);
}

static void close_all(struct process *process)
{
	if (process->is_closing)
		return;
	process->is_closing = true;
	poller_want(process->poller, 0);
	kubeletd_server_close(process->server, on_closed, process);
}

static void on_removed(void *arg)
{
	struct process *process = arg;

	log_error("a folder of ours was removed, ending to find the new one");
	process->status = 1;
	close_all(process);
}

static void on_control(void *arg, int events)
{
	struct process *process = arg;
	char byte;
	int fd;
	ssize_t n = packet_receive(process->control, &byte, 1, &fd);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0 && fd >= 0) {
		kubeletd_server_attach(process->server, fd);
		timer_start(process->tidying, TIDY_MS);
		return;
	}
	/* Its agent sees the channel closed, and another one comes. */
	if (n > 0) {
		log_error("an agent's channel did not arrive; too many open descriptors?");
		return;
	}
	close_all(process);
}

int kubeletd_run(const struct kubeletd_process_config *config)
{
	struct process process = {.control = config->control, .heartbeat_ms = config->heartbeat_ms};

	process.loop = loop_new();
	process.tidying = timer_new(process.loop, on_tidying, NULL);
	process.heartbeat = timer_new(process.loop, on_heartbeat, &process);
	on_heartbeat(&process);
	process.server = kubeletd_server_new(&(struct kubeletd_server_config){
		.loop = process.loop,
		.plugins_dir = config->plugins_dir,
		.devinfo_dir = config->devinfo_dir,
		.device_paths = config->device_paths,
		.dra = config->dra,
		.giving = config->giving,
		.offering = on_offering,
		.removed = on_removed,
		.arg = &process,
	});
	process.poller = poller_new(process.loop, config->control, on_control, &process);
	poller_want(process.poller, POLL_READ);
	loop_run(process.loop);
	poller_free(process.poller);
	timer_free(process.tidying);
	timer_free(process.heartbeat);
	loop_free(process.loop);
	return process.status;
}
