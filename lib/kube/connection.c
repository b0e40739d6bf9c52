// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl's multi interface as a guest of the loop: one poller per socket, one timer. Curl may not
 * be entered from its own callbacks, so transfers are collected after each
 * curl_multi_socket_action; a crowd of them ends over several turns.
 */
#include "lib/kube/connection.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/kube/client.h"

enum {
	/* A peer that vanished while nothing is sent is noticed by the kernel's probes. */
	KEEPALIVE_IDLE_S = 15,
	KEEPALIVE_INTERVAL_S = 5,
	/*
	 * Of a crowd of calls that end, those of so much time in one turn: others wait for the
	 * loop, too.
	 */
	TURN_US = 100,
};

/* ---- curl on the loop ------------------------------------------------------------------------ */

struct socket_watch {
	struct connection *connection;
	struct poller *poller;
	curl_socket_t fd;
};

static void collect(void *arg)
{
	struct connection *c = arg;
	int64_t until_us = clock_us() + TURN_US;
	CURLMsg *message;
	int left = 0;

	while ((message = curl_multi_info_read(c->multi, &left))) {
		c->owner->ended(c->owner->arg, message->easy_handle, message->data.result);
		if (clock_us() >= until_us) {
			deferred_run(c->collector);
			return;
		}
	}
}

static void enter(struct connection *c, curl_socket_t fd, int mask)
{
	int running = 0;

	c->owner->entering(c->owner->arg);
	c->n_refused = 0;
	curl_multi_socket_action(c->multi, fd, mask, &running);
	collect(c);
}

static void on_socket_ready(void *arg, int events)
{
	const struct socket_watch *watch = arg;
	int mask = 0;

	if (events & POLL_READ)
		mask |= CURL_CSELECT_IN;
	if (events & POLL_WRITE)
		mask |= CURL_CSELECT_OUT;
	if (events & POLL_ERROR)
		mask |= CURL_CSELECT_ERR;
	enter(watch->connection, watch->fd, mask); /* the watch may go meanwhile */
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct connection *c = arg;
	struct socket_watch *watch = socket_arg;

	if (what == CURL_POLL_REMOVE) {
		if (watch) {
			poller_free(watch->poller);
			mem_free(watch);
			curl_multi_assign(c->multi, fd, NULL);
		}
		return 0;
	}
	if (!watch) {
		watch = mem_new(struct socket_watch);
		watch->connection = c;
		watch->fd = fd;
		watch->poller = poller_new(c->owner->loop, fd, on_socket_ready, watch);
		curl_multi_assign(c->multi, fd, watch);
	}
	poller_want(watch->poller, (what & CURL_POLL_IN ? POLL_READ : 0) |
					   (what & CURL_POLL_OUT ? POLL_WRITE : 0));
	return 0;
}

static void on_timer(void *arg)
{
	enter(arg, CURL_SOCKET_TIMEOUT, 0);
}

/*
 * Curl asks for 0 ms again and again while it makes progress; a timer of 0 ms would keep the loop
 * from its sockets.
 */
static int on_curl_timer(CURLM *multi, long after_ms, void *arg)
{
	struct connection *c = arg;

	timer_stop(c->timer);
	if (after_ms == 0)
		deferred_run(c->soon);
	else if (after_ms > 0)
		timer_start(c->timer, after_ms);
	return 0;
}

/* ---- sockets --------------------------------------------------------------------------------- */

/*
 * The kernel gives up a connection on which nothing is acknowledged for KUBE_DELIVERY_MS, and with
 * it what it still holds (tcp(7), TCP_USER_TIMEOUT): a write that we gave out of our hands arrives
 * soon or never, which lease.h builds on.
 */
static int on_socket_made(void *arg, curl_socket_t fd, curlsocktype purpose)
{
	unsigned int timeout_ms = KUBE_DELIVERY_MS;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof(timeout_ms));
	return CURL_SOCKOPT_OK;
}

/* The streams are used up, or the server takes no new ones (GOAWAY). */
static void note_full(struct connection *c)
{
	struct connection_owner *owner = c->owner;
	size_t n = c->n_streams - ++c->n_refused;

	c->retired = true;
	if (n < CONNECTION_STREAMS_LEAST)
		return;
	if (n == owner->full_at && n < owner->streams_max)
		owner->streams_max = n;
	owner->full_at = n;
}

static curl_socket_t on_socket_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct connection_stream *stream = arg;
	struct connection *c = stream->connection;
	int fd = -1;

	if (c->n_fds > 0 && !c->opening) {
		stream->no_room = true;
		note_full(c);
		return CURL_SOCKET_BAD;
	}
	if (c->n_fds == ARRAY_LEN(c->fds))
		return CURL_SOCKET_BAD;
	fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	c->opening = true;
	c->fds[c->n_fds++] = fd;
	if (c->owner->fence)
		fence_add(c->owner->fence, fd);
	return fd;
}

