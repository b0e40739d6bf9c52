// SPDX-License-Identifier: Apache-2.0
/*
 * Responses that go on and answers that come later, over plain HTTP with real sockets on loopback.
 */
#include <stddef.h>

#include <uv.h>

#include "lib/base/clock.h"
#include "lib/http/server.h"
#include "tests/unit/http/client.h"

#define GET_COUNT "GET /count HTTP/1.1\r\nHost: x\r\n\r\n"
#define GET_LATER "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
/* One fill of the endless source. */
#define FILL_SIZE 65536

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
	struct http_stream *stream;
	struct http_later *later;
	const char *next; /* what the source gives when it is asked */
	bool is_last, is_endless;
	int fills, ends;
	bool closed;
};

static bool on_fill(struct strbuf *out, void *arg)
{
	struct fixture *f = arg;

	f->fills++;
	if (f->is_endless) {
		strbuf_reserve(out, FILL_SIZE);
		memset(out->data + out->len, 'x', FILL_SIZE);
		out->len += FILL_SIZE;
		return true;
	}
	strbuf_adds(out, f->next);
	f->next = "";
	return !f->is_last;
}

static void on_ended(void *arg)
{
	struct fixture *f = arg;

	f->stream = NULL;
	f->ends++;
}

static const struct http_source source = {.fill = on_fill, .ended = on_ended};

static void count(const struct http_request *req, struct http_response *resp, void *arg)
{
	struct fixture *f = arg;

	resp->content_type = HTTP_JSON;
	f->stream = http_response_stream(resp, &source, f);
}

static void later(const struct http_request *req, struct http_response *resp, void *arg)
{
	struct fixture *f = arg;

	strbuf_adds(&resp->body, "dropped");
	f->later = http_response_later(resp);
}

static void below(const struct http_request *req, struct http_response *resp, void *arg)
{
	strbuf_addf(&resp->body, "%s %s %s", req->path, req->accept, req->user_agent);
}

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	static struct http_route routes[3];
	struct err err = {0};

	routes[0] = (struct http_route){
		.path = "/count", .methods = HTTP_GET, .handle = count, .arg = f};
	routes[1] = (struct http_route){
		.path = "/later", .methods = HTTP_GET, .handle = later, .arg = f};
	routes[2] = (struct http_route){
		.path = "/below/", .is_prefix = true, .methods = HTTP_GET, .handle = below};
	now_us = 1000000;
	f->next = "";
	f->loop = loop_new();
	f->metrics = metrics_new();
	f->server = http_server_new(f->loop,
				    &(struct http_server_config){
					    .name = "test",
					    .listen = "127.0.0.1:0",
					    .routes = routes,
					    .n_routes = ARRAY_LEN(routes),
					    .connections_max = 8,
					    .metrics = f->metrics,
				    },
				    &err);
	assert_non_null(f->server);
	f->client = client_new(f->loop, http_server_port(f->server), NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	client_free(f->client);
	http_server_close(f->server, on_closed, &f->closed);
	while (!f->closed)
		loop_turn(f->loop, true);
	assert_null(f->stream);
	metrics_free(f->metrics);
	loop_free(f->loop);
	mem_free(f);
	return 0;
}

/* The head of a streamed answer has come: drop it. */
static void receive_head(struct client *c)
{
	const char *end;

	while (!(end = strstr(strbuf_str(&c->in), "\r\n\r\n"))) {
		assert_false(c->ended);
		read_some(c);
	}
	strbuf_reset(&c->headers);
	strbuf_add(&c->headers, c->in.data, (size_t)(end - c->in.data) + 4);
	strbuf_consume(&c->in, c->headers.len);
}

static void expect(struct client *c, const char *text)
{
	while (c->in.len < strlen(text)) {
		assert_false(c->ended);
		read_some(c);
	}
	assert_int_equal(strncmp(c->in.data, text, strlen(text)), 0);
	strbuf_consume(&c->in, strlen(text));
}

TEST_WITH(sends_what_the_source_gives_in_chunks, setup, teardown)
{
	struct fixture *f = *state;

	f->next = "first";
	client_sends(f->client, GET_COUNT);
	receive_head(f->client);
	assert_non_null(strstr(strbuf_str(&f->client->headers), "Transfer-Encoding: chunked\r\n"));
	assert_null(strstr(strbuf_str(&f->client->headers), "Content-Length"));
	expect(f->client, "00000005\r\nfirst\r\n");
	f->next = "second one";
	http_stream_wake(f->stream);
	expect(f->client, "0000000a\r\nsecond one\r\n");
	settle(f->loop);
	assert_int_equal(f->client->in.len, 0);
}

