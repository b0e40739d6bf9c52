// SPDX-License-Identifier: Apache-2.0
/*
 * The process around cni_server.c and node_keeper.c: socket, lock, heartbeat, the agent's line.
 * Started by main.c, which has it give up its rights between cnid_open() and cnid_run().
 */
#include "nodeagent/cni/server/cnid.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "nodeagent/cni/plugin/wire.h"
#include "nodeagent/cni/server/cni_server.h"
#include "nodeagent/cni/server/node_keeper.h"
#include "nodeagent/host/watch.h"
#include "nodeagent/process/orders.h"
#include "nodeagent/process/supervisor.h"

enum {
	/* At an update the one before us is at work for a moment longer. */
	LOCK_LOOK_MS = 200,
	TIDY_MS = 2000,
	BACKLOG = 256,
};

struct process {
	const struct cnid_config *config;
	struct loop *loop;
	struct orders *orders;
	struct poller *poller;
	struct timer *heartbeat, *lock_look, *tidying;
	int agent; /* a line that came before there was a server; -1 */
	struct cni_server *server;
	struct node_keeper *keeper; /* NULL: not before the server is there */
	bool is_waiting;            /* said already */
	int status;
};

/* ---- before rights are given up -------------------------------------------------------------- */

int cnid_open(const char *host_root, const char *socket, struct cnid_host *ret, struct err *err)
{
	auto_free char *folder = str_dup(socket);
	const char *dir = dirname(folder);
	auto_close int root = open(host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int state = -1;
	struct err why = {0};

	*ret = (struct cnid_host){.lock = -1};
	if (root < 0)
		return err_sys(err, "StateUnusable", "open %s", host_root);
	if (root_make_dirs(root, WIRE_STATE, 0700) < 0)
		return err_sys(err, "StateUnusable", "make %s", WIRE_STATE);
	/* Without it the plugin would run any program (wire.h). */
	if (root_make_dirs(root, WIRE_STATE "/" WIRE_PROGRAMS, 0700) < 0)
		return err_sys(err, "StateUnusable", "make %s/%s", WIRE_STATE, WIRE_PROGRAMS);
	state = root_open(root, WIRE_STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (state >= 0)
		ret->lock = openat(state, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ret->lock < 0)
		return err_sys(err, "StateUnusable", "open the lock in %s", WIRE_STATE);
	if (root_make_dirs(root, dir, 0755) == 0)
		ret->socket_dir = root_real_path(root, dir);
	if (!ret->socket_dir)
		return err_sys(err, "StateUnusable", "open the folder of %s", socket);
	ret->watch = watch_open(&why);
	if (!ret->watch || watch_fd(ret->watch, WATCH_UEVENT) < 0)
		log_error("the kernel's events cannot be read: device files of RDMA devices are "
			  "looked at once a minute",
			  F_ERR(&why));
	return 0;
}

void cnid_close(struct cnid_host *host)
{
	own_close_p(&host->lock);
	watch_close(take_ptr(host->watch));
	mem_free(take_ptr(host->socket_dir));
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* By the folder's descriptor where there is /proc, since sun_path is short. -1 with err. */
static int listen_there(const char *dir, const char *file, struct err *err)
{
	auto_free char *path = str_below(dir, file);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(path) >= sizeof(name.sun_path)) {
		free(path);
		path = str_printf("/proc/self/fd/%d/%s", dir_fd, file);
	}
	if (fd < 0 || dir_fd < 0 ||
	    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path) >=
		    (int)sizeof(name.sun_path))
		return err_sys(err, "StateUnusable", "open the folder of %s", path);
	(void)unlinkat(dir_fd, file, 0);
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    fchmodat(dir_fd, file, 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(err, "StateUnusable", "listen on %s", path);
	return take_fd(&fd);
}

/* ---- the server ------------------------------------------------------------------------------ */

static void on_profile(void *arg, enum profile profile)
{
	const struct process *p = arg;

	node_keeper_set(p->keeper, profile);
}

static json_t *on_usage(void *arg)
{
	const struct process *p = arg;

	return cni_server_usage(p->server);
}

static void on_networks(void *arg, const json_t *networks)
{
	const struct process *p = arg;

	cni_server_set_networks(p->server, networks);
}

static int serve(struct process *p, struct err *err)
{
	int listener = listen_there(p->config->socket_dir, p->config->socket, err);

	if (listener < 0)
		return -1;
	p->server = cni_server_new(&(struct cni_server_config){
		.loop = p->loop,
		.listener = listener,
		.orders = p->orders,
		.caller = p->config->caller,
		.add_ms = p->config->add_ms,
		.again_ms = p->config->again_ms,
		.notes_ms = p->config->notes_ms,
		.profile = on_profile,
		.arg = p,
	});
	/* What it installs can be called from then on: the server listens. */
	p->keeper = node_keeper_new(&(struct node_keeper_config){
		.loop = p->loop,
		.orders = p->orders,
		.watch = p->config->host->watch,
		.usage = on_usage,
		.said = on_networks,
		.arg = p,
	});
	if (p->agent >= 0)
		cni_server_attach(p->server, take_fd(&p->agent));
	return 0;
}

/* Two servers on one state would each believe it theirs. */
static void on_lock_look(void *arg)
{
	struct process *p = arg;
	struct err err = {0};

	if (flock(p->config->host->lock, LOCK_EX | LOCK_NB) < 0) {
		if (!p->is_waiting)
			log_info("another agent of this node serves CNI plugins, waiting until it "
				 "ends");
		p->is_waiting = true;
		timer_start(p->lock_look, LOCK_LOOK_MS);
		return;
	}
	if (serve(p, &err) == 0)
		return;
	log_error("CNI plugins are not served", F_ERR(&err));
	p->status = 1;
	loop_stop(p->loop);
}

/* ---- the supervisor -------------------------------------------------------------------------- */

static void on_tidying(void *arg)
{
	mem_trim();
}

static void on_heartbeat(void *arg)
{
	struct process *p = arg;

	(void)packet_send(p->config->control, CNID_ALIVE, 1, -1, MSG_DONTWAIT);
	timer_start(p->heartbeat, p->config->heartbeat_ms);
}

static void on_control(void *arg, int events)
{
	struct process *p = arg;
	char byte;
	int fd;
	ssize_t n = packet_receive(p->config->control, &byte, 1, &fd);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		loop_stop(p->loop);
		return;
	}
	if (fd < 0)
		return;
	timer_start(p->tidying, TIDY_MS);
	if (p->server) {
		cni_server_attach(p->server, fd);
		return;
	}
	own_close_p(&p->agent);
	p->agent = fd;
}

static void on_supervisor_lost(void *arg)
{
	const struct process *p = arg;

	loop_stop(p->loop);
}

int cnid_run(const struct cnid_config *config)
{
	struct process p = {.config = config, .agent = -1};

	p.loop = loop_new();
	p.orders = orders_new(p.loop, config->orders, on_supervisor_lost, &p);
	orders_keep_spare(p.orders);
	p.heartbeat = timer_new(p.loop, on_heartbeat, &p);
	p.lock_look = timer_new(p.loop, on_lock_look, &p);
	p.tidying = timer_new(p.loop, on_tidying, &p);
	p.poller = poller_new(p.loop, config->control, on_control, &p);
	poller_want(p.poller, POLL_READ);
	on_heartbeat(&p);
	timer_start(p.lock_look, 0);
	loop_run(p.loop);
	node_keeper_free(p.keeper);
	cni_server_free(p.server);
	orders_free(p.orders);
	poller_free(p.poller);
	timer_free(p.heartbeat);
	timer_free(p.lock_look);
	timer_free(p.tidying);
	loop_free(p.loop);
	own_close_p(&p.agent);
	return p.status;
}
