// SPDX-License-Identifier: Apache-2.0
/*
 * The listening socket, the connections, and the end of both: joins wire.c (bytes), exchange.c
 * (HTTP) and crowd.c (which connections are admitted, and for how long), which do not know each
 * other.
 */
#include "lib/http/server.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/http/address.h"
#include "lib/http/crowd.h"
#include "lib/http/exchange.h"
#include "lib/http/tls.h"
#include "lib/http/wire.h"
#include "lib/loop/loop.h"

/* Connections taken in one turn of the loop; everything else has its turn in between. */
#define ACCEPTS_PER_TURN 32
/* When there is no room, or no descriptor, we look again after this time. */
#define ACCEPT_AGAIN_MS 100
/*
 * After an answer to a request whose body we do not want, the client has this long to stop sending
 * it.
 */
#define DRAIN_MS 2000

/* One connection. Until its first bytes come it has no exchange. */
struct conn {
	struct crowd_member member;
	struct http_server *server;
	struct wire wire;
	struct poller *poller;
	int wants; /* what the poller waits for */
	struct exchange *exchange;
	size_t sent;      /* of exchange->out */
	int64_t asked_us; /* exchange->started_us of the request that `member` stands for */
};

struct http_server {
	struct loop *loop;
	char *name;
	struct exchange_site site;
	struct crowd crowd;
	SSL_CTX *tls; /* NULL: plain */
	struct {
		char *min_version, *cipher_suites, *client_ca_pem;
	} policy;
	struct metric *turned_away;

	int listen_fd;
	struct poller *poller;
	struct timer *accept_again;
	bool accept_complained;
	/*
	 * Accepted, and there is no room for it; -1: none. While there is one, the listener is not
	 * polled.
	 */
	int waiting_fd;
	struct in6_addr waiting_peer;

	struct timer *look; /* for the next connection whose time is up */
	int64_t look_at_ms; /* while it is active */

	struct deferred *closing;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- connections ----------------------------------------------------------------------------- */

static void conn_free(struct conn *conn)
{
	crowd_remove(&conn->server->crowd, &conn->member);
	if (conn->exchange)
		exchange_done(conn->exchange);
	mem_free(conn->exchange);
	poller_free(conn->poller);
	wire_done(&conn->wire);
	mem_free(conn);
}

/* End it, with a goodbye if a client can receive it, and admit one that waits. */
static void conn_drop(struct conn *conn)
{
	struct http_server *server = conn->server;

	wire_say_goodbye(&conn->wire);
	conn_free(conn);
	if (server->waiting_fd >= 0)
		timer_start(server->accept_again, 0);
}

/* Wake up when the next connection's time is up. */
static void plan_look(struct http_server *server)
{
	int64_t next_ms = crowd_next_ms(&server->crowd);

	if (next_ms == INT64_MAX ||
	    (timer_is_active(server->look) && server->look_at_ms <= next_ms))
		return;
	server->look_at_ms = next_ms;
	timer_start(server->look, next_ms - clock_ms());
}

/* Nothing is read before the request that is there has its answer. */
static bool is_answering(const struct conn *conn)
{
	const struct exchange *x = conn->exchange;

	return x && (x->state == EXCHANGE_GATED || x->state == EXCHANGE_SENDING);
}

/* Send what there is; -1 when the connection is over. */
static int conn_send(struct conn *conn)
{
	struct exchange *x = conn->exchange;

	while (x && conn->sent < x->out.len) {
		ssize_t n =
			wire_send(&conn->wire, x->out.data + conn->sent, x->out.len - conn->sent);

		if (n < 0)
			return n == WIRE_LATER ? 0 : -1;
		conn->sent += (size_t)n;
		if (conn->sent < x->out.len)
			continue;
		conn->sent = 0;
		exchange_sent(x);
		if (x->state == EXCHANGE_DRAINING)
			wire_end_sending(&conn->wire);
	}
	return x && x->state == EXCHANGE_OVER ? -1 : 0;
}

/* Read once, and what OpenSSL has beyond that; -1 when the connection is over. */
static int conn_receive(struct conn *conn)
{
	char buf[WIRE_READ_SIZE];

	do {
		ssize_t n = wire_recv(&conn->wire, buf, sizeof(buf));

		if (n < 0)
			return n == WIRE_LATER ? 0 : -1;
		if (!conn->exchange) {
			conn->exchange = mem_new(struct exchange);
			exchange_init(conn->exchange, &conn->server->site, &conn->member.peer);
			conn->exchange->arg = conn;
		}
		exchange_received(conn->exchange, buf, (size_t)n);
	} while (wire_has_more(&conn->wire));
	return 0;
}

static enum crowd_state state_of(const struct conn *conn)
{
	const struct exchange *x = conn->exchange;

