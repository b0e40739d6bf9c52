/*
 * Requests and their responses on one connection: bytes come in, handlers are called, bytes go out.
 *
 * One request is in work at a time; what a client sends ahead waits in `in`, and while a response goes out we do not
 * read at all. So a connection holds at most a head, a body of the size its route allows, one read, and a response.
 */
#include <assert.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/http/internal.h"

static const struct {
	int status;
	const char *text;
} reasons[] = {
	{200, "OK"},
	{400, "Bad Request"},
	{401, "Unauthorized"},
	{403, "Forbidden"},
	{404, "Not Found"},
	{405, "Method Not Allowed"},
	{408, "Request Timeout"},
	{411, "Length Required"},
	{413, "Content Too Large"},
	{415, "Unsupported Media Type"},
	{417, "Expectation Failed"},
	{422, "Unprocessable Content"},
	{429, "Too Many Requests"},
	{431, "Request Header Fields Too Large"},
	{500, "Internal Server Error"},
	{501, "Not Implemented"},
	{503, "Service Unavailable"},
	{505, "HTTP Version Not Supported"},
};

static const char *reason_text(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].text;
	return "";
}

const char *http_query_get(const struct http_request *req, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < req->n_query; i++) {
		const char *param = req->query[i];

		if (strncmp(param, name, len) != 0)
			continue;
		if (param[len] == '=')
			return param + len + 1;
		if (param[len] == '\0')
			return param + len;
	}
	return NULL;
}

static void deadline_in(struct conn *conn, int64_t ms)
{
	lws_set_timer_usecs(conn->wsi, ms * 1000);
}

static int64_t request_ms(const struct conn *conn)
{
	return conn->server->timeout_s * 1000LL;
}

/* Room for a body that is announced: large ones share what there is. */
static bool take_room(struct conn *conn)
{
	struct http_server *server = conn->server;

	if (conn->req.body_len <= HTTP_BODY_MAX)
		return true;
	if (conn->req.body_len > HTTP_LARGE_BODIES_MAX - server->large)
		return false;
	conn->large = conn->req.body_len;
	server->large += conn->large;
	return true;
}

static void give_room(struct conn *conn)
{
	conn->server->large -= conn->large;
	conn->large = 0;
}

void exchange_done(struct conn *conn)
{
	give_room(conn);
	strbuf_done(&conn->in);
	strbuf_done(&conn->out);
	mem_free(take_ptr(conn->head));
}

/* ---- sending ---- */

/* Say what a TLS client wants to hear before the end; it needs no answer. */
static int hang_up(struct conn *conn)
{
	SSL *ssl = lws_get_ssl(conn->wsi);

	if (ssl)
		SSL_shutdown(ssl);
	return -1;
}

static int response_sent(struct conn *conn)
{
	strbuf_done(&conn->out);
	mem_free(take_ptr(conn->head));
	if (conn->rx_stopped) {
		conn->rx_stopped = false;
		lws_rx_flow_control(conn->wsi, 1);
	}
	if (conn->close_after && !conn->is_body_left)
		return hang_up(conn);
	if (conn->close_after) {
		/* Closing now would make the kernel send a reset, and the client may lose our answer to it. */
		conn->phase = CONN_DRAINING;
		deadline_in(conn, HTTP_DRAIN_MS);
		return 0;
	}
	deadline_in(conn, HTTP_IDLE_S * 1000LL);
	conn_is_idle(conn);
	return 0;
}

static int send_more(struct conn *conn)
{
	while (conn->sent < conn->out.len) {
		size_t n = conn->out.len - conn->sent;

		if (n > HTTP_CHUNK_SIZE)
			n = HTTP_CHUNK_SIZE;
		if (lws_write(conn->wsi, (unsigned char *)conn->out.data + conn->sent, n,
			      LWS_WRITE_RAW) < 0)
			return -1;
		conn->sent += n;
		if (lws_send_pipe_choked(conn->wsi))
			break;
	}
	if (conn->sent == conn->out.len && !lws_partial_buffered(conn->wsi))
		return response_sent(conn);
	if (!conn->rx_stopped) {
		conn->rx_stopped = true;
		lws_rx_flow_control(conn->wsi, 0);
	}
	lws_callback_on_writable(conn->wsi);
	return 0;
}

