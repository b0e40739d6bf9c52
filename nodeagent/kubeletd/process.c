/*
 * See the header.
 */
#include "nodeagent/plugind/process.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/packet.h"
#include "nodeagent/plugind/server.h"

struct process {
	struct loop *loop;
	int control;
	struct poller *poller;
	struct timer *tidying;
	struct plugind_server *server;
};

/* So long after an agent has come it has what it needs, and mostly rests. */
enum { TIDY_MS = 2000 };

static void on_tidying(void *arg)
{
	mem_trim();
	mem_drop_code();
}

static void on_offering(void *arg)
{
	const struct process *process = arg;

	/* A supervisor that does not hear it has ended, or is about to see our end. */
	(void)packet_send(process->control, "o", 1, -1, MSG_DONTWAIT);
}

static void on_closed(void *arg)
{
	const struct process *process = arg;

	loop_stop(process->loop);
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
		plugind_server_attach(process->server, fd);
		timer_start(process->tidying, TIDY_MS);
		return;
	}
	/* Its agent sees the channel closed, and another one comes. */
	if (n > 0) {
		log_error("an agent's channel did not arrive; too many open descriptors?");
		return;
	}
	poller_want(process->poller, 0);
	plugind_server_close(process->server, on_closed, process);
}

int plugind_run(int control, const char *plugins_dir, const char *devinfo_dir)
{
	struct process process = {.control = control};

	process.loop = loop_new();
	process.tidying = timer_new(process.loop, on_tidying, NULL);
	process.server = plugind_server_new(&(struct plugind_server_config){
		.loop = process.loop,
		.plugins_dir = plugins_dir,
		.devinfo_dir = devinfo_dir,
		.offering = on_offering,
		.arg = &process,
	});
	process.poller = poller_new(process.loop, control, on_control, &process);
	poller_want(process.poller, POLL_READ);
	loop_run(process.loop);
	poller_free(process.poller);
	timer_free(process.tidying);
	loop_free(process.loop);
	return 0;
}