	switch (x ? x->state : EXCHANGE_IDLE) {
	case EXCHANGE_IDLE:
		return x && x->has_asked ? CROWD_IDLE : CROWD_NEW;
	case EXCHANGE_HEAD:
		return x->has_asked ? CROWD_ASKING : CROWD_NEW;
	case EXCHANGE_BODY:
	case EXCHANGE_GATED:
		return CROWD_ASKING;
	case EXCHANGE_SENDING:
		return CROWD_TAKING;
	case EXCHANGE_STREAMING:
		return x->out.len > 0 ? CROWD_TAKING : CROWD_FOLLOWING;
	case EXCHANGE_DRAINING:
	case EXCHANGE_OVER:
		break;
	}
	return CROWD_LEAVING;
}

/* After anything has happened: its place in the crowd, and what to wait for. */
static void conn_settle(struct conn *conn)
{
	const struct exchange *x = conn->exchange;
	enum crowd_state state = state_of(conn);
	int wants = conn->wire.waits_for;

	if (state != conn->member.state || state == CROWD_IDLE ||
	    (state != CROWD_NEW && x->started_us != conn->asked_us))
		crowd_move(&conn->server->crowd, &conn->member, state,
			   state == CROWD_ASKING ? x->started_us / 1000 : clock_ms());
	conn->asked_us = x ? x->started_us : 0;
	plan_look(conn->server);
	if (!is_answering(conn))
		wants |= POLL_READ;
	if (wants != conn->wants)
		poller_want(conn->poller, wants);
	conn->wants = wants;
}

static void on_ready(void *arg, int events)
{
	struct conn *conn = arg;

	if (conn_send(conn) < 0 || (!is_answering(conn) && conn_receive(conn) < 0) ||
	    conn_send(conn) < 0)
		conn_drop(conn);
	else
		conn_settle(conn);
}

static void on_answered(struct exchange *x)
{
	struct conn *conn = x->arg;

	if (conn_send(conn) < 0)
		conn_drop(conn);
	else
		conn_settle(conn);
}

/* Its time is up: a request that has begun gets an answer, everything else just ends. */
static void conn_overdue(struct conn *conn)
{
	struct exchange *x = conn->exchange;

	if (x && (x->state == EXCHANGE_HEAD || x->state == EXCHANGE_BODY)) {
		exchange_timeout(x);
		if (conn_send(conn) == 0) {
			conn_settle(conn);
			return;
		}
	}
	conn_drop(conn);
}

static void look(struct http_server *server)
{
	struct crowd_member *member = NULL;

	while ((member = crowd_overdue(&server->crowd, clock_ms())))
		conn_overdue(container_of(member, struct conn, member));
}

static void on_look(void *arg)
{
	struct http_server *server = arg;

	look(server);
	plan_look(server);
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* Takes fd. */
static void conn_new(struct http_server *server, int fd, const struct in6_addr *peer)
{
	static const int on = 1;
	struct conn *conn = mem_new(struct conn);

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn->server = server;
	wire_init(&conn->wire, fd, server->tls);
	conn->poller = poller_new(server->loop, fd, on_ready, conn);
	crowd_add(&server->crowd, &conn->member, peer, clock_ms());
	conn_settle(conn);
}

/* Takes fd; false, and nothing is taken, when it has to wait. */
static bool let_in(struct http_server *server, int fd, const struct in6_addr *peer)
{
	struct crowd_member *victim = NULL;

	switch (crowd_ask(&server->crowd, peer, clock_ms(), &victim)) {
	case CROWD_FULL:
		return false;
	case CROWD_REFUSED:
		metric_add(server->turned_away, 1, server->name, "refused");
		(void)close(fd);
		return true;
	case CROWD_INSTEAD:
		metric_add(server->turned_away, 1, server->name, "gave way");
		conn_free(container_of(victim, struct conn, member));
		break;
	case CROWD_WELCOME:
		break;
	}
	conn_new(server, fd, peer);
	return true;
}

static void pause_accepting(struct http_server *server)
{
	poller_want(server->poller, 0);
	timer_start(server->accept_again, ACCEPT_AGAIN_MS);
}

static void resume_accepting(void *arg)
{
	struct http_server *server = arg;

	if (server->waiting_fd >= 0 && !let_in(server, server->waiting_fd, &server->waiting_peer)) {
		timer_start(server->accept_again, ACCEPT_AGAIN_MS);
		return;
	}
	server->waiting_fd = -1;
	poller_want(server->poller, POLL_READ);
}

/* One connection from the kernel; false when there is none, or no room. */
static bool accept_one(struct http_server *server)
{
	union {
		struct sockaddr sa;
		struct sockaddr_storage storage;
	} from = {0};
	socklen_t len = sizeof(from);
	int fd = accept4(server->listen_fd, &from.sa, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct in6_addr peer;

	if (fd >= 0) {
		peer = crowd_peer(&from.sa);
		server->accept_complained = false;
		if (let_in(server, fd, &peer))
			return true;
		server->waiting_fd = fd;
		server->waiting_peer = peer;
		pause_accepting(server);
		return false;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
		if (!server->accept_complained)
			log_error("cannot accept connections", F_STR("server", server->name),
				  F_STR("error", strerror(errno)));
		server->accept_complained = true;
		pause_accepting(server);
		return false;
	}
	/* Else it was this one connection: accept(2) reports its network errors too. */
	return errno != EAGAIN;
}

static void on_listener(void *arg, int events)
{
	struct http_server *server = arg;

	look(server);
	for (int i = 0; i < ACCEPTS_PER_TURN && accept_one(server); i++)
		;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void add_metrics(struct http_server *server, struct metrics *metrics)
{
	server->site.requests =
		metric_counter(metrics, "http_requests_total", "HTTP requests answered.",
			       "server,path,method,code");
	server->site.duration =
		metric_histogram(metrics, "http_request_duration_seconds",
				 "Time from the complete headers of a request to its response.",
				 "server,path", METRIC_SECONDS);
	server->turned_away = metric_counter(
		metrics, "http_connections_turned_away_total",
		"Connections closed because there were too many: a newcomer was refused, or one "
		"that was there gave way to it.",
		"server,how");
}

struct http_server *http_server_new(struct loop *loop, const struct http_server_config *config,
				    struct err *err)
{
	int64_t timeout_ms = (config->timeout_s ? config->timeout_s : HTTP_TIMEOUT_S) * 1000LL;
	struct http_server *server;
	struct address address;
	SSL_CTX *tls = NULL;
	int fd;

	if (address_parse(config->listen, &address, err) < 0)
		return NULL;
	if (config->certificate_pem || config->key_pem) {
		tls = tls_new(config->certificate_pem, config->key_pem, &config->tls, err);
		if (!tls)
			return NULL;
	}
	fd = address_listen(&address, config->listen, err);
	if (fd < 0) {
		SSL_CTX_free(tls);
		return NULL;
	}
	server = mem_new(struct http_server);
	server->loop = loop;
	server->name = str_dup(config->name);
	server->site = (struct exchange_site){
		.name = server->name,
		.routes = config->routes,
		.n_routes = config->n_routes,
		.answered = on_answered,
	};
	server->tls = tls;
	server->policy.min_version = str_dup(config->tls.min_version);
	server->policy.cipher_suites = str_dup(config->tls.cipher_suites);
	server->policy.client_ca_pem = str_dup(config->tls.client_ca_pem);
	server->listen_fd = fd;
	server->waiting_fd = -1;
	crowd_limit(&server->crowd,
		    config->connections_max ? config->connections_max : HTTP_CONNECTIONS_MAX);
	server->crowd.lasts_ms[CROWD_NEW] = timeout_ms;
	server->crowd.lasts_ms[CROWD_IDLE] = HTTP_IDLE_S * 1000LL;
	server->crowd.lasts_ms[CROWD_ASKING] = timeout_ms;
	server->crowd.lasts_ms[CROWD_TAKING] = timeout_ms;
	server->crowd.lasts_ms[CROWD_FOLLOWING] = CROWD_FOR_EVER;
	server->crowd.lasts_ms[CROWD_LEAVING] = DRAIN_MS;
	add_metrics(server, config->metrics);
	server->look = timer_new(loop, on_look, server);
	server->accept_again = timer_new(loop, resume_accepting, server);
	server->poller = poller_new(loop, fd, on_listener, server);
	poller_want(server->poller, POLL_READ);
	return server;
}

unsigned int http_server_port(const struct http_server *server)
{
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} name = {0};
	socklen_t len = sizeof(name);

	if (getsockname(server->listen_fd, &name.sa, &len) < 0)
		return 0;
	return ntohs(name.sa.sa_family == AF_INET6 ? name.in6.sin6_port : name.in.sin_port);
}

int http_server_set_certificate(struct http_server *server, const char *certificate_pem,
				const char *key_pem, struct err *err)
{
	const struct http_tls_policy policy = {
		.min_version = server->policy.min_version,
		.cipher_suites = server->policy.cipher_suites,
		.client_ca_pem = server->policy.client_ca_pem,
	};
	SSL_CTX *tls;

	assert(server->tls);
	tls = tls_new(certificate_pem, key_pem, &policy, err);
	if (!tls)
		return -1;
	SSL_CTX_free(server->tls);
	server->tls = tls;
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void end_server(void *arg)
{
	struct http_server *server = arg;
	void (*done)(void *arg) = server->done;
	void *done_arg = server->done_arg;
	struct crowd_member *member = NULL;

	while ((member = crowd_any(&server->crowd))) {
		struct conn *conn = container_of(member, struct conn, member);

		wire_say_goodbye(&conn->wire);
		conn_free(conn);
	}
	timer_free(server->look);
	deferred_free(server->closing);
	SSL_CTX_free(server->tls);
	mem_free(server->policy.min_version);
	mem_free(server->policy.cipher_suites);
	mem_free(server->policy.client_ca_pem);
	mem_free(server->name);
	mem_free(server);
	if (done)
		done(done_arg);
}

void http_server_close(struct http_server *server, void (*done)(void *arg), void *arg)
{
	if (!server)
		return;
	poller_free(server->poller);
	timer_free(server->accept_again);
	(void)close(server->listen_fd);
	if (server->waiting_fd >= 0)
		(void)close(server->waiting_fd);
	server->listen_fd = -1;
	server->waiting_fd = -1;
	server->done = done;
	server->done_arg = arg;
	/* Not now: this may be a handler, and its connection is in use. */
	server->closing = deferred_new(server->loop, end_server, server);
	deferred_run(server->closing);
}
