// SPDX-License-Identifier: Apache-2.0
/*
 * Bytes between a socket and a session.
 *
 * Nothing is asked of the session while the socket has not taken what came before: so the peer's
 * windows and the socket's buffer together decide how much of what is queued has left.
 */
#include "lib/grpc/conn.h"

#include <assert.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

#define READ_SIZE 16384
/* Reads in one turn of the loop; others want their turn too. */
#define READS_PER_TURN 16
/* Frames are gathered to this size before they are written. */
#define WRITE_SIZE 16384
/* So many of them in one turn. */
#define WRITES_PER_TURN 64

struct grpc_conn {
	struct grpc_conn_config config;
	int fd;
	struct grpc_session *session;
	struct poller *poller;
	struct deferred *flusher;
	struct timer *ready_timer;
	struct strbuf out;
	size_t out_sent;
	bool is_ready;
	bool is_closed;
	bool is_freed;
	int depth; /* of callbacks that still need this object */
	struct err err;
};

struct grpc_session *grpc_conn_session(struct grpc_conn *conn)
{
	assert(conn);
	return conn->session;
}

const struct err *grpc_conn_error(const struct grpc_conn *conn)
{
	assert(conn);
	return conn->is_closed ? &conn->err : NULL;
}

static void release_conn(struct grpc_conn *conn)
{
	grpc_session_free(conn->session);
	strbuf_done(&conn->out);
	mem_free(conn);
}

static void enter(struct grpc_conn *conn)
{
	conn->depth++;
}

static void leave(struct grpc_conn *conn)
{
	if (--conn->depth == 0 && conn->is_freed)
		release_conn(conn);
}

static void close_socket(struct grpc_conn *conn)
{
	poller_free(conn->poller);
	deferred_free(conn->flusher);
	timer_free(conn->ready_timer);
	conn->poller = NULL;
	conn->flusher = NULL;
	conn->ready_timer = NULL;
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
	conn->is_closed = true;
}

/*
 * Never from within a callback of the session: streams learn it here, and those further up must
 * find theirs again.
 */
static void fail_conn(struct grpc_conn *conn, const struct err *why)
{
	if (conn->is_closed)
		return;
	conn->err = *why;
	close_socket(conn);
	enter(conn);
	grpc_session_abandon(conn->session, NGHTTP2_CANCEL);
	if (!conn->is_freed)
		conn->config.ops->closed(conn->config.arg, &conn->err);
	leave(conn);
}

void grpc_conn_free(struct grpc_conn *conn)
{
	if (!conn)
		return;
	if (!conn->is_closed)
		close_socket(conn);
	grpc_session_mute(conn->session);
	conn->is_freed = true;
	if (conn->depth == 0)
		release_conn(conn);
}

