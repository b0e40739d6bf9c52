// SPDX-License-Identifier: Apache-2.0
/*
 * One struct per connection: bytes in until a request is complete, its reply after a delay, the
 * next request.
 */
#include "tests/fakes/http_script.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/queue.h>
#include <uv.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

struct rule {
	TAILQ_ENTRY(rule) link;
	char *start, *headers, *body;
	struct http_reply reply;
	bool used;
};

struct request {
	TAILQ_ENTRY(request) link;
	char *text;
};

struct connection {
	TAILQ_ENTRY(connection) link;
	uv_tcp_t tcp;
	struct http_script *script;
	struct timer *delay;
	struct strbuf in;
	struct rule *rule; /* being answered */
	bool streaming, closing;
};

TAILQ_HEAD(rule_list, rule);
TAILQ_HEAD(request_list, request);
TAILQ_HEAD(connection_list, connection);

struct http_script {
	struct loop *loop;
	uv_tcp_t tcp;
	uint16_t port;
	struct rule_list rules;
	struct request_list requests;
	struct connection_list connections;
	size_t unexpected;
	bool streams_lists;
	bool closing;
};

static struct rule no_rule = {.start = (char *)"", .reply = {.status = 418, .always = true}};
static struct rule no_streams = {
	.start = (char *)"",
	.reply = {.status = 422, .always = true},
	.body = (char *)"{\"kind\":\"Status\",\"code\":422,\"reason\":\"Invalid\",\"message\":"
			"\"resourceVersionMatch is forbidden for watch\"}",
};

/* ---- connections ----------------------------------------------------------------------------- */

static void free_if_closed(struct http_script *script)
{
	if (script->closing && TAILQ_EMPTY(&script->connections) && !script->tcp.data)
		mem_free(script);
}

static void on_connection_closed(uv_handle_t *handle)
{
	struct connection *c = handle->data;
	struct http_script *script = c->script;

	TAILQ_REMOVE(&script->connections, c, link);
	timer_free(c->delay);
	strbuf_done(&c->in);
	mem_free(c);
	free_if_closed(script);
}

static void close_connection(struct connection *c)
{
	if (c->closing)
		return;
	c->closing = true;
	timer_stop(c->delay);
	uv_close((uv_handle_t *)&c->tcp, on_connection_closed);
}

struct writing {
	uv_write_t uv;
	bool then_close;
	char *bytes;
};

static void on_sent(uv_write_t *uv, int status)
{
	struct writing *w = (struct writing *)uv;

	if (w->then_close)
		close_connection(uv->handle->data);
	mem_free(w->bytes);
	mem_free(w);
}

static void write_bytes(struct connection *c, char *bytes, size_t len, bool then_close)
{
	struct writing *w = mem_new(struct writing);
	uv_buf_t buf = uv_buf_init(bytes, (unsigned int)len);

	w->bytes = bytes;
	w->then_close = then_close;
	if (uv_write(&w->uv, (uv_stream_t *)&c->tcp, &buf, 1, on_sent) == 0)
		return;
	mem_free(bytes);
	mem_free(w);
}

static void add_chunk(struct strbuf *out, const char *bytes)
{
	if (!str_empty(bytes))
		strbuf_addf(out, "%zx\r\n%s\r\n", strlen(bytes), bytes);
}

static void serve(struct connection *c);

static void answer(void *arg)
{
	struct connection *c = arg;
	const struct rule *rule = c->rule;
	const struct http_reply *reply = &rule->reply;
	const char *body = rule->body ? rule->body : "";
	struct strbuf out = {0};
	size_t len = 0;

	c->rule = NULL;
	if (reply->status < 0) {
		if (reply->after == HTTP_CUT)
			close_connection(c);
		return;
	}
	strbuf_addf(&out, "HTTP/1.1 %d Scripted\r\nContent-Type: application/json\r\n%s",
		    reply->status ? reply->status : 200, rule->headers ? rule->headers : "");
	if (reply->after == HTTP_KEEP) {
		strbuf_addf(&out, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
	} else {
		strbuf_adds(&out, "Transfer-Encoding: chunked\r\n\r\n");
		add_chunk(&out, body);
		c->streaming = reply->after == HTTP_OPEN;
	}
	len = out.len;
	write_bytes(c, strbuf_take(&out), len, reply->after == HTTP_CUT);
	if (reply->after == HTTP_KEEP)
		serve(c);
}

static struct rule *rule_for(struct http_script *script, const char *request)
{
	struct rule *rule = NULL;

	TAILQ_FOREACH(rule, &script->rules, link)
	if ((!rule->used || rule->reply.always) && str_starts(request, rule->start))
		break;
	if (!rule) {
		script->unexpected++;
		return &no_rule;
	}
	rule->used = true;
	return rule;
}

/* Length of the first request in the buffer; 0 when it is not complete. */
static size_t request_len(const struct strbuf *in)
{
	const char *text = strbuf_str(in);
	const char *end = strstr(text, "\r\n\r\n");
	const char *length = strcasestr(text, "\r\ncontent-length:");
	size_t total = 0;

	if (!end)
		return 0;
	total = (size_t)(end - text) + 4;
	if (length && length < end)
		total += strtoul(length + strlen("\r\ncontent-length:"), NULL, 10);
	return total <= in->len ? total : 0;
}

/* The first request in the buffer is put among those that came. Returns its rule. */
static struct rule *take_request(struct connection *c, size_t len)
{
	struct request *request = mem_new(struct request);

	request->text = str_ndup(c->in.data, len);
	strbuf_consume(&c->in, len);
	if (!c->script->streams_lists && strstr(request->text, "&sendInitialEvents=true")) {
		mem_free(request->text);
		mem_free(request);
		return &no_streams;
	}
	TAILQ_INSERT_TAIL(&c->script->requests, request, link);
	return rule_for(c->script, request->text);
}

static void serve(struct connection *c)
{
	size_t len = request_len(&c->in);

	if (len == 0 || c->rule || c->streaming || c->closing)
		return;
	c->rule = take_request(c, len);
	if (c->rule->reply.seen)
		c->rule->reply.seen(c->rule->reply.arg);
	timer_start(c->delay, c->rule->reply.delay_ms);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct connection *c = handle->data;

	strbuf_reserve(&c->in, 65536);
	*buf = uv_buf_init(c->in.data + c->in.len, 65535);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct connection *c = stream->data;

	if (n < 0) {
		close_connection(c);
		return;
	}
	c->in.len += (size_t)n;
	c->in.data[c->in.len] = '\0';
	serve(c);
}

static void on_connect(uv_stream_t *server, int status)
{
	struct http_script *script = server->data;
	struct connection *c = mem_new(struct connection);

	c->script = script;
	c->delay = timer_new(script->loop, answer, c);
	uv_tcp_init(loop_uv(script->loop), &c->tcp);
	c->tcp.data = c;
	TAILQ_INSERT_TAIL(&script->connections, c, link);
	if (status < 0 || uv_accept(server, (uv_stream_t *)&c->tcp) < 0 ||
	    uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read) < 0)
		close_connection(c);
	/* On a connection that is used again Nagle waits 40 ms for an ACK: real ones, while virtual
	   time passes. */
	uv_tcp_nodelay(&c->tcp, 1);
}

