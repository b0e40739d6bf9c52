// SPDX-License-Identifier: Apache-2.0
/* The listening socket, the connections, and the end of both. */
#include "lib/grpc/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/grpc/call.h"
#include "lib/grpc/conn.h"

/* Connections taken in one turn of the loop. */
#define ACCEPTS_PER_TURN 16
/* Without a free descriptor, accept again after this time. */
#define ACCEPT_AGAIN_MS 100
/* When all has been said, clients have this long to read it. */
#define GOODBYE_MS 100

struct peer {
	struct grpc_server *server;
	struct peer *prev, *next;
	struct grpc_conn *conn;
};

struct grpc_server {
	struct loop *loop;
	struct grpc_server_config config; /* path and metrics are not kept */
	char *path;
	dev_t dev;
	ino_t ino;
	int listen_fd;
	struct poller *poller;
	struct timer *accept_again;
	struct grpc_dispatch dispatch;
	struct peer *first;
	size_t n_peers;
	bool accept_complained;

	struct deferred *closing; /* NULL while the server lives */
	struct timer *drain;
	int64_t drain_ms;
	bool has_announced;
	bool is_cut_off;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- the socket ------------------------------------------------------------------------------ */

/*
 * "dir/.name.new": hidden from the kubelet's plugin watcher, which passes over names that begin
 * with a dot.
 */
static char *interim_path(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return str_printf("%.*s.%s.new", (int)(name - path), path, name);
}

static int check_free(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, "SocketNotMade", "look at %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, ERR_HOST, "SocketPathTaken",
			       "%s exists and is not a socket; remove it", path);
	return 0;
}

static int bind_quietly(int fd, const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	mode_t before;
	int result;

	memcpy(name.sun_path, path, strlen(path) + 1);
	before = umask(0177);
	result = bind(fd, (const struct sockaddr *)&name, sizeof(name));
	umask(before);
	return result;
}

/*
 * Make the socket under an interim name, then move it to its place: it is complete from the moment
 * it is seen, and one that was there before is replaced without a gap. Returns the descriptor.
 */
static int listen_at(const char *path, unsigned int mode, struct stat *ret_st, struct err *err)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	auto_free char *interim = interim_path(path);

	if (fd < 0)
		return err_sys(err, "SocketNotMade", "make a socket for %s", path);
	if (check_free(path, err) < 0 || check_free(interim, err) < 0)
		return -1;
	(void)unlink(interim);
	if (bind_quietly(fd, interim) < 0)
		return err_sys(err, "SocketNotMade", "bind %s", interim);
	if (chmod(interim, mode) < 0 || listen(fd, SOMAXCONN) < 0 || lstat(interim, ret_st) < 0 ||
	    rename(interim, path) < 0) {
		err_sys(err, "SocketNotMade", "listen at %s", path);
		(void)unlink(interim);
		return -1;
	}
	return take_fd(&fd);
}

bool grpc_server_owns_path(const struct grpc_server *server)
{
	struct stat st;

	assert(server);
	return lstat(server->path, &st) == 0 && st.st_dev == server->dev &&
	       st.st_ino == server->ino;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void finish_if_empty(struct grpc_server *server)
{
	if (server->has_announced && !server->first)
		deferred_run(server->closing);
}

static void peer_free(struct peer *peer)
{
	struct grpc_server *server = peer->server;

	if (peer->prev)
		peer->prev->next = peer->next;
	else
		server->first = peer->next;
	if (peer->next)
		peer->next->prev = peer->prev;
	server->n_peers--;
	grpc_conn_free(peer->conn);
	mem_free(peer);
	if (server->poller)
		poller_want(server->poller, POLL_READ);
	finish_if_empty(server);
}

static void on_opened(void *arg, struct grpc_stream *stream)
{
	struct peer *peer = arg;

	grpc_dispatch_opened(&peer->server->dispatch, stream);
}

static void on_idle(void *arg)
{
	struct peer *peer = arg;

	if (peer->server->has_announced)
		grpc_session_end(grpc_conn_session(peer->conn));
}

static void on_closed(void *arg, const struct err *why)
{
	log_debug("a gRPC connection has ended", F_ERR(why));
	peer_free(arg);
}

static const struct grpc_conn_ops conn_ops = {
	.opened = on_opened,
	.idle = on_idle,
	.closed = on_closed,
};

static void adopt(struct grpc_server *server, int fd)
{
	struct peer *peer = mem_new(struct peer);
	const struct grpc_conn_config config = {
		.is_server = true,
		.message_max = server->config.message_max,
		.ready_ms = GRPC_PREFACE_MS,
		.ops = &conn_ops,
		.arg = peer,
	};

	peer->server = server;
	peer->next = server->first;
	if (server->first)
		server->first->prev = peer;
	server->first = peer;
	server->n_peers++;
	peer->conn = grpc_conn_new(server->loop, fd, &config);
}

static void resume_accepting(void *arg)
{
	struct grpc_server *server = arg;

	poller_want(server->poller, POLL_READ);
}

static void on_listener(void *arg, int events)
{
	struct grpc_server *server = arg;

	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd;

		if (server->n_peers >= server->config.connections_max) {
			poller_want(server->poller, 0); /* until one ends */
			return;
		}
		fd = accept4(server->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			server->accept_complained = false;
			adopt(server, fd);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			return;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
			   errno == ENOMEM) {
			if (!server->accept_complained)
				log_error("cannot accept connections",
					  F_STR("socket", server->path),
					  F_STR("error", strerror(errno)));
			server->accept_complained = true;
			poller_want(server->poller, 0);
			timer_start(server->accept_again, ACCEPT_AGAIN_MS);
			return;
		} /* else it was this one connection */
	}
}