static void add_date(struct strbuf *out)
{
	time_t now = (time_t)(clock_wall_us() / 1000000);
	char text[64];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm);
	strbuf_addf(out, "Date: %s\r\n", text);
}

static void add_allow(struct strbuf *out, unsigned int allowed)
{
	const char *before = "Allow: ";

	for (unsigned int method = HTTP_GET; method <= HTTP_DELETE; method <<= 1)
		if (allowed & method) {
			strbuf_addf(out, "%s%s%s", before, http_method_name(method),
				    method == HTTP_GET ? ", HEAD" : "");
			before = ", ";
		}
	strbuf_adds(out, "\r\n");
}

static int send_response(struct conn *conn, const struct http_response *resp)
{
	static const char room[LWS_PRE]; /* lws_write may use so much before the data */
	struct strbuf *out = &conn->out;

	strbuf_add(out, room, sizeof(room));
	strbuf_addf(out, "HTTP/1.1 %d %s\r\n", resp->status, reason_text(resp->status));
	add_date(out);
	strbuf_addf(
		out,
		"Content-Type: %s\r\nContent-Length: %zu\r\nX-Content-Type-Options: nosniff\r\n",
		resp->content_type, resp->body.len);
	if (resp->status == 405)
		add_allow(out, conn->allowed);
	if (conn->close_after)
		strbuf_adds(out, "Connection: close\r\n");
	strbuf_adds(out, "\r\n");
	if (!conn->req.is_head)
		strbuf_add(out, strbuf_str(&resp->body), resp->body.len);
	conn->sent = sizeof(room);
	conn->phase = CONN_SENDING;
	deadline_in(conn, request_ms(conn));
	return send_more(conn);
}

/* ---- answering ---- */

static void count(const struct conn *conn, int status)
{
	const struct http_server *server = conn->server;
	const char *path = conn->route ? conn->route->path : "other";
	char code[16];

	snprintf(code, sizeof(code), "%d", status);
	metric_add(server->requests, 1, server->name, path, request_method_name(&conn->req), code);
	metric_observe(server->duration, (double)(clock_us() - conn->started_us) / 1e6,
		       server->name, path);
}

/* The body is the start of `in`; it ends with a NUL for the time of the call. */
static void call_handler(struct conn *conn, struct http_response *resp)
{
	const struct http_request req = {
		.method = conn->req.method,
		.path = conn->req.path,
		.query = conn->req.query,
		.n_query = conn->req.n_query,
		.content_type = conn->req.content_type,
		.body = strbuf_str(&conn->in),
		.body_len = conn->req.body_len,
	};
	char *end = conn->in.data ? conn->in.data + conn->req.body_len : NULL;
	char next = '\0';

	if (end) {
		next = *end;
		*end = '\0';
	}
	conn->route->handle(&req, resp, conn->route->arg);
	if (end)
		*end = next;
	assert(resp->status >= 200 && resp->status <= 599);
}

static int answer(struct conn *conn)
{
	struct http_response resp = {.status = 200, .content_type = HTTP_TEXT};
	int result;

	if (conn->refusal) {
		resp.status = conn->refusal;
		strbuf_addf(&resp.body, "%d %s\n", conn->refusal, reason_text(conn->refusal));
	} else {
		call_handler(conn, &resp);
	}
	/* Behind a body that is not read comes nothing that we would read. */
	if (conn->is_body_left)
		strbuf_done(&conn->in);
	else
		strbuf_consume(&conn->in, conn->req.body_len);
	give_room(conn);
	count(conn, resp.status);
	result = send_response(conn, &resp);
	strbuf_done(&resp.body);
	return result;
}

/* Answer now, whatever is still to come of this request, and then end the connection. */
static int refuse_and_close(struct conn *conn, int status)
{
	conn->refusal = status;
	conn->route = NULL;
	conn->close_after = true;
	conn->is_body_left = true;
	return answer(conn);
}

/* ---- receiving ---- */

static void find_route(struct conn *conn)
{
	const struct http_server *server = conn->server;

	for (size_t i = 0; i < server->n_routes && !conn->route; i++) {
		const struct http_route *route = &server->routes[i];

		if (strcmp(route->path, conn->req.path) != 0)
			continue;
		conn->allowed |= route->methods;
		if (route->methods & conn->req.method)
			conn->route = route;
	}
	if (!conn->route)
		conn->refusal = conn->allowed ? 405 : 404;
}

