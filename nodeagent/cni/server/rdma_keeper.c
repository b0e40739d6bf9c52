// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/server/rdma_keeper.h"

#include <stdio.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "nodeagent/cni/execute/rdma_files.h"
#include "nodeagent/host/watch.h"

enum {
	/* Events come in swarms. */
	SETTLE_MS = 50,
	/* Events may be lost with the socket; and a file that could not be made is tried again. */
	LOOK_MS = 60000,
};

struct rdma_keeper {
	struct host *host;
	struct watch *watch;
	struct poller *poller;
	struct timer *look;
	bool is_stale; /* said already */
};

static void on_look(void *arg)
{
	struct rdma_keeper *keeper = arg;
	struct err err = {0};
	bool is_stale = rdma_files_keep_all(keeper->host, &err) < 0;

	if (is_stale && !keeper->is_stale)
		log_error("device files of RDMA devices cannot be kept right: pods that have such "
			  "a device may not start",
			  F_ERR(&err));
	keeper->is_stale = is_stale;
	timer_start(keeper->look, LOOK_MS);
}

static void on_event(void *arg, const struct watch_event *event)
{
	struct rdma_keeper *keeper = arg;

	timer_start(keeper->look, SETTLE_MS);
}

static void on_uevents(void *arg, int events)
{
	struct rdma_keeper *keeper = arg;
	struct err err = {0};

	if (watch_read(keeper->watch, WATCH_UEVENT, on_event, keeper, &err) == 0)
		return;
	log_warn("the kernel's events cannot be read any more, looking once a minute", F_ERR(&err));
	poller_free(keeper->poller);
	keeper->poller = NULL;
}

struct rdma_keeper *rdma_keeper_new(struct loop *loop, int root)
{
	struct rdma_keeper *keeper = mem_new(struct rdma_keeper);
	struct err err = {0};
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", root);
	keeper->host = host_open(path, &err);
	keeper->watch = keeper->host ? watch_open(&err) : NULL;
	if (!keeper->watch || watch_fd(keeper->watch, WATCH_UEVENT) < 0) {
		log_error("device files of RDMA devices are not kept", F_ERR(&err));
		rdma_keeper_free(keeper);
		return NULL;
	}
	keeper->look = timer_new(loop, on_look, keeper);
	keeper->poller =
		poller_new(loop, watch_fd(keeper->watch, WATCH_UEVENT), on_uevents, keeper);
	poller_want(keeper->poller, POLL_READ);
	timer_start(keeper->look, 0);
	return keeper;
}

void rdma_keeper_free(struct rdma_keeper *keeper)
{
	if (!keeper)
		return;
	poller_free(keeper->poller);
	timer_free(keeper->look);
	watch_close(keeper->watch);
	host_close(keeper->host);
	mem_free(keeper);
}