static int on_socket_close(void *arg, curl_socket_t fd)
{
	struct connection *c = arg;

	for (size_t i = 0; i < c->n_fds; i++) {
		if (c->fds[i] != fd)
			continue;
		c->fds[i] = c->fds[--c->n_fds];
		break;
	}
	if (c->owner->fence)
		fence_remove(c->owner->fence, fd);
	return close(fd);
}

/* ---- life ------------------------------------------------------------------------------------ */

/*
 * When there is something to look after, at the latest. Not moved on with each byte: the look does
 * that.
 */
static void look_later(struct connection *c)
{
	const struct connection_owner *owner = c->owner;
	int64_t at = c->retire_ms;

	if (c->n_streams == 0 && c->used_ms + CONNECTION_IDLE_MS < at)
		at = c->used_ms + CONNECTION_IDLE_MS;
	if (c->n_streams > 0 && owner->silence_ms > 0 && c->asked_ms + owner->silence_ms < at)
		at = c->asked_ms + owner->silence_ms;
	timer_start(c->patience, at - clock_ms());
}

static void on_patience(void *arg)
{
	struct connection *c = arg;
	const struct connection_owner *owner = c->owner;
	int64_t now = clock_ms();

	if (now >= c->retire_ms || (c->n_streams == 0 && now - c->used_ms >= CONNECTION_IDLE_MS)) {
		connection_retire(c);
		c->retire_ms = INT64_MAX / 2;
	}
	if (c->n_streams > 0 && owner->silence_ms > 0 && now - c->asked_ms >= owner->silence_ms) {
		c->asked_ms = now; /* for the next look; the result of the probe decides */
		owner->silent(owner->arg, c);
	}
	if (c->n_streams > 0 || !c->retired)
		look_later(c);
}

struct connection *connection_new(struct connection_owner *owner)
{
	struct connection *c = mem_new(struct connection);

	c->owner = owner;
	c->multi = curl_multi_init();
	c->timer = timer_new(owner->loop, on_timer, c);
	c->patience = timer_new(owner->loop, on_patience, c);
	c->soon = deferred_new(owner->loop, on_timer, c);
	c->collector = deferred_new(owner->loop, collect, c);
	c->streams_max = owner->multiplexed ? owner->streams_max : 1;
	c->made_ms = c->used_ms = c->spoke_ms = c->asked_ms = clock_ms();
	c->retire_ms = c->made_ms + CONNECTION_AGE_MS + (int64_t)clock_jitter(CONNECTION_AGE_MS);
	c->opening = true;
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)CONNECTION_STREAMS);
	look_later(c);
	return c;
}

void connection_free(struct connection *c)
{
	if (!c)
		return;
	assert(c->n_streams == 0);
	curl_multi_cleanup(c->multi);
	timer_free(c->timer);
	timer_free(c->patience);
	deferred_free(c->soon);
	deferred_free(c->collector);
	mem_free(c);
}

bool connection_has_room(const struct connection *c)
{
	/* One stream less than there are: a probe needs one. */
	size_t room = c->streams_max > 1 ? c->streams_max - 1 : 1;

	return !c->retired && c->n_streams < (c->opening ? 1 : room);
}

bool connection_is_opening(const struct connection *c)
{
	return !c->retired && c->opening && c->streams_max > 1 &&
	       clock_ms() - c->made_ms < CONNECTION_OPENING_MS;
}

void connection_reserve(struct connection *c, struct connection_stream *stream)
{
	assert(!stream->connection);
	*stream = (struct connection_stream){.connection = c};
	if (c->n_streams++ == 0) {
		/* Silence counts from the first question. */
		c->asked_ms = clock_ms();
		look_later(c);
	}
}

void connection_send(struct connection_stream *stream, CURL *easy)
{
	struct connection *c = stream->connection;

	stream->easy = easy;
	curl_easy_setopt(easy, CURLOPT_PIPEWAIT, 1L); /* share the connection that is being made */
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
	curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_socket_open);
	curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, stream);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_socket_close);
	curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, c);
	curl_multi_add_handle(c->multi, easy);
}

void connection_leave(struct connection_stream *stream)
{
	struct connection *c = stream->connection;

	if (!c)
		return;
	if (stream->easy)
		curl_multi_remove_handle(c->multi, stream->easy);
	*stream = (struct connection_stream){0};
	c->n_streams--;
	c->used_ms = clock_ms();
	if (c->n_streams == 0 && !c->retired)
		look_later(c);
	c->owner->changed(c->owner->arg);
}

void connection_heard(struct connection *c, long version)
{
	c->spoke_ms = c->asked_ms = clock_ms();
	if (!c->opening)
		return;
	c->opening = false;
	if (version != CURL_HTTP_VERSION_2_0)
		c->streams_max = 1;
	c->owner->changed(c->owner->arg);
}

void connection_retire(struct connection *c)
{
	if (c->retired)
		return;
	c->retired = true;
	c->owner->changed(c->owner->arg);
}

void connection_cut(struct connection *c)
{
	for (size_t i = 0; i < c->n_fds; i++)
		(void)shutdown(c->fds[i], SHUT_RDWR);
	connection_retire(c);
}
