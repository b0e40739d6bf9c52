// SPDX-License-Identifier: Apache-2.0
/*
 * libwebsockets on our loop. Debian builds it without callbacks for foreign poll loops, and its
 * libuv support is a plugin that is loaded at run time. So it keeps its own poll(2), which is
 * called without waiting whenever one of its sockets is ready: we know them all, since we adopt
 * them.
 */
#include "cli/live/sockets.h"

#include <assert.h>
#include <libwebsockets.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

enum {
	/* libwebsockets looks at its timeouts and pings when it is called. */
	TICK_MS = 1000,
	PING_S = 20,
	HANGUP_S = 45,
	/* The page sends nothing; whatever it sends is not a page of ours. */
	RECEIVE_MAX = 125,
};

struct peer {
	struct sockets *sockets;
	struct peer *next;
	struct lws *wsi;
	struct poller *poller;
	bool is_open; /* the upgrade is done */
	uint64_t has; /* version of the document that was sent; 0: none */
};

struct sockets {
	struct loop *loop;
	struct lws_context *context;
	struct deferred *service;
	struct timer *tick;
	struct peer *peers;
	size_t n;
	struct peer *adopted;        /* while libwebsockets takes it over, and may call back */
	uint64_t version;            /* of the document; 0: no document yet */
	struct strbuf whole, change; /* behind LWS_PRE bytes for the frame's header */
};

static void service(void *arg);

/* ---- what libwebsockets calls ---------------------------------------------------------------- */

static void on_ready(void *arg, int events)
{
	const struct peer *peer = arg;

	service(peer->sockets);
}

static void peer_gone(struct peer *peer)
{
	struct sockets *sockets = peer->sockets;
	struct peer **at = &sockets->peers;

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	sockets->n--;
	if (sockets->adopted == peer)
		sockets->adopted = NULL;
	poller_free(peer->poller);
	mem_free(peer);
}

/* The next message for a peer, if it has not the newest document. */
static int peer_write(struct peer *peer)
{
	struct sockets *sockets = peer->sockets;
	bool is_next = peer->has > 0 && peer->has + 1 == sockets->version;
	struct strbuf *message =
		is_next && sockets->change.len > 0 ? &sockets->change : &sockets->whole;

	if (peer->has == sockets->version)
		return 0;
	peer->has = sockets->version;
	return lws_write(peer->wsi, (unsigned char *)message->data + LWS_PRE,
			 message->len - LWS_PRE, LWS_WRITE_TEXT) < 0
		       ? -1
		       : 0;
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
		    size_t len)
{
	const struct sockets *sockets = lws_context_user(lws_get_context(wsi));
	struct peer *peer = lws_get_opaque_user_data(wsi);

	if (!peer && sockets->adopted) {
		peer = sockets->adopted;
		peer->wsi = wsi;
		lws_set_opaque_user_data(wsi, peer);
	}
	/* Of the context itself. */
	if (!peer)
		return 0;
	switch ((int)reason) {
	case LWS_CALLBACK_ESTABLISHED:
		peer->is_open = true;
		if (peer->has != peer->sockets->version)
			lws_callback_on_writable(wsi);
		return 0;
	case LWS_CALLBACK_SERVER_WRITEABLE:
		return peer_write(peer);
	case LWS_CALLBACK_RECEIVE:
	case LWS_CALLBACK_HTTP: /* no upgrade, as when the key is missing */
		return -1;
	case LWS_CALLBACK_WSI_DESTROY:
		peer_gone(peer);
		return 0;
	default:
		return 0;
	}
}

/* ---- on our loop ----------------------------------------------------------------------------- */

/*
 * Let it do what can be done without waiting, and learn what it waits for: POLL_WRITE where it has
 * more to send than the kernel took.
 */
static void service(void *arg)
{
	struct sockets *sockets = arg;

	(void)lws_service(sockets->context, -1);
	for (struct peer *peer = sockets->peers; peer; peer = peer->next) {
		bool has_more = peer->is_open &&
				(lws_partial_buffered(peer->wsi) || peer->has != sockets->version);

		poller_want(peer->poller, POLL_READ | (has_more ? POLL_WRITE : 0));
	}
}

static void on_tick(void *arg)
{
	struct sockets *sockets = arg;

	service(sockets);
	if (sockets->n > 0)
		timer_start(sockets->tick, TICK_MS);
}

static void *lws_memory(void *ptr, size_t size, const char *reason)
{
	if (size > 0)
		return mem_realloc(ptr, size);
	mem_free(ptr);
	return NULL;
}

struct sockets *sockets_new(struct loop *loop)
{
	static const struct lws_protocols protocols[] = {
		{.name = SOCKETS_PROTOCOL, .callback = on_event, .rx_buffer_size = RECEIVE_MAX},
		{0},
	};
	static const lws_retry_bo_t idle = {
		.secs_since_valid_ping = PING_S,
		.secs_since_valid_hangup = HANGUP_S,
	};
	struct lws_context_creation_info info = {
		.port = CONTEXT_PORT_NO_LISTEN_SERVER,
		.protocols = protocols,
		.gid = -1,
		.uid = -1,
		/* Its tables are as long as the limit of open files otherwise. */
		.fd_limit_per_thread = SOCKETS_MAX + 8,
		.retry_and_idle_policy = &idle,
	};
	struct sockets *sockets = mem_new(struct sockets);

	info.user = sockets;
	lws_set_log_level(0, NULL);
	lws_set_allocator(lws_memory);
	sockets->loop = loop;
	/* Fails only without memory, which ends the process, or without descriptors. */
	sockets->context = lws_create_context(&info);
	if (!sockets->context)
		mem_exhausted();
	sockets->service = deferred_new(loop, service, sockets);
	sockets->tick = timer_new(loop, on_tick, sockets);
	return sockets;
}

void sockets_free(struct sockets *sockets)
{
	if (!sockets)
		return;
	lws_context_destroy(sockets->context);
	deferred_free(sockets->service);
	timer_free(sockets->tick);
	strbuf_done(&sockets->whole);
	strbuf_done(&sockets->change);
	mem_free(sockets);
}

void sockets_adopt(struct sockets *sockets, int fd, const char *head, size_t len)
{
	struct peer *peer;

	assert(fd >= 0 && (head || len == 0));
	if (sockets->n == SOCKETS_MAX) {
		(void)close(fd);
		return;
	}
	peer = mem_new(struct peer);
	peer->sockets = sockets;
	peer->next = sockets->peers;
	sockets->peers = peer;
	sockets->n++;
	peer->poller = poller_new(sockets->loop, fd, on_ready, peer);
	sockets->adopted = peer;
	if (!lws_adopt_socket_readbuf(sockets->context, fd, head, len) && sockets->adopted)
		peer_gone(peer);
	sockets->adopted = NULL;
	deferred_run(sockets->service);
	timer_start(sockets->tick, TICK_MS);
}

static void set_message(struct strbuf *message, const char *member, const char *json)
{
	strbuf_reset(message);
	if (!json)
		return;
	for (size_t i = 0; i < LWS_PRE; i++)
		strbuf_addc(message, ' ');
	strbuf_addf(message, "{\"%s\":", member);
	strbuf_adds(message, json);
	strbuf_addc(message, '}');
}

void sockets_publish(struct sockets *sockets, const char *whole, const char *change)
{
	assert(whole);
	sockets->version++;
	set_message(&sockets->whole, "whole", whole);
	set_message(&sockets->change, "change", change);
	for (struct peer *peer = sockets->peers; peer; peer = peer->next)
		if (peer->is_open)
			lws_callback_on_writable(peer->wsi);
	deferred_run(sockets->service);
}
