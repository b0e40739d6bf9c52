// SPDX-License-Identifier: Apache-2.0
/* The server over plain HTTP, with real sockets on loopback in one loop. */
#include <inttypes.h>
#include <stddef.h>

#include <uv.h>

#include "lib/base/clock.h"
#include "lib/http/server.h"
#include "tests/unit/http/client.h"

#define GET_HELLO "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
/* More than the kernel keeps for both ends (tcp_wmem and tcp_rmem of tcp(7)). */
#define BIG_SIZE (24 * 1024 * 1024)

/* The server's clock: it stands still unless a test moves it. */
static int64_t now_us = 1000000;

int64_t clock_us(void)
{
	return now_us;
}

struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct http_server *server;
	struct client *client;
	bool closed;
	int handled;
};

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static void hello(const struct http_request *req, struct http_response *resp, void *arg)
{
	struct fixture *f = arg;

	f->handled++;
	strbuf_adds(&resp->body, "hello\n");
}

/* Says what it was asked, so that tests can see what arrives. */
static void echo(const struct http_request *req, struct http_response *resp, void *arg)
{
	const char *a = http_query_get(req, "a");

	resp->content_type = HTTP_JSON;
	strbuf_addf(&resp->body,
		    "%s %s a=%s n=%zu type=%s body=%zu:", http_method_name(req->method), req->path,
		    a ? a : "-", req->n_query, req->content_type, req->body_len);
	strbuf_add(&resp->body, req->body, req->body_len);
}

static void big(const struct http_request *req, struct http_response *resp, void *arg)
{
	for (uint32_t i = 0; i < BIG_SIZE / sizeof(i); i++)
		strbuf_add(&resp->body, &i, sizeof(i));
}

static void close_server(const struct http_request *req, struct http_response *resp, void *arg)
{
	struct fixture *f = arg;

	http_server_close(f->server, on_closed, &f->closed);
	f->server = NULL;
	assert_false(f->closed);
}

/* What a gate was asked last, and answers at once, or later if that is 0. */
static struct {
	struct http_asked *asked;
	int status;
	char authorization[64];
} at_gate;

static void ask(const struct http_request *req, struct http_asked *asked, void *arg)
{
	snprintf(at_gate.authorization, sizeof(at_gate.authorization), "%s", req->authorization);
	assert_string_equal(req->body, "");
	if (at_gate.status)
		http_asked_answer(asked, at_gate.status);
	else
		at_gate.asked = asked;
}

static const struct http_gate gate = {.ask = ask};

static struct http_route routes[] = {
	{.path = "/gated", .methods = HTTP_GET | HTTP_POST, .handle = hello, .gate = &gate},
	{.path = "/hello", .methods = HTTP_GET, .handle = hello},
	{.path = "/echo", .methods = HTTP_GET | HTTP_POST | HTTP_PUT, .handle = echo},
	{.path = "/small", .methods = HTTP_POST, .body_max = 100, .handle = echo},
	{.path = "/large", .methods = HTTP_POST, .body_max = 8 * 1024 * 1024, .handle = echo},
	{.path = "/big", .methods = HTTP_GET, .handle = big},
	{.path = "/close", .methods = HTTP_GET, .handle = close_server},
};

#define GET_GATED "GET /gated HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer t\r\n\r\n"

static struct http_server_config config_for(struct fixture *f)
{
	for (size_t i = 0; i < ARRAY_LEN(routes); i++)
		routes[i].arg = f;
	return (struct http_server_config){
		.name = "test",
		.listen = "127.0.0.1:0",
		.routes = routes,
		.n_routes = ARRAY_LEN(routes),
		.metrics = f->metrics,
	};
}

static void fixture_start(struct fixture *f, const struct http_server_config *config)
{
	struct err err = {0};

	f->server = http_server_new(f->loop, config, &err);
	if (!f->server)
		fail_msg("%s", err.text);
	f->client = client_new(f->loop, http_server_port(f->server), NULL);
}

static void fixture_stop(struct fixture *f)
{
	if (f->server)
		http_server_close(f->server, on_closed, &f->closed);
	f->server = NULL;
	for (int i = 0; i < 1000 && !f->closed; i++)
		loop_turn(f->loop, false);
	assert_true(f->closed);
	f->closed = false;
	if (f->client)
		client_free(f->client);
	f->client = NULL;
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	struct http_server_config config;

	f->loop = loop_new();
	f->metrics = metrics_new();
	config = config_for(f);
	fixture_start(f, &config);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fixture_stop(f);
	metrics_free(f->metrics);
	loop_free(f->loop);
	mem_free(f);
	return 0;
}

