// SPDX-License-Identifier: Apache-2.0
/*
 * The listening side of the live report: accepts connections, reads one request head of each, and
 * answers it with the page or a refusal. A connection that is to become a WebSocket is handed on.
 *
 * libwebsockets gets a connection only if Host, Origin and token of its request are right: its HTTP
 * server (4.1.6, Debian 12) can be brought into an endless loop (docs/http.md).
 */
#pragma once

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/loop/loop.h"

enum {
	DOOR_HEAD_MAX = 16384,   /* bytes of a request head */
	DOOR_UPGRADE_MAX = 2048, /* of them, what libwebsockets takes (lws_adopt_socket_readbuf) */
	DOOR_VISITORS_MAX = 32,  /* connections at a time; the oldest is closed for a new one */
	DOOR_TIMEOUT_MS = 10000, /* from accept to the last byte of the answer */
};

/* A WebSocket: takes the connected socket; head is what ticket_upgrade() left of it, borrowed. */
typedef void door_socket_fn(void *arg, int fd, const char *head, size_t len);

struct door_config {
	const char *address; /* "127.0.0.1:8080"; port 0: one that is free */
	const char *token;   /* ticket.h; borrowed */
	const char *headers; /* of the page's answer, each with CRLF; borrowed */
	const char *page;    /* borrowed */
	size_t page_len;
	door_socket_fn *socket;
	void *arg;
};

struct door;

/*
 * Listens at once. *ret_host: where, as a URL has it ("127.0.0.1:8080"), new. NULL with err:
 * ERR_INVALID "BadAddress", it is not IP:PORT, or not of the loopback; "ListenFailed", another
 * process listens there, or this host does not have the address.
 */
struct door *door_new(struct loop *loop, const struct door_config *config, char **ret_host,
		      struct err *err);
/* Visitors are cut off. Accepts NULL. */
void door_free(struct door *door);
