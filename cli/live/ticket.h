// SPDX-License-Identifier: Apache-2.0
/*
 * Which request gets the live report: decided from the head of the request alone. Pure.
 *
 * A page of another site can make the user's browser send requests to 127.0.0.1, also under a name
 * of its own that it resolves to 127.0.0.1 (DNS rebinding). Therefore the Host has to be one of the
 * loopback, the Origin, which browsers send with each WebSocket (RFC 6455 section 4.1), has to be
 * that same Host, and the path has to have the token, which the command prints for the user.
 */
#pragma once

#include <stddef.h>

#include "lib/base/str.h"

/* Hexadecimal digits of 128 bits. */
#define TICKET_TOKEN_LEN 32

enum ticket {
	TICKET_PAGE,    /* GET /TOKEN/ */
	TICKET_SOCKET,  /* GET /TOKEN/live, with Upgrade: websocket */
	TICKET_REFUSED, /* *ret_status is the HTTP status */
};

/*
 * head: a whole request head of len bytes, with a NUL behind it; it is cut into strings. token has
 * TICKET_TOKEN_LEN characters; it is compared in a time that does not depend on what was sent.
 * Statuses: those of request_parse() for a head that is malformed; 403 for a Host or an Origin of
 * another site; 404 for another path or token; 405 for another method than GET; 411 for a body
 * in chunks, 413 for any other; 426 for a WebSocket's path without Upgrade.
 */
enum ticket ticket_check(char *head, size_t len, const char *token, int *ret_status);

/*
 * Append the request that libwebsockets gets of a TICKET_SOCKET: the path is "/live", and of the
 * headers only those of RFC 6455 section 4.1 are kept, without extensions. Cookies, which a browser
 * sends to all ports of a host, and the token are not in it. head: as it came, a whole one.
 */
void ticket_upgrade(const char *head, size_t len, struct strbuf *out);