/* Time passes, and the server notices: by its timer, or, as here, because somebody comes. */
static void pass(struct fixture *f, int64_t ms)
{
	struct client *c = client_from("127.0.0.99", f->loop, http_server_port(f->server), NULL);

	now_us += ms * 1000;
	settle(f->loop);
	client_free(c);
	settle(f->loop);
}

static void restart_with(struct fixture *f, const struct http_server_config *config)
{
	fixture_stop(f);
	fixture_start(f, config);
}

TEST_WITH(answers_get_with_length_type_and_date, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	assert_string_equal(strbuf_str(&f->client->body), "hello\n");
	assert_non_null(strstr(strbuf_str(&f->client->headers), "HTTP/1.1 200 OK\r\n"));
	assert_non_null(strstr(strbuf_str(&f->client->headers),
			       "\r\nContent-Type: text/plain; charset=utf-8\r\n"));
	assert_non_null(strstr(strbuf_str(&f->client->headers), "\r\nContent-Length: 6\r\n"));
	assert_non_null(strstr(strbuf_str(&f->client->headers), "\r\nDate: "));
}

TEST_WITH(answers_head_like_get_without_the_body, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client, "HEAD /hello HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	assert_non_null(strstr(strbuf_str(&f->client->headers), "\r\nContent-Length: 6\r\n"));
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	assert_string_equal(strbuf_str(&f->client->body), "hello\n");
	assert_true(metric_get(metric_counter(f->metrics, "http_requests_total", "",
					      "server,path,method,code"),
			       "test", "/hello", "HEAD", "200") == 1);
}

