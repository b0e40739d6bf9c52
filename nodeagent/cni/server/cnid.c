// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
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
#include "nodeagent/cni/server/profile_keeper.h"
#include "nodeagent/cni/server/rdma_keeper.h"
#include "nodeagent/cni/state/result_cache.h"

enum {
	/* At an update the one before us is at work for a moment longer. */
	LOCK_LOOK_MS = 200,
	TIDY_MS = 2000,
	BACKLOG = 256,
};

struct process {
	const struct cnid_config *config;
	struct loop *loop;
	struct poller *poller;
	struct timer *heartbeat, *lock_look, *tidying;
	int root, state, lock;
	int agent; /* a line that came before there was a server; -1 */
	struct cni_server *server;
	struct rdma_keeper *rdma;      /* NULL: not yet */
	struct profile_keeper *keeper; /* NULL: not before the server is there */
	bool is_waiting;               /* said already */
	int status;
};

/* ---- the socket ------------------------------------------------------------------------------ */

/*
 * By the folder's descriptor: links on the way are the host's, and sun_path is short. -1 with err.
 */
static int listen_there(int root, const char *path, struct err *err)
{
	auto_free char *folder = str_dup(path), *file = str_dup(path);
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	const char *dir = dirname(folder), *base = basename(file);
	auto_close int dir_fd = -1;
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (root_make_dirs(root, dir, 0755) == 0)
		dir_fd = root_open(root, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0 || dir_fd < 0 ||
	    snprintf(name.sun_path, sizeof(name.sun_path), "/proc/self/fd/%d/%s", dir_fd, base) >=
		    (int)sizeof(name.sun_path))
		return err_sys(err, "StateUnusable", "open the folder of %s", path);
	(void)unlinkat(dir_fd, base, 0);
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) < 0 ||
	    fchmodat(dir_fd, base, 0600, 0) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(err, "StateUnusable", "listen on %s", path);
	return take_fd(&fd);
}

/* ---- the server ------------------------------------------------------------------------------ */

static int open_state(struct process *p, struct err *err)
{
	if (root_make_dirs(p->root, WIRE_STATE, 0700) < 0)
		return err_sys(err, "StateUnusable", "make %s", WIRE_STATE);
	p->state = root_open(p->root, WIRE_STATE, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (p->state < 0)
		return err_sys(err, "StateUnusable", "open %s", WIRE_STATE);
	p->lock = openat(p->state, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return p->lock < 0 ? err_sys(err, "StateUnusable", "open the lock in %s", WIRE_STATE) : 0;
}

static void on_profile(void *arg, enum profile profile)
{
	const struct process *p = arg;

	profile_keeper_set(p->keeper, profile);
}

static struct profile_usage on_usage(void *arg)
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
	auto_close int listener = listen_there(p->root, p->config->socket, err);

	if (listener < 0)
		return -1;
	p->server = cni_server_new(
		&(struct cni_server_config){
			.loop = p->loop,
			.listener = listener,
			.state = p->state,
			.root = p->root,
			.add_ms = p->config->add_ms,
			.again_ms = p->config->again_ms,
			.notes_ms = p->config->notes_ms,
			.plugin_types = p->config->plugin_types,
			.kubelet_dir = p->config->kubelet_dir,
			.profile = on_profile,
			.arg = p,
		},
		err);
	if (!p->server)
		return -1;
	(void)take_fd(&listener);
	/* What it installs can be called from then on: the server listens. */
	p->keeper = profile_keeper_new(&(struct profile_keeper_config){
		.loop = p->loop,
		.root = p->root,
		.bin_dir = p->config->bin_dir,
		.program = p->config->program,
		.conf_dir = p->config->conf_dir,
		.isolates = p->config->isolates,
		.shared = p->config->shared_spaces,
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

	if (flock(p->lock, LOCK_EX | LOCK_NB) < 0) {
		if (!p->is_waiting)
			log_info("another agent of this node serves CNI plugins, waiting until it "
				 "ends");
		p->is_waiting = true;
		timer_start(p->lock_look, LOCK_LOOK_MS);
		return;
	}
	p->rdma = rdma_keeper_new(p->loop, p->root);
	(void)result_cache_remove_empty(p->root);
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

int cnid_run(const struct cnid_config *config)
{
	struct process p = {.config = config, .state = -1, .lock = -1, .agent = -1};
	struct err err = {0};

	p.root = open(config->host_root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (p.root < 0 || open_state(&p, &err) < 0) {
		if (p.root < 0)
			(void)err_sys(&err, "StateUnusable", "open %s", config->host_root);
		log_error("CNI plugins are not served", F_ERR(&err));
		return 1;
	}
	p.loop = loop_new();
	p.heartbeat = timer_new(p.loop, on_heartbeat, &p);
	p.lock_look = timer_new(p.loop, on_lock_look, &p);
	p.tidying = timer_new(p.loop, on_tidying, &p);
	p.poller = poller_new(p.loop, config->control, on_control, &p);
	poller_want(p.poller, POLL_READ);
	on_heartbeat(&p);
	timer_start(p.lock_look, 0);
	loop_run(p.loop);
	profile_keeper_free(p.keeper);
	rdma_keeper_free(p.rdma);
	cni_server_free(p.server);
	poller_free(p.poller);
	timer_free(p.heartbeat);
	timer_free(p.lock_look);
	timer_free(p.tidying);
	loop_free(p.loop);
	own_close_p(&p.agent);
	own_close_p(&p.lock);
	own_close_p(&p.state);
	own_close_p(&p.root);
	return p.status;
}
