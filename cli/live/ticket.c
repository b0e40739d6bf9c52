// SPDX-License-Identifier: Apache-2.0
/*
 * Host, Origin, method and token of a request, in this order. The door calls ticket_check() before
 * it answers a request, and before libwebsockets gets a byte of the connection.
 */
#include "cli/live/ticket.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/http/request.h"

/* Host (RFC 9110 section 7.2) of the loopback, with any port: `ssh -L` may have another one. */
static bool is_loopback(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	int64_t port;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);

		if (strncasecmp(host, names[i], len) != 0)
			continue;
		if (host[len] == '\0' ||
		    (host[len] == ':' && str_to_int(host + len + 1, 1, 65535, &port)))
			return true;
	}
	return false;
}

static bool is_same_origin(const char *origin, const char *host)
{
	return str_starts(origin, "http://") && strcasecmp(origin + strlen("http://"), host) == 0;
}

/* Looks at all characters, wherever the first difference is. */
static bool is_token(const char *sent, const char *token)
{
	unsigned int differs = 0;

	for (size_t i = 0; i < TICKET_TOKEN_LEN; i++)
		differs |= (unsigned char)sent[i] ^ (unsigned char)token[i];
	return differs == 0;
}

static enum ticket refuse(int status, int *ret_status)
{
	*ret_status = status;
	return TICKET_REFUSED;
}

enum ticket ticket_check(char *head, size_t len, const char *token, int *ret_status)
{
	struct request req;
	const char *rest;
	int status = request_parse(head, len, &req);

	assert(head && token && ret_status);
	if (status != 0)
		return refuse(status, ret_status);
	if (!is_loopback(req.host) || (*req.origin && !is_same_origin(req.origin, req.host)))
		return refuse(403, ret_status);
	if (req.method != HTTP_GET || req.is_head)
		return refuse(405, ret_status);
	if (req.is_chunked)
		return refuse(411, ret_status);
	if (req.body_len > 0)
		return refuse(413, ret_status);
	if (strlen(req.path) <= TICKET_TOKEN_LEN || !is_token(req.path + 1, token))
		return refuse(404, ret_status);
	rest = req.path + 1 + TICKET_TOKEN_LEN;
	if (str_eq(rest, "/"))
		return TICKET_PAGE;
	if (!str_eq(rest, "/live"))
		return refuse(404, ret_status);
	if (!*req.origin)
		return refuse(403, ret_status);
	return strcasecmp(req.upgrade, "websocket") == 0 ? TICKET_SOCKET : refuse(426, ret_status);
}

static bool is_of_upgrade(const char *line)
{
	static const char *const names[] = {
		"Host:",
		"Origin:",
		"Connection:",
		"Upgrade:",
		"Sec-WebSocket-Key:",
		"Sec-WebSocket-Version:",
		"Sec-WebSocket-Protocol:",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strncasecmp(line, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

void ticket_upgrade(const char *head, size_t len, struct strbuf *out)
{
	const char *end = head + len - 2, *line, *stop; /* before the empty line */

	strbuf_adds(out, "GET /live HTTP/1.1\r\n");
	for (line = head; line < end; line = stop) {
		stop = (const char *)memmem(line, (size_t)(head + len - line), "\r\n", 2) + 2;
		if (is_of_upgrade(line))
			strbuf_add(out, line, (size_t)(stop - line));
	}
	strbuf_adds(out, "\r\n");
}