/* ---- the script ------------------------------------------------------------------------------ */

struct http_script *http_script_new(struct loop *loop)
{
	struct http_script *script = mem_new(struct http_script);
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int len = sizeof(address);
	int failed = 0;

	TAILQ_INIT(&script->rules);
	TAILQ_INIT(&script->requests);
	TAILQ_INIT(&script->connections);
	script->loop = loop;
	failed |= uv_tcp_init(loop_uv(loop), &script->tcp);
	script->tcp.data = script;
	failed |= uv_tcp_bind(&script->tcp, (struct sockaddr *)&address, 0);
	failed |= uv_listen((uv_stream_t *)&script->tcp, 64, on_connect);
	failed |= uv_tcp_getsockname(&script->tcp, (struct sockaddr *)&address, &len);
	assert(!failed);
	script->port = ntohs(address.sin_port);
	return script;
}

static void on_closed(uv_handle_t *handle)
{
	struct http_script *script = handle->data;

	handle->data = NULL;
	free_if_closed(script);
}

void http_script_free(struct http_script *script)
{
	struct rule *rule = NULL;
	struct request *request = NULL;

	http_script_drop(script);
	while ((rule = TAILQ_FIRST(&script->rules))) {
		TAILQ_REMOVE(&script->rules, rule, link);
		mem_free(rule->start);
		mem_free(rule->headers);
		mem_free(rule->body);
		mem_free(rule);
	}
	while ((request = TAILQ_FIRST(&script->requests))) {
		TAILQ_REMOVE(&script->requests, request, link);
		mem_free(request->text);
		mem_free(request);
	}
	script->closing = true;
	uv_close((uv_handle_t *)&script->tcp, on_closed);
}

uint16_t http_script_port(const struct http_script *script)
{
	return script->port;
}

void http_script_add(struct http_script *script, const char *start, const struct http_reply *reply)
{
	struct rule *rule = mem_new(struct rule);

	rule->start = str_dup(start);
	rule->headers = str_dup(reply->headers);
	rule->body = str_dup(reply->body);
	rule->reply = *reply;
	TAILQ_INSERT_TAIL(&script->rules, rule, link);
}

void http_script_stream_lists(struct http_script *script)
{
	script->streams_lists = true;
}

void http_script_push(struct http_script *script, const char *bytes)
{
	struct connection *c = NULL;

	TAILQ_FOREACH(c, &script->connections, link)
	{
		struct strbuf out = {0};
		size_t len = 0;

		if (!c->streaming || c->closing)
			continue;
		add_chunk(&out, bytes);
		len = out.len;
		write_bytes(c, strbuf_take(&out), len, false);
	}
}

void http_script_drop(struct http_script *script)
{
	struct connection *c = NULL;

	TAILQ_FOREACH(c, &script->connections, link)
	close_connection(c);
}

const char *http_script_request(const struct http_script *script, size_t i)
{
	const struct request *request = TAILQ_FIRST(&script->requests);

	for (; request && i > 0; i--)
		request = TAILQ_NEXT(request, link);
	return request ? request->text : NULL;
}

size_t http_script_count(const struct http_script *script, const char *start)
{
	const struct request *request = NULL;
	size_t n = 0;

	TAILQ_FOREACH(request, &script->requests, link)
	n += str_starts(request->text, start);
	return n;
}

size_t http_script_unused(const struct http_script *script)
{
	const struct rule *rule = NULL;
	size_t n = 0;

	TAILQ_FOREACH(rule, &script->rules, link)
	n += !rule->used && !rule->reply.always;
	return n;
}

size_t http_script_unexpected(const struct http_script *script)
{
	return script->unexpected;
}