static int go_on(struct conn *conn)
{
	unsigned char interim[LWS_PRE + 32];
	int len = snprintf((char *)interim + LWS_PRE, sizeof(interim) - LWS_PRE,
			   "HTTP/1.1 100 Continue\r\n\r\n");

	return lws_write(conn->wsi, interim + LWS_PRE, (size_t)len, LWS_WRITE_RAW) < 0 ? -1 : 0;
}

static void request_begin(struct conn *conn)
{
	conn->phase = CONN_HEAD;
	conn->req = (struct request){.path = "", .content_type = ""};
	conn->route = NULL;
	conn->refusal = 0;
	conn->allowed = 0;
	conn->close_after = false;
	conn->is_body_left = false;
	conn->started_us = clock_us();
	deadline_in(conn, request_ms(conn));
}

/* With a NUL behind it, so that it can be read as text. */
static char *head_copy(const char *data, size_t len)
{
	char *copy = mem_alloc(len + 1);

	memcpy(copy, data, len);
	copy[len] = '\0';
	return copy;
}

static int receive_head(struct conn *conn, size_t len)
{
	size_t body_max = HTTP_BODY_MAX;
	int status;

	conn->started_us = clock_us();
	conn->head = head_copy(conn->in.data, len);
	strbuf_consume(&conn->in, len);
	status = request_parse(conn->head, len, &conn->req);
	if (status != 0)
		return refuse_and_close(conn, status);
	find_route(conn);
	if (conn->route && conn->route->body_max > 0)
		body_max = conn->route->body_max;
	if (conn->req.body_len > body_max)
		return refuse_and_close(conn, conn->refusal ? conn->refusal : 413);
	if (!take_room(conn))
		return refuse_and_close(conn, 503);
	/* The client waits for our word before it sends the body; it has heard it when the answer is no. */
	if (conn->req.has_expect && conn->refusal)
		return refuse_and_close(conn, conn->refusal);
	conn->close_after = conn->req.wants_close;
	conn->phase = CONN_BODY;
	return conn->req.has_expect && conn->in.len < conn->req.body_len ? go_on(conn) : 0;
}

/* Do with `in` what can be done now. */
static int process(struct conn *conn)
{
	for (;;) {
		size_t len;

		if (conn->phase == CONN_IDLE) {
			strbuf_consume(&conn->in,
				       request_skip_blank(strbuf_str(&conn->in), conn->in.len));
			if (conn->in.len == 0) {
				strbuf_done(&conn->in);
				return 0;
			}
			request_begin(conn);
		} else if (conn->phase == CONN_HEAD) {
			len = request_head_len(conn->in.data, conn->in.len);
			if (len > HTTP_HEADERS_MAX || (len == 0 && conn->in.len > HTTP_HEADERS_MAX))
				return refuse_and_close(conn, 431);
			if (len == 0)
				return 0;
			if (receive_head(conn, len) < 0)
				return -1;
		} else if (conn->phase == CONN_BODY) {
			if (conn->in.len < conn->req.body_len)
				return 0;
			if (answer(conn) < 0)
				return -1;
		} else {
			return 0;
		}
	}
}

int exchange_start(struct conn *conn)
{
	/* For the TLS handshake and the first request. */
	deadline_in(conn, request_ms(conn));
	return 0;
}

int exchange_received(struct conn *conn, const void *data, size_t len)
{
	if (!conn->has_spoken) {
		conn->has_spoken = true;
		/* The one that libwebsockets has set for the handshake; ours go on. */
		lws_set_timeout(conn->wsi, NO_PENDING_TIMEOUT, 0);
	}
	if (conn->phase == CONN_DRAINING || conn->phase == CONN_ENDING)
		return 0;
	strbuf_add(&conn->in, data, len);
	return process(conn);
}

int exchange_writable(struct conn *conn)
{
	if (conn->phase != CONN_SENDING)
		return 0;
	return send_more(conn) < 0 ? -1 : process(conn);
}

int exchange_timeout(struct conn *conn)
{
	if (conn->phase == CONN_HEAD || conn->phase == CONN_BODY)
		return refuse_and_close(conn, 408);
	return -1;
}