/* A peer that has gone shows in several ways, depending on what it left unread. */
static int lost(struct err *err, const char *doing)
{
	if (errno == ECONNRESET || errno == EPIPE)
		return err_set(err, ERR_TRANSIENT, "ConnectionClosed",
			       "the peer has closed the connection");
	return err_sys(err, "ConnectionLost", "%s", doing);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Returns 1 when all of `out` is written, 0 when the socket is full. */
static int write_out(struct grpc_conn *conn, struct err *err)
{
	while (conn->out_sent < conn->out.len) {
		ssize_t n = send(conn->fd, conn->out.data + conn->out_sent,
				 conn->out.len - conn->out_sent, MSG_NOSIGNAL);

		if (n >= 0) {
			conn->out_sent += (size_t)n;
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return 0;
		if (errno != EINTR)
			return lost(err, "writing to the peer");
	}
	return 1;
}

static int write_all(struct grpc_conn *conn, struct err *err)
{
	for (int i = 0; !conn->is_closed; i++) {
		int result = write_out(conn, err);

		if (result < 0)
			return -1;
		if (result == 0) {
			poller_want(conn->poller, POLL_READ | POLL_WRITE);
			return 0;
		}
		if (i == WRITES_PER_TURN) {
			deferred_run(conn->flusher);
			return 0;
		}
		/* Fill `out` from the session. */
		strbuf_reset(&conn->out);
		conn->out_sent = 0;
		while (conn->out.len < WRITE_SIZE && !conn->is_closed) {
			const uint8_t *data = NULL;
			ssize_t len = grpc_session_send(conn->session, &data, err);

			if (len < 0)
				return -1;
			if (len == 0)
				break;
			strbuf_add(&conn->out, data, (size_t)len);
		}
		if (conn->out.len == 0)
			break;
	}
	if (conn->is_closed)
		return 0;
	poller_want(conn->poller, POLL_READ);
	/* Connections are idle for most of their time. */
	strbuf_done(&conn->out);
	if (grpc_session_is_over(conn->session))
		return err_set(err, ERR_TRANSIENT, "ConnectionClosed",
			       "the connection has been closed");
	return 0;
}

static void on_wants_send(void *arg)
{
	struct grpc_conn *conn = arg;

	/* What a callback of ours queues is written when it returns; see on_event. */
	if (!conn->is_closed && conn->depth == 0)
		deferred_run(conn->flusher);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_some(struct grpc_conn *conn, struct err *err)
{
	uint8_t buf[READ_SIZE];

	for (int i = 0; i < READS_PER_TURN && !conn->is_closed; i++) {
		ssize_t n = recv(conn->fd, buf, sizeof(buf), 0);

		if (n == 0)
			return err_set(err, ERR_TRANSIENT, "ConnectionClosed",
				       "the peer has closed the connection");
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return 0;
		if (n < 0 && errno != EINTR)
			return lost(err, "reading from the peer");
		if (n < 0)
			continue;
		if (grpc_session_receive(conn->session, buf, (size_t)n, err) < 0)
			return -1;
		if ((size_t)n < sizeof(buf))
			return 0;
	}
	return 0;
}

static void flush_session(void *arg)
{
	struct grpc_conn *conn = arg;
	struct err err = {0}, ignored;

	enter(conn);
	if (write_all(conn, &err) < 0) {
		/* A peer that has gone may have left its last words. */
		(void)read_some(conn, &ignored);
		fail_conn(conn, &err);
	}
	leave(conn);
}

static void on_event(void *arg, int events)
{
	struct grpc_conn *conn = arg;
	struct err err = {0};

	enter(conn);
	if (events & (POLL_READ | POLL_ERROR) && read_some(conn, &err) < 0)
		fail_conn(conn, &err);
	if (!conn->is_closed && write_all(conn, &err) < 0)
		fail_conn(conn, &err);
	leave(conn);
}

/* ---- does the peer speak HTTP/2? ------------------------------------------------------------- */

static void on_ready_timeout(void *arg)
{
	struct grpc_conn *conn = arg;
	struct err err = {0};

	enter(conn);
	/* It may be us who slept: timers come before sockets in a turn of the loop. */
	if (read_some(conn, &err) < 0 || (!conn->is_closed && !conn->is_ready &&
					  err_set(&err, ERR_TRANSIENT, "NoHttp2",
						  "the peer sent no HTTP/2 SETTINGS within %lld ms",
						  (long long)conn->config.ready_ms) < 0))
		fail_conn(conn, &err);
	if (!conn->is_closed)
		deferred_run(conn->flusher);
	leave(conn);
}

static void on_ready(void *arg)
{
	struct grpc_conn *conn = arg;

	if (conn->is_closed)
		return;
	conn->is_ready = true;
	timer_stop(conn->ready_timer);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void on_opened(void *arg, struct grpc_stream *stream)
{
	struct grpc_conn *conn = arg;

	conn->config.ops->opened(conn->config.arg, stream);
}

static void on_idle(void *arg)
{
	struct grpc_conn *conn = arg;

	if (conn->config.ops->idle)
		conn->config.ops->idle(conn->config.arg);
}

static const struct grpc_session_ops session_ops = {
	.wants_send = on_wants_send,
	.ready = on_ready,
	.opened = on_opened,
	.idle = on_idle,
};

struct grpc_conn *grpc_conn_new(struct loop *loop, int fd, const struct grpc_conn_config *config)
{
	struct grpc_conn *conn = mem_new(struct grpc_conn);
	const struct grpc_session_config session_config = {
		.is_server = config->is_server,
		.message_max = config->message_max,
		.ops = &session_ops,
		.arg = conn,
	};

	assert(loop && fd >= 0 && config);
	conn->config = *config;
	conn->fd = fd;
	conn->poller = poller_new(loop, fd, on_event, conn);
	conn->flusher = deferred_new(loop, flush_session, conn);
	conn->ready_timer = timer_new(loop, on_ready_timeout, conn);
	conn->session = grpc_session_new(&session_config);
	timer_start(conn->ready_timer, config->ready_ms);
	poller_want(conn->poller, POLL_READ);
	deferred_run(conn->flusher); /* the preface and SETTINGS */
	return conn;
}