/* ---- beginning ------------------------------------------------------------------------------- */

static struct grpc_server *server_new(struct loop *loop, const struct grpc_server_config *config)
{
	struct grpc_server *server = mem_new(struct grpc_server);

	server->loop = loop;
	server->config = *config;
	if (!server->config.mode)
		server->config.mode = 0600;
	if (!server->config.message_max)
		server->config.message_max = GRPC_MESSAGE_MAX;
	if (!server->config.connections_max)
		server->config.connections_max = GRPC_CONNECTIONS_MAX;
	server->path = str_dup(config->path);
	server->config.path = NULL;
	server->config.metrics = NULL;
	server->dispatch = (struct grpc_dispatch){
		.loop = loop,
		.methods = config->methods,
		.n_methods = config->n_methods,
		.arg = config->arg,
		.message_max = server->config.message_max,
		.counter = metric_counter(config->metrics, "grpc_server_calls_total",
					  "gRPC calls answered.", "method,code"),
	};
	return server;
}

static void server_free(struct grpc_server *server)
{
	mem_free(server->path);
	mem_free(server);
}

struct grpc_server *grpc_server_new(struct loop *loop, const struct grpc_server_config *config,
				    struct err *err)
{
	struct grpc_server *server;
	struct stat st;
	size_t len = strlen(config->path);

	assert(loop && config && config->path);
	if (len == 0 || len > GRPC_SERVER_PATH_MAX || str_ends(config->path, "/")) {
		err_set(err, ERR_INVALID, "BadSocketPath",
			"socket path \"%s\": it needs a name and at most %d bytes", config->path,
			GRPC_SERVER_PATH_MAX);
		return NULL;
	}
	server = server_new(loop, config);
	server->listen_fd = listen_at(server->path, server->config.mode, &st, err);
	if (server->listen_fd < 0) {
		server_free(server);
		return NULL;
	}
	server->dev = st.st_dev;
	server->ino = st.st_ino;
	server->accept_again = timer_new(loop, resume_accepting, server);
	server->poller = poller_new(loop, server->listen_fd, on_listener, server);
	poller_want(server->poller, POLL_READ);
	return server;
}

int grpc_server_listen_again(struct grpc_server *server, struct err *err)
{
	struct stat st;
	int fd = listen_at(server->path, server->config.mode, &st, err);

	assert(server);
	if (fd < 0)
		return -1;
	poller_free(server->poller);
	close(server->listen_fd);
	server->listen_fd = fd;
	server->dev = st.st_dev;
	server->ino = st.st_ino;
	server->poller = poller_new(server->loop, fd, on_listener, server);
	poller_want(server->poller, POLL_READ);
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void finish_closing(struct grpc_server *server)
{
	void (*done)(void *arg) = server->done;
	void *arg = server->done_arg;

	grpc_dispatch_done(&server->dispatch);
	timer_free(server->drain);
	deferred_free(server->closing);
	server_free(server);
	if (done)
		done(arg);
}

/*
 * Two steps of GOAWAY, as Go's servers do: first the news, then, when no call is left, the last
 * stream.
 */
static void announce(struct grpc_server *server)
{
	server->has_announced = true;
	for (struct peer *peer = server->first; peer; peer = peer->next)
		grpc_session_announce_end(grpc_conn_session(peer->conn));
	grpc_dispatch_close(&server->dispatch);
	for (struct peer *peer = server->first; peer; peer = peer->next)
		if (grpc_session_n_streams(grpc_conn_session(peer->conn)) == 0)
			grpc_session_end(grpc_conn_session(peer->conn));
	timer_start(server->drain, server->drain_ms);
	finish_if_empty(server);
}

static void close_step(void *arg)
{
	struct grpc_server *server = arg;

	if (!server->has_announced)
		announce(server);
	else if (!server->first)
		finish_closing(server);
}

/* First the time to answer is over, then the time to read. */
static void on_drain(void *arg)
{
	struct grpc_server *server = arg;

	if (server->is_cut_off) {
		while (server->first)
			peer_free(server->first);
		return;
	}
	server->is_cut_off = true;
	grpc_dispatch_cut_off(&server->dispatch);
	timer_start(server->drain, GOODBYE_MS);
}

void grpc_server_close(struct grpc_server *server, int64_t drain_ms, void (*done)(void *arg),
		       void *arg)
{
	assert(drain_ms >= 0);
	if (!server || server->closing)
		return;
	poller_free(take_ptr(server->poller));
	timer_free(take_ptr(server->accept_again));
	if (grpc_server_owns_path(server))
		(void)unlink(server->path);
	close(server->listen_fd);
	server->listen_fd = -1;
	server->done = done;
	server->done_arg = arg;
	server->drain_ms = drain_ms;
	server->drain = timer_new(server->loop, on_drain, server);
	/* Not now: this may be a handler. */
	server->closing = deferred_new(server->loop, close_step, server);
	deferred_run(server->closing);
}
