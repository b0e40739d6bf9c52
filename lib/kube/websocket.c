// SPDX-License-Identifier: Apache-2.0
/*
 * The answer's head, then frames. See the header.
 */
#include "lib/kube/websocket.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "lib/base/base64.h"
#include "lib/base/sha1.h"
#include "lib/kube/status.h"

/* RFC 6455, 4.2.2: what the server appends to the key. */
#define ACCEPT_GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

enum {
	NONCE = 16,
	MASK = 4,
	CONTROL_MAX = 125,
	LENGTH_16 = 126,
	LENGTH_64 = 127,
	FIN = 0x80,
	RESERVED = 0x70,
	OPCODE = 0x0f,
	MASKED = 0x80,
};

enum opcode {
	OP_CONTINUATION = 0,
	OP_TEXT = 1,
	OP_BINARY = 2,
	OP_CLOSE = 8,
	OP_PING = 9,
	OP_PONG = 10,
};

static int bad(struct err *err, const char *what)
{
	return err_set(err, ERR_TRANSIENT, "BadWebSocket", "the API server's WebSocket: %s", what);
}

/* ---- the request ----------------------------------------------------------------------------- */

void websocket_ask(struct websocket *ws, const struct websocket_request *request,
		   struct strbuf *out)
{
	auto_strbuf struct strbuf key = {0}, joined = {0}, accept = {0};
	uint8_t nonce[NONCE], digest[SHA1_SIZE];

	ws->random(nonce, sizeof(nonce));
	base64_encode(nonce, sizeof(nonce), &key);
	strbuf_addf(&joined, "%s" ACCEPT_GUID, strbuf_str(&key));
	sha1(joined.data, joined.len, digest);
	base64_encode(digest, sizeof(digest), &accept);
	assert(accept.len < sizeof(ws->accept));
	memcpy(ws->accept, accept.data, accept.len + 1);
	strbuf_addf(out,
		    "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: %s\r\nUpgrade: websocket\r\n"
		    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n"
		    "Sec-WebSocket-Protocol: %s\r\n",
		    request->target, request->host, request->agent, strbuf_str(&key),
		    ws->protocols);
	if (request->authorization)
		strbuf_addf(out, "Authorization: %s\r\n", request->authorization);
	strbuf_adds(out, "\r\n");
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* A header's value without blanks around it, of a head whose lines end in \n; new, or NULL. */
static char *header(const char *head, size_t len, const char *name)
{
	size_t name_len = strlen(name);
	const char *end = head + len;

	for (const char *line = head; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));
		const char *value = line + name_len + 1;

		stop = stop ? stop : end;
		if (value <= stop && strncasecmp(line, name, name_len) == 0 &&
		    line[name_len] == ':') {
			const char *last = stop;

			while (value < last && (*value == ' ' || *value == '\t'))
				value++;
			while (last > value &&
			       (last[-1] == ' ' || last[-1] == '\t' || last[-1] == '\r'))
				last--;
			return str_ndup(value, (size_t)(last - value));
		}
		line = stop + 1;
	}
	return NULL;
}

/* One of several words with commas and blanks between them, in either case. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (list && *list) {
		size_t n = strcspn(list, ", \t");

		if (n == len && strncasecmp(list, word, len) == 0)
			return true;
		list += n;
		list += strspn(list, ", \t");
	}
	return false;
}

static int check_upgrade(const struct websocket *ws, const char *head, size_t len, struct err *err)
{
	auto_free char *upgrade = header(head, len, "Upgrade");
	auto_free char *connection = header(head, len, "Connection");
	auto_free char *accept = header(head, len, "Sec-WebSocket-Accept");
	auto_free char *protocol = header(head, len, "Sec-WebSocket-Protocol");
	auto_free char *extensions = header(head, len, "Sec-WebSocket-Extensions");

	if (!has_word(upgrade, "websocket") || !has_word(connection, "upgrade"))
		return bad(err, "the answer does not upgrade to one");
	if (!str_eq(accept, ws->accept))
		return bad(err, "Sec-WebSocket-Accept is not what follows from the key");
	if (str_empty(protocol) || !has_word(ws->protocols, protocol))
		return bad(err, "none of the protocols that were asked for");
	if (!str_empty(extensions))
		return bad(err, "an extension that nobody asked for");
	return 0;
}

/* The text of a refusal, as far as it is there, as an error. */
static int refusal(const struct websocket *ws, struct err *err)
{
	return kube_status_err(ws->status, strbuf_str(&ws->in), ws->in.len, err);
}