TEST_WITH(uses_the_connection_again_after_the_last_chunk, setup, teardown)
{
	struct fixture *f = *state;

	f->next = "all";
	f->is_last = true;
	client_sends(f->client, GET_COUNT GET_COUNT);
	receive_head(f->client);
	expect(f->client, "00000003\r\nall\r\n0\r\n\r\n");
	receive_head(f->client);
	expect(f->client, "0\r\n\r\n");
	assert_int_equal(f->ends, 2);
	assert_int_equal(client_ask(f->client, "GET /below/x HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

TEST_WITH(gives_old_clients_a_body_until_the_end, setup, teardown)
{
	struct fixture *f = *state;

	f->next = "all";
	f->is_last = true;
	client_sends(f->client, "GET /count HTTP/1.0\r\n\r\n");
	assert_true(client_sees_end(f->client));
	receive_head(f->client);
	assert_null(strstr(strbuf_str(&f->client->headers), "chunked"));
	assert_string_equal(strbuf_str(&f->client->in), "all");
}

TEST_WITH(asks_no_source_for_a_head, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client, "HEAD /count HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	assert_int_equal(f->fills, 0);
	assert_int_equal(f->ends, 1);
}

TEST_WITH(asks_a_source_only_while_the_client_takes_it, setup, teardown)
{
	struct fixture *f = *state;
	int fills;

	f->is_endless = true;
	client_sends(f->client, GET_COUNT);
	settle(f->loop);
	fills = f->fills;
	for (int i = 0; i < 100; i++) {
		http_stream_wake(f->stream);
		settle(f->loop);
	}
	assert_int_equal(f->fills, fills);
	/* Kernels keep some megabytes (tcp_wmem and tcp_rmem of tcp(7)). */
	for (int64_t taken = 0; f->fills == fills; taken += (int64_t)f->client->in.len) {
		assert_true(taken < 64 * 1024 * 1024);
		strbuf_reset(&f->client->in);
		read_some(f->client);
	}
	assert_int_equal(f->ends, 0);
}

TEST_WITH(cuts_off_a_client_that_takes_nothing, setup, teardown)
{
	struct fixture *f = *state;

	f->is_endless = true;
	client_sends(f->client, GET_COUNT);
	settle(f->loop);
	assert_int_equal(f->ends, 0);
	now_us += (HTTP_TIMEOUT_S + 1) * 1000000LL;
	/* The next newcomer makes the server look at its clock. */
	client_free(f->client);
	f->client = client_new(f->loop, http_server_port(f->server), NULL);
	settle(f->loop);
	assert_int_equal(f->ends, 1);
}

TEST_WITH(keeps_a_stream_that_has_nothing_to_send, setup, teardown)
{
	struct fixture *f = *state;
	struct client *other;

	client_sends(f->client, GET_COUNT);
	receive_head(f->client);
	now_us += 24 * 3600 * 1000000LL;
	other = client_new(f->loop, http_server_port(f->server), NULL);
	assert_int_equal(client_ask(other, "GET /below/ HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
	client_free(other);
	f->next = "still here";
	http_stream_wake(f->stream);
	expect(f->client, "0000000a\r\nstill here\r\n");
}

TEST_WITH(ends_a_stream_whose_client_goes, setup, teardown)
{
	struct fixture *f = *state;

	client_sends(f->client, GET_COUNT);
	receive_head(f->client);
	client_hangs_up(f->client);
	assert_int_equal(f->ends, 1);
}

TEST_WITH(ends_a_stream_whose_client_sends_on_and_on, setup, teardown)
{
	struct fixture *f = *state;
	char much[HTTP_HEADERS_MAX + 1];

	memset(much, 'x', sizeof(much));
	client_sends(f->client, GET_COUNT);
	receive_head(f->client);
	client_send(f->client, much, sizeof(much));
	settle(f->loop);
	assert_int_equal(f->ends, 1);
}

TEST_WITH(answers_later, setup, teardown)
{
	struct http_response resp = {.status = 409, .content_type = HTTP_JSON};
	struct fixture *f = *state;

	client_sends(f->client, GET_LATER);
	settle(f->loop);
	strbuf_adds(&resp.body, "at last");
	http_later_answer(f->later, &resp);
	assert_true(client_receive(f->client, false));
	assert_int_equal(f->client->status, 409);
	assert_string_equal(strbuf_str(&f->client->body), "at last");
	assert_int_equal(client_ask(f->client, "GET /below/ HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

TEST_WITH(answers_nobody_when_the_connection_has_gone, setup, teardown)
{
	struct http_response resp = {.status = 200, .content_type = HTTP_JSON};
	struct fixture *f = *state;

	client_sends(f->client, GET_LATER);
	settle(f->loop);
	now_us += (HTTP_TIMEOUT_S + 1) * 1000000LL;
	client_free(f->client);
	f->client = client_new(f->loop, http_server_port(f->server), NULL);
	settle(f->loop);
	strbuf_adds(&resp.body, "at last");
	http_later_answer(f->later, &resp);
	assert_int_equal(client_ask(f->client, "GET /below/ HTTP/1.1\r\nHost: x\r\n\r\n"), 200);
}

TEST_WITH(finds_what_lies_below_a_path, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(client_ask(f->client,
				    "GET /below/a/b?c HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n"
				    "User-Agent: me/1\r\n\r\n"),
			 200);
	assert_string_equal(strbuf_str(&f->client->body), "/below/a/b text/html me/1");
	assert_int_equal(client_ask(f->client, "GET /below HTTP/1.1\r\nHost: x\r\n\r\n"), 404);
}