TEST_WITH(knows_paths_and_methods, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client, "GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	assert_int_equal(client_ask(f->client, "GET /hello/ HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	assert_int_equal(client_ask(f->client, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
	assert_int_equal(client_ask(f->client, "DELETE /echo HTTP/1.1\r\nHost: x\r\n\r\n"), 405);
	assert_non_null(
		strstr(strbuf_str(&f->client->headers), "\r\nAllow: GET, HEAD, POST, PUT\r\n"));
	assert_int_equal(client_ask(f->client, "OPTIONS /hello HTTP/1.1\r\nHost: x\r\n\r\n"), 405);
	assert_non_null(strstr(strbuf_str(&f->client->headers), "\r\nAllow: GET, HEAD\r\n"));
	assert_int_equal(
		client_ask(f->client,
			   "POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
		405);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	assert_int_equal(f->handled, 1);
}

TEST_WITH(decodes_path_and_query, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(
		client_ask(f->client,
			   "GET /%65cho?b=1&a=x%20y%26z&verbose HTTP/1.1\r\nHost: x\r\n\r\n"),
		200);
	assert_string_equal(strbuf_str(&f->client->body), "GET /echo a=x y&z n=3 type= body=0:");
	assert_int_equal(client_ask(f->client, "GET /echo?a HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	assert_string_equal(strbuf_str(&f->client->body), "GET /echo a= n=1 type= body=0:");
	assert_int_equal(client_ask(f->client, "GET /echo?ab=1&aa=2 HTTP/1.1\r\nHost: x\r\n\r\n"),
			 200);
	assert_string_equal(strbuf_str(&f->client->body), "GET /echo a=- n=2 type= body=0:");
}

TEST_WITH(refuses_a_query_with_too_many_parameters, setup, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf b = {0};

	strbuf_adds(&b, "GET /echo?a");
	for (int i = 1; i < HTTP_QUERY_MAX; i++)
		strbuf_adds(&b, "&x");
	strbuf_adds(&b, " HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(client_ask(f->client, b.data), 200);
	strbuf_reset(&b);
	strbuf_adds(&b, "GET /echo?a");
	for (int i = 0; i < HTTP_QUERY_MAX; i++)
		strbuf_adds(&b, "&x");
	strbuf_adds(&b, " HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(client_ask(f->client, b.data), 400);
}

TEST_WITH(hands_bodies_to_handlers, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(
		client_ask(f->client,
			   "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
			   "Content-Length: 5\r\n\r\n{\"a\":"),
		200);
	assert_string_equal(strbuf_str(&f->client->body),
			    "POST /echo a=- n=0 type=application/json body=5:{\"a\":");
	assert_int_equal(
		client_ask(f->client,
			   "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
		200);
	assert_string_equal(strbuf_str(&f->client->body), "PUT /echo a=- n=0 type= body=3:abc");
	assert_int_equal(
		client_ask(f->client,
			   "GET /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
		200);
	assert_string_equal(strbuf_str(&f->client->body), "GET /echo a=- n=0 type= body=3:abc");
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(takes_an_empty_body, setup, teardown)
{
	static const char *const asks[] = {
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
		"GET /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(asks); i++) {
		assert_int_equal(client_ask(f->client, asks[i]), 200);
		assert_non_null(strstr(strbuf_str(&f->client->body), "body=0:"));
	}
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(takes_a_large_body_in_pieces, setup, teardown)
{
	struct fixture *f = *state;
	const size_t size = 5 * 1024 * 1024;
	char *body = mem_alloc(size);

	memset(body, 'x', size);
	/* One after the other, more of them than are taken at a time. */
	for (size_t sent = 0; sent <= HTTP_LARGE_BODIES_MAX; sent += size) {
		assert_true(client_sends(
			f->client,
			"POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 5242880\r\n\r\n"));
		assert_true(client_send(f->client, body, size));
		assert_true(client_receive(f->client, false));
		assert_int_equal(f->client->status, 200);
		assert_non_null(strstr(strbuf_str(&f->client->body), "body=5242880:xxx"));
	}
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	mem_free(body);
}

TEST_WITH(answers_1000_requests_on_one_connection, setup, teardown)
{
	struct fixture *f = *state;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	assert_int_equal(f->handled, 1000);
}

TEST_WITH(answers_pipelined_requests_in_order, setup, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf b = {0};

	for (int i = 0; i < 100; i++)
		strbuf_addf(&b,
			    "GET /echo?a=%d HTTP/1.1\r\nHost: x\r\n\r\n"
			    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n%02d",
			    i, i);
	assert_true(client_send(f->client, b.data, b.len));
	for (int i = 0; i < 100; i++) {
		char want[64];

		snprintf(want, sizeof(want), "GET /echo a=%d n=1 type= body=0:", i);
		assert_true(client_receive(f->client, false));
		assert_string_equal(strbuf_str(&f->client->body), want);
		snprintf(want, sizeof(want), "POST /echo a=- n=0 type= body=2:%02d", i);
		assert_true(client_receive(f->client, false));
		assert_string_equal(strbuf_str(&f->client->body), want);
	}
}

TEST_WITH(answers_the_same_however_requests_are_cut, setup, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf b = {0};
	uint32_t random = 1;

	for (int i = 0; i < 50; i++)
		strbuf_addf(&b,
			    "\r\nGET /echo?a=%d HTTP/1.1\r\nHost: x\r\n\r\n"
			    "PUT /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\r\n%02d",
			    i, i);
	for (size_t at = 0, n; at < b.len; at += n) {
		random = random * 1664525 + 1013904223;
		n = 1 + (random >> 24) % 40;
		if (n > b.len - at)
			n = b.len - at;
		assert_true(client_send(f->client, b.data + at, n));
		loop_turn(f->loop, false);
		loop_turn(f->loop, false);
	}
	for (int i = 0; i < 50; i++) {
		char want[64];

		snprintf(want, sizeof(want), "GET /echo a=%d n=1 type= body=0:", i);
		assert_true(client_receive(f->client, false));
		assert_string_equal(strbuf_str(&f->client->body), want);
		snprintf(want, sizeof(want), "PUT /echo a=- n=0 type= body=4:\r\n%02d", i);
		assert_true(client_receive(f->client, false));
		assert_string_equal(strbuf_str(&f->client->body), want);
	}
}

TEST_WITH(refuses_a_body_that_is_too_large_and_says_so, setup, teardown)
{
	struct fixture *f = *state;
	const size_t size = 1024 * 1024;
	char *body = mem_zalloc(size);

	assert_true(client_sends(
		f->client, "POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n"));
	client_send(f->client, body, size); /* the server may end this early */
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->status, 413);
	assert_non_null(strstr(strbuf_str(&f->client->headers), "\r\nConnection: close\r\n"));
	client_hangs_up(f->client);
	mem_free(body);
}

TEST_WITH(ends_a_connection_that_goes_on_sending_a_refused_body, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(
		client_ask(
			f->client,
			"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"),
		413);
	assert_true(client_sees_end(f->client));
}

static const char announcement[] =
	"POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 8388608\r\n\r\n{";

/* It has taken the announcement and waits for the rest. */
static bool waits_for_body(struct client *c)
{
	return !client_has_ended(c) && c->in.len == 0;
}

TEST_WITH(large_bodies_share_what_room_there_is, setup, teardown)
{
	static const char *const from[] = {"127.0.0.10", "127.0.0.11"};
	struct fixture *f = *state;
	unsigned int port = http_server_port(f->server);
	struct client *holders[HTTP_LARGE_BODIES_MAX / 8388608];
	struct client *late = client_from("127.0.0.12", f->loop, port, NULL);

	assert_int_equal(ARRAY_LEN(holders), ARRAY_LEN(from));
	for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
		holders[i] = client_from(from[i], f->loop, port, NULL);
		assert_true(client_sends(holders[i], announcement));
		assert_true(waits_for_body(holders[i]));
	}
	assert_int_equal(client_ask(late, announcement), 503);
	client_hangs_up(late);
	client_free(late);
	/* Small ones need none of it. */
	assert_int_equal(client_ask(f->client, "POST /echo HTTP/1.1\r\nHost: x\r\n"
					       "Content-Length: 1\r\n\r\nx"),
			 200);
	/* One hangs up, the other is too slow: all of it is free again. */
	client_hangs_up(holders[0]);
	pass(f, HTTP_TIMEOUT_S * 1000);
	assert_true(client_receive(holders[1], false));
	assert_int_equal(holders[1]->status, 408);
	for (size_t i = 0; i < ARRAY_LEN(holders); i++) {
		struct client *next = client_from(from[i], f->loop, port, NULL);

		assert_true(client_sends(next, announcement));
		assert_true(waits_for_body(next));
		client_free(holders[i]);
		holders[i] = next;
	}
	for (size_t i = 0; i < ARRAY_LEN(holders); i++)
		client_free(holders[i]);
}

TEST_WITH(a_peer_has_one_large_body_at_a_time, setup, teardown)
{
	struct fixture *f = *state;
	unsigned int port = http_server_port(f->server);
	struct client *first = client_from("127.0.0.10", f->loop, port, NULL);
	struct client *second = client_from("127.0.0.10", f->loop, port, NULL);
	struct client *other = client_from("127.0.0.11", f->loop, port, NULL);

	assert_true(client_sends(first, announcement));
	assert_true(waits_for_body(first));
	assert_int_equal(client_ask(second, announcement), 503);
	assert_true(client_sends(other, announcement));
	assert_true(waits_for_body(other));
	client_free(first);
	client_free(second);
	client_free(other);
}

TEST_WITH(refuses_lengths_that_it_must_not_misread, setup, teardown)
{
	static const struct {
		const char *header;
		int status;
	} cases[] = {
		{"Content-Length: -1", 400},
		{"Content-Length: 1x", 400},
		{"Content-Length: 3\r\nContent-Length: 4", 400},
		{"Content-Length: 99999999999999999999999999999999999999", 400},
		{"Transfer-Encoding: chunked", 411},
		{"Transfer-Encoding: chunked\r\nContent-Length: 3", 400},
		{"Content-Length: 3\r\nExpect: a miracle", 417},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client *c = client_new(f->loop, http_server_port(f->server), NULL);
		auto_free char *ask = str_printf(
			"POST /echo HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
			cases[i].header);

		assert_int_equal(client_ask(c, ask), cases[i].status);
		assert_non_null(strstr(strbuf_str(&c->headers), "\r\nConnection: close\r\n"));
		client_hangs_up(c);
		client_free(c);
	}
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	assert_int_equal(f->handled, 1);
}

TEST_WITH(tells_a_client_that_waits_to_send_its_body, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client,
				    "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
				    "Expect: 100-continue\r\n\r\n"),
			 100);
	assert_int_equal(client_ask(f->client, "abc"), 200);
	assert_int_equal(client_ask(f->client,
				    "POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
				    "Expect: 100-continue\r\n\r\n"),
			 404);
	client_hangs_up(f->client);
}

TEST_WITH(closes_after_the_response_when_asked_to, setup, teardown)
{
	struct fixture *f = *state;
	struct client *old = client_new(f->loop, http_server_port(f->server), NULL);

	assert_int_equal(client_ask(f->client,
				    "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
			 200);
	assert_non_null(strstr(strbuf_str(&f->client->headers), "\r\nConnection: close\r\n"));
	assert_true(client_sees_end(f->client));
	assert_int_equal(client_ask(old, "GET /hello HTTP/1.0\r\n\r\n"), 200);
	assert_true(client_sees_end(old));
	client_free(old);
}

TEST_WITH(survives_what_is_not_http, setup, teardown)
{
	static const char *const junk[] = {
		"\r\n\r\n",
		"\n",
		"GET\r\n\r\n",
		"GET /hello\r\n\r\n",
		"GET  HTTP/1.1\r\n\r\n",
		"hello\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET /hello HTTP/1.1\r\nUpgrade: websocket\r\nConnection: "
		"Upgrade\r\nSec-WebSocket-Key: x\r\n"
		"Sec-WebSocket-Version: 13\r\nHost: x\r\n\r\n",
		"GET /hello HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: "
		"h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
		"Host: x\r\n\r\n",
		"GET /hello HTTP/1.1\r\nUpgrade: gopher\r\nHost: x\r\n\r\n",
		"CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\nabc",
		"GET /%zz HTTP/1.1\r\n\r\n",
		"GET /% HTTP/1.1\r\n\r\n",
		"GET /a&b&c HTTP/1.1\r\n\r\n",
		"GET /../../../etc HTTP/1.1\r\n\r\n",
		"GET /hello?%00=%00 HTTP/1.1\r\n\r\n",
		"GET /he%00llo HTTP/1.1\r\n\r\n",
		"GET /hello HTTP/1.1\r\nGET /hello HTTP/1.1\r\n\r\n",
		"GET /hello HTTP/1.1\r\nPOST /hello HTTP/1.1\r\n\r\n",
		"GET hello HTTP/1.1\r\n\r\n",
		"GET /hello HTTP/9.9\r\n: \r\n:::\r\n\r\n",
		"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"GET /hello HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n",
		"GET /hello HTTP/1.1\r\nHost : x\r\n\r\n",
		"GET /hello HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n",
		"GET /hello HTTP/2.0\r\nHost: x\r\n\r\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
		struct client *c = client_new(f->loop, http_server_port(f->server), NULL);

		client_sends(c, junk[i]);
		shutdown(c->fd, SHUT_WR);
		assert_true(client_sees_end(c));
		client_free(c);
	}
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(ignores_a_wish_to_upgrade, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(
		client_ask(
			f->client,
			"GET /hello HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\n"
			"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"),
		200);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(refuses_headers_beyond_the_limit, setup, teardown)
{
	struct fixture *f = *state;
	struct client *c = client_new(f->loop, http_server_port(f->server), NULL);
	auto_strbuf struct strbuf b = {0};

	strbuf_adds(&b, "GET /hello HTTP/1.1\r\nHost: x\r\nX-Long: ");
	while (b.len < HTTP_HEADERS_MAX - 100)
		strbuf_adds(&b, "aaaaaaaaaa");
	strbuf_adds(&b, "\r\n\r\n");
	assert_int_equal(client_ask(f->client, b.data), 200);

	b.len -= 4;
	for (int i = 0; i < 1000; i++)
		strbuf_adds(&b, "aaaaaaaaaa");
	strbuf_adds(&b, "\r\n\r\n");
	assert_int_equal(client_ask(c, b.data), 431);
	client_hangs_up(c);
	client_free(c);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(answers_408_when_the_headers_are_slow, setup, teardown)
{
	struct fixture *f = *state;

	assert_true(client_sends(f->client, "GET /hello HTTP/1.1\r\n"));
	settle(f->loop);
	pass(f, HTTP_TIMEOUT_S * 1000 - 1);
	/* A byte now and then does not help. */
	assert_true(client_sends(f->client, "X: y\r\n"));
	assert_false(client_has_ended(f->client));
	pass(f, 1);
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->status, 408);
	client_hangs_up(f->client);
}

TEST_WITH(ends_connections_that_never_ask, setup, teardown)
{
	struct fixture *f = *state;

	settle(f->loop);
	pass(f, HTTP_TIMEOUT_S * 1000 - 1);
	assert_false(client_has_ended(f->client));
	pass(f, 1);
	assert_true(client_has_ended(f->client));
}

TEST_WITH(answers_408_when_the_body_is_slow, setup, teardown)
{
	struct fixture *f = *state;

	assert_true(client_sends(f->client,
				 "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"));
	settle(f->loop);
	pass(f, HTTP_TIMEOUT_S * 1000 - 1);
	assert_true(client_sends(f->client, "x"));
	assert_false(client_has_ended(f->client));
	pass(f, 1);
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->status, 408);
	client_hangs_up(f->client);
}

TEST_WITH(keeps_an_idle_connection_beyond_the_request_timeout, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	pass(f, HTTP_IDLE_S * 1000 - 1);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	pass(f, HTTP_IDLE_S * 1000 - 1);
	assert_false(client_has_ended(f->client));
	pass(f, 1);
	assert_true(client_has_ended(f->client));
}

TEST_WITH(sends_a_large_response_to_a_reader_that_lets_it_wait, setup, teardown)
{
	struct fixture *f = *state;

	assert_true(client_sends(f->client, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n" GET_HELLO));
	settle(f->loop);
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->body.len, BIG_SIZE);
	for (uint32_t i = 0; i < BIG_SIZE / sizeof(i); i++)
		if (memcmp(f->client->body.data + i * sizeof(i), &i, sizeof(i)) != 0)
			fail_msg("wrong at %" PRIu32, i);
	assert_true(client_receive(f->client, false));
	assert_string_equal(strbuf_str(&f->client->body), "hello\n");
}

TEST_WITH(answers_a_client_that_has_ended_its_side, setup, teardown)
{
	static const struct {
		const char *request;
		size_t len;
	} cases[] = {
		{GET_HELLO, 6},
		{"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx", 33},
		{"GET /big HTTP/1.1\r\nHost: x\r\n\r\n", BIG_SIZE},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct client *c = client_new(f->loop, http_server_port(f->server), NULL);
		size_t len = strlen(cases[i].request);

		settle(f->loop);
		/* Both are there when the server looks. */
		assert_int_equal(send(c->fd, cases[i].request, len, MSG_NOSIGNAL), (ssize_t)len);
		shutdown(c->fd, SHUT_WR);
		if (!client_receive(c, false) || c->body.len != cases[i].len)
			fail_msg("case %zu: %d with %zu bytes", i, c->status, c->body.len);
		assert_true(client_sees_end(c));
		client_free(c);
	}
}

TEST_WITH(does_not_spin_for_a_reader_that_never_reads, setup, teardown)
{
	struct fixture *f = *state;
	struct pollfd loop = {.fd = uv_backend_fd(loop_uv(f->loop)), .events = POLLIN};
	int64_t end = machine_ms() + PATIENCE_MS;

	assert_true(client_sends(f->client, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n" GET_HELLO));
	/* Once the kernel's buffers are full, the loop has nothing to do, and waits. */
	do {
		assert_true(machine_ms() < end);
		settle(f->loop);
	} while (poll(&loop, 1, 0) > 0);
	assert_int_not_equal(uv_backend_timeout(loop_uv(f->loop)), 0);
	/* And it does not hold the connection for ever. */
	pass(f, HTTP_TIMEOUT_S * 1000);
	assert_true(client_sees_end(f->client));
	assert_true(f->client->in.len < BIG_SIZE);
}

TEST_WITH(idle_connections_make_room_the_oldest_first, setup, teardown)
{
	static const char *const from[] = {"127.0.0.10", "127.0.0.11", "127.0.0.12", "127.0.0.13"};
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	struct client *clients[ARRAY_LEN(from)], *late;
	unsigned int port;

	config.connections_max = ARRAY_LEN(from);
	restart_with(f, &config);
	client_free(take_ptr(f->client));
	port = http_server_port(f->server);
	for (size_t i = 0; i < ARRAY_LEN(from); i++) {
		clients[i] = client_from(from[i], f->loop, port, NULL);
		assert_int_equal(client_ask(clients[i], GET_HELLO), 200);
		now_us += 1000;
	}
	/* None has been idle for a second: the next one waits until one has. */
	late = client_new(f->loop, port, NULL);
	assert_true(client_sends(late, GET_HELLO));
	assert_false(client_has_ended(late));
	assert_int_equal(late->in.len, 0);
	now_us += 1000000 - ARRAY_LEN(from) * 1000;
	assert_true(client_receive(late, false));
	assert_int_equal(late->status, 200);
	assert_true(client_has_ended(clients[0]));
	for (size_t i = 1; i < ARRAY_LEN(from); i++)
		assert_int_equal(client_ask(clients[i], GET_HELLO), 200);
	for (size_t i = 0; i < ARRAY_LEN(from); i++)
		client_free(clients[i]);
	client_free(late);
}

TEST_WITH(silent_connections_give_way_at_once, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	struct client *silent[64], *half;
	unsigned int port;

	config.connections_max = 16;
	restart_with(f, &config);
	port = http_server_port(f->server);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	half = client_new(f->loop, port, NULL);
	assert_true(client_sends(half, "GET /hello HTT"));
	for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
		silent[i] = client_new(f->loop, port, NULL);
		settle(f->loop);
	}
	/* No time has passed. Who has spoken stays, half a head is not enough. */
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	assert_true(client_has_ended(half));
	assert_true(client_has_ended(silent[0]));
	assert_int_equal(client_ask(silent[ARRAY_LEN(silent) - 1], GET_HELLO), 200);
	for (size_t i = 0; i < ARRAY_LEN(silent); i++)
		client_free(silent[i]);
	client_free(half);
}

TEST_WITH(clients_that_are_slow_on_purpose_make_room, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	struct client *taking, *waiting;
	unsigned int port;

	config.connections_max = 2;
	restart_with(f, &config);
	port = http_server_port(f->server);
	taking = client_new(f->loop, port, NULL);
	assert_true(client_sends(f->client, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: "
					    "9\r\n\r\n"));
	settle(f->loop);
	assert_true(client_sends(taking, "GET /big HTTP/1.1\r\nHost: x\r\n\r\n"));
	settle(f->loop);
	now_us += 3000000;
	waiting = client_from("127.0.0.11", f->loop, port, NULL);
	assert_int_equal(client_ask(waiting, GET_HELLO), 200);
	client_free(taking);
	client_free(waiting);
}

TEST_WITH(a_connection_that_ends_lets_a_waiting_one_in, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	struct client *waiting;

	config.connections_max = 1;
	restart_with(f, &config);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	waiting = client_new(f->loop, http_server_port(f->server), NULL);
	assert_true(client_sends(waiting, GET_HELLO));
	assert_false(client_has_ended(waiting));
	assert_int_equal(waiting->in.len, 0);
	client_free(take_ptr(f->client));
	assert_true(client_receive(waiting, false));
	assert_int_equal(waiting->status, 200);
	client_free(waiting);
}

TEST_WITH(closes_with_connections_in_every_state, setup, teardown)
{
	struct fixture *f = *state;
	static const char *const states[] = {
		"",
		"GET /hel",
		GET_HELLO,
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nabc",
		"GET /big HTTP/1.1\r\nHost: x\r\n\r\n",
		"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
	};
	struct client *clients[ARRAY_LEN(states)];
	struct client *late;
	unsigned int port = http_server_port(f->server);

	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		clients[i] = client_new(f->loop, port, NULL);
		client_sends(clients[i], states[i]);
	}
	settle(f->loop);
	late = client_new(f->loop, port, NULL);
	http_server_close(f->server, on_closed, &f->closed);
	f->server = NULL;
	assert_false(f->closed);
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		assert_true(client_sees_end(clients[i]));
	assert_true(client_sees_end(late));
	assert_true(f->closed);
	client_free(late);
	for (size_t i = 0; i < ARRAY_LEN(states); i++)
		client_free(clients[i]);
}

TEST_WITH(closes_from_inside_a_handler, setup, teardown)
{
	struct fixture *f = *state;

	client_sends(f->client, "GET /close HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_true(client_sees_end(f->client));
	assert_true(f->closed);
}

TEST_WITH(closes_right_after_the_start, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);

	for (int i = 0; i < 20; i++) {
		restart_with(f, &config);
	}
}

TEST_WITH(two_servers_share_a_loop, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	struct http_server *second = http_server_new(f->loop, &config, NULL);
	struct client *c = client_new(f->loop, http_server_port(second), NULL);
	bool closed = false;

	assert_int_not_equal(http_server_port(second), http_server_port(f->server));
	for (int i = 0; i < 10; i++) {
		assert_int_equal(client_ask(c, GET_HELLO), 200);
		assert_int_equal(client_ask(f->client, GET_HELLO), 200);
	}
	http_server_close(second, on_closed, &closed);
	assert_true(client_sees_end(c));
	client_free(c);
	assert_true(closed);
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(says_why_it_cannot_listen, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);
	auto_free char *taken = str_printf("127.0.0.1:%u", http_server_port(f->server));
	auto_free char *want = str_printf("cannot listen on %s: Address already in use", taken);
	struct err err = {0};

	config.listen = taken;
	assert_null(http_server_new(f->loop, &config, &err));
	assert_int_equal(err.class, ERR_HOST);
	assert_string_equal(err.reason, "ListenFailed");
	assert_string_equal(err.text, want);
}

TEST_WITH(says_what_is_wrong_with_an_address, setup, teardown)
{
	static const struct {
		const char *listen, *why;
	} cases[] = {
		{"", "there is no port"},
		{"8080", "there is no port"},
		{"127.0.0.1:", "the port is not a number from 0 to 65535"},
		{"127.0.0.1:65536", "the port is not a number from 0 to 65535"},
		{"127.0.0.1:-1", "the port is not a number from 0 to 65535"},
		{"localhost:80", "the host is not an IP address"},
		{"::1:80", "the host is not an IP address"},
		{"[::1:80", "the host is not an IP address"},
		{"[]:80", "what is in brackets is not an IPv6 address"},
		{"[127.0.0.1]:80", "what is in brackets is not an IPv6 address"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80",
		 "the host is not an IP address"},
	};
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		auto_free char *start = str_printf("listen address \"%s\": %s; write ",
						   cases[i].listen, cases[i].why);

		config.listen = cases[i].listen;
		assert_null(http_server_new(f->loop, &config, &err));
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadAddress");
		if (!str_starts(err.text, start))
			fail_msg("%s", err.text);
	}
}

TEST_WITH(listens_on_all_addresses_without_a_host, setup, teardown)
{
	struct fixture *f = *state;
	struct http_server_config config = config_for(f);

	config.listen = ":0";
	restart_with(f, &config); /* the client comes over IPv4 */
	assert_int_equal(client_ask(f->client, GET_HELLO), 200);
}

TEST_WITH(counts_requests_by_path_and_code, setup, teardown)
{
	struct fixture *f = *state;
	auto_strbuf struct strbuf text = {0};

	client_ask(f->client, GET_HELLO);
	client_ask(f->client, GET_HELLO);
	client_ask(f->client, "GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
	client_ask(f->client, "GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
	metrics_render(f->metrics, &text);
	assert_non_null(strstr(text.data,
			       "http_requests_total{server=\"test\",path=\"/hello\",method=\"GET\","
			       "code=\"200\"} 2\n"));
	assert_non_null(strstr(text.data,
			       "http_requests_total{server=\"test\",path=\"other\",method=\"GET\","
			       "code=\"404\"} 2\n"));
	assert_non_null(
		strstr(text.data,
		       "http_request_duration_seconds_count{server=\"test\",path=\"/hello\"} 2\n"));
}

/* ---- gates ----------------------------------------------------------------------------------- */

TEST_WITH(a_gate_decides_before_the_handler, setup, teardown)
{
	struct fixture *f = *state;

	at_gate.status = 401;
	assert_int_equal(client_ask(f->client, GET_GATED), 401);
	assert_string_equal(at_gate.authorization, "Bearer t");
	assert_non_null(strstr(f->client->headers.data, "WWW-Authenticate: Bearer\r\n"));
	at_gate.status = 403;
	assert_int_equal(client_ask(f->client, "POST /gated HTTP/1.1\r\nHost: x\r\n"
					       "Content-Length: 3\r\n\r\nabc"),
			 403);
	assert_string_equal(at_gate.authorization, "");
	assert_int_equal(f->handled, 0);
	at_gate.status = 200;
	assert_int_equal(client_ask(f->client, GET_GATED), 200);
	assert_int_equal(f->handled, 1);
	assert_float_equal(metric_get(metric_counter(f->metrics, "http_requests_total", "",
						     "server,path,method,code"),
				      "test", "/gated", "GET", "401"),
			   1, 0);
}

TEST_WITH(a_gate_may_answer_later, setup, teardown)
{
	struct fixture *f = *state;

	at_gate.status = 0;
	/* What was sent ahead waits behind it. */
	assert_true(client_sends(f->client, GET_GATED GET_HELLO));
	settle(f->loop);
	assert_non_null(at_gate.asked);
	assert_int_equal(f->handled, 0);
	http_asked_answer(take_ptr(at_gate.asked), 503);
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->status, 503);
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->status, 200);
	assert_int_equal(f->handled, 1);
}

TEST_WITH(a_connection_may_be_gone_when_its_gate_answers, setup, teardown)
{
	struct fixture *f = *state;
	struct http_asked *first = NULL;

	at_gate.status = 0;
	assert_true(client_sends(f->client, GET_GATED));
	settle(f->loop);
	first = take_ptr(at_gate.asked);
	assert_non_null(first);
	http_server_close(f->server, on_closed, &f->closed);
	f->server = NULL;
	settle(f->loop);
	assert_true(f->closed);
	http_asked_answer(first, 200);
	assert_int_equal(f->handled, 0);
}