/* Once all of it is there. `in` has the head and what came of the body. */
static int read_refusal(struct websocket *ws, size_t head_len, struct err *err)
{
	auto_free char *length = header(ws->in.data, head_len, "Content-Length");
	int64_t body = -1;

	if (length && !str_to_int(length, 0, WEBSOCKET_HEAD_MAX, &body))
		body = -1;
	if (body < 0 || ws->in.len - head_len < (size_t)body)
		return 0;
	strbuf_consume(&ws->in, head_len);
	return refusal(ws, err);
}

/* Where the head ends, behind its empty line; 0: not yet. */
static size_t head_length(const struct strbuf *in)
{
	const char *end = memmem(strbuf_str(in), in->len, "\r\n\r\n", 4);

	return end ? (size_t)(end - in->data) + 4 : 0;
}

static int read_head(struct websocket *ws, struct err *err)
{
	size_t len = head_length(&ws->in);
	int64_t status = 0;
	char code[4] = "";

	if (len == 0)
		return ws->in.len > WEBSOCKET_HEAD_MAX ? bad(err, "a head without end") : 0;
	if (!str_starts(ws->in.data, "HTTP/1.") || len < sizeof("HTTP/1.1 101"))
		return bad(err, "the answer is not HTTP/1");
	memcpy(code, ws->in.data + strlen("HTTP/1.1 "), 3);
	if (!str_to_int(code, 100, 599, &status))
		return bad(err, "the answer has no status");
	ws->status = (int)status;
	if (status != 101) {
		ws->state = WEBSOCKET_REFUSED;
		return read_refusal(ws, len, err);
	}
	if (check_upgrade(ws, ws->in.data, len, err) < 0)
		return -1;
	strbuf_consume(&ws->in, len);
	ws->state = WEBSOCKET_OPEN;
	return 0;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Of a client they are masked. */
static int reply(struct websocket *ws, enum opcode op, const char *bytes, size_t len,
		 struct strbuf *out, struct err *err)
{
	uint8_t mask[MASK];

	if (out->len > WEBSOCKET_REPLIES_MAX)
		return bad(err, "more pings than answers are taken");
	ws->random(mask, sizeof(mask));
	strbuf_addc(out, (char)(FIN | op));
	strbuf_addc(out, (char)(MASKED | len));
	strbuf_add(out, mask, sizeof(mask));
	for (size_t i = 0; i < len; i++)
		strbuf_addc(out, (char)(bytes[i] ^ mask[i % MASK]));
	return 0;
}

static int take_data(struct websocket *ws, bool is_first, bool is_last, const char *bytes,
		     size_t len, websocket_message_fn *fn, void *arg, struct err *err)
{
	int result = 0;

	if (is_first == ws->in_message)
		return bad(err,
			   is_first ? "a message within another" : "a continuation of nothing");
	ws->in_message = !is_last;
	/* Most messages are whole; they need not be copied. */
	if (is_first && is_last)
		return fn(arg, bytes, len, err);
	if (ws->message.len + len > WEBSOCKET_MESSAGE_MAX)
		return bad(err, "a message that is too long");
	strbuf_add(&ws->message, bytes, len);
	if (!is_last)
		return 0;
	result = fn(arg, strbuf_str(&ws->message), ws->message.len, err);
	strbuf_reset(&ws->message);
	return result;
}

static int take_frame(struct websocket *ws, uint8_t first, const char *bytes, size_t len,
		      struct strbuf *out, websocket_message_fn *fn, void *arg, struct err *err)
{
	bool is_last = first & FIN;

	if (first & OP_CLOSE && (!is_last || len > CONTROL_MAX))
		return bad(err, "a control frame that is in parts or too long");
	switch (first & OPCODE) {
	case OP_CONTINUATION:
		return take_data(ws, false, is_last, bytes, len, fn, arg, err);
	case OP_TEXT:
	case OP_BINARY:
		return take_data(ws, true, is_last, bytes, len, fn, arg, err);
	case OP_CLOSE:
		ws->state = WEBSOCKET_CLOSED;
		/* Its status code, if it has one, comes back (RFC 6455, 5.5.1). */
		return reply(ws, OP_CLOSE, bytes, len >= 2 ? 2 : 0, out, err);
	case OP_PING:
		return reply(ws, OP_PONG, bytes, len, out, err);
	case OP_PONG:
		return 0;
	default:
		return bad(err, "an unknown kind of frame");
	}
}

/* The frame at the beginning of the bytes. *ret_len: its length; 0: it is not complete. */
static int read_frame(struct websocket *ws, const char *bytes, size_t len, size_t *ret_len,
		      struct strbuf *out, websocket_message_fn *fn, void *arg, struct err *err)
{
	const uint8_t *head = (const uint8_t *)bytes;
	size_t head_len = 2;
	uint64_t length = 0;

	*ret_len = 0;
	if (len < head_len)
		return 0;
	if (head[0] & RESERVED || head[1] & MASKED)
		return bad(err, "a frame with bits that must not be set");
	length = head[1];
	if (length >= LENGTH_16) {
		size_t n = length == LENGTH_16 ? 2 : 8;

		if (len < head_len + n)
			return 0;
		length = 0;
		for (size_t i = 0; i < n; i++)
			length = length << 8 | head[head_len + i];
		head_len += n;
	}
	if (length > WEBSOCKET_MESSAGE_MAX)
		return bad(err, "a frame that is too long");
	if (len - head_len < length)
		return 0;
	*ret_len = head_len + (size_t)length;
	return take_frame(ws, head[0], bytes + head_len, (size_t)length, out, fn, arg, err);
}

static int read_frames(struct websocket *ws, struct strbuf *out, websocket_message_fn *fn,
		       void *arg, struct err *err)
{
	size_t at = 0, len = 0;
	int result = 0;

	do {
		result = read_frame(ws, strbuf_str(&ws->in) + at, ws->in.len - at, &len, out, fn,
				    arg, err);
		at += len;
	} while (result == 0 && len > 0 && ws->state == WEBSOCKET_OPEN);
	strbuf_consume(&ws->in, at);
	return result;
}

int websocket_feed(struct websocket *ws, const char *bytes, size_t len, struct strbuf *out,
		   websocket_message_fn *fn, void *arg, struct err *err)
{
	assert(ws->state != WEBSOCKET_CLOSED);
	strbuf_add(&ws->in, bytes, len);
	if (ws->state == WEBSOCKET_REFUSED) {
		if (ws->in.len > 2 * WEBSOCKET_HEAD_MAX)
			return bad(err, "a refusal without end");
		return read_refusal(ws, head_length(&ws->in), err);
	}
	if (ws->state == WEBSOCKET_ASKED && read_head(ws, err) < 0)
		return -1;
	return ws->state == WEBSOCKET_OPEN ? read_frames(ws, out, fn, arg, err) : 0;
}

int websocket_end(struct websocket *ws, struct err *err)
{
	if (ws->state == WEBSOCKET_CLOSED)
		return 0;
	if (ws->state == WEBSOCKET_REFUSED) {
		strbuf_consume(&ws->in, head_length(&ws->in));
		return refusal(ws, err);
	}
	return err_set(err, ERR_TRANSIENT, "ConnectionLost",
		       "the API server closed the connection before the command ended");
}

void websocket_done(struct websocket *ws)
{
	strbuf_done(&ws->in);
	strbuf_done(&ws->message);
}
