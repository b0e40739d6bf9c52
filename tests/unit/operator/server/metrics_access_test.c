// SPDX-License-Identifier: Apache-2.0
/* Who may read metrics: the API server says so, and what it said counts for a while. */
#include "operator/server/metrics_access.h"

#include "lib/base/clock.h"
#include "tests/fakes/scripted.h"
#include "tests/unit/http/client.h"

#define TOKENS "POST /apis/authentication.k8s.io/v1/tokenreviews"
#define ACCESS "POST /apis/authorization.k8s.io/v1/subjectaccessreviews"

static int64_t now_us = 1000000;

int64_t clock_us(void)
{
	return now_us;
}

struct fixture {
	struct scripted s;
	struct metrics_access *access;
	struct http_route routes[1];
	struct http_server *server;
	bool closed;
};

static void handle(const struct http_request *req, struct http_response *resp, void *arg)
{
	strbuf_adds(&resp->body, "up 1\n");
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	struct err err = {0};

	scripted_open(&f->s);
	f->access = metrics_access_new(f->s.client);
	f->routes[0] = (struct http_route){
		.path = "/metrics",
		.methods = HTTP_GET,
		.handle = handle,
		.gate = metrics_access_gate(f->access),
	};
	f->server = http_server_new(f->s.loop,
				    &(struct http_server_config){
					    .name = "metrics",
					    .listen = "127.0.0.1:0",
					    .routes = f->routes,
					    .n_routes = 1,
				    },
				    &err);
	if (!f->server)
		fail_msg("%s", err.text);
	*state = f;
	return 0;
}

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	http_server_close(f->server, on_closed, &f->closed);
	while (!f->closed)
		loop_turn(f->s.loop, false);
	metrics_access_free(f->access);
	scripted_close(&f->s);
	mem_free(f);
	return 0;
}

static void reply(struct fixture *f, const char *start, const char *body)
{
	http_script_add(f->s.http, start, &(struct http_reply){.status = 201, .body = body});
}

static void api_server_knows(struct fixture *f)
{
	reply(f, TOKENS,
	      "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"prometheus\",\"uid\":"
	      "\"1\","
	      "\"groups\":[\"g\"],\"extra\":{\"pod\":[\"p\"]}}}}");
}

static struct client *client_with(struct fixture *f, const char *header)
{
	struct client *c = client_new(f->s.loop, http_server_port(f->server), NULL);
	auto_free char *text = str_printf("GET /metrics HTTP/1.1\r\nHost: x\r\n%s\r\n", header);

	assert_true(client_sends(c, text));
	return c;
}

static int status_of(struct client *c)
{
	int status;

	assert_true(client_receive(c, false));
	status = c->status;
	client_free(c);
	return status;
}

static int scrape(struct fixture *f, const char *token)
{
	auto_free char *header = str_printf("Authorization: Bearer %s\r\n", token);

	return status_of(client_with(f, header));
}

TEST_WITH(nobody_is_let_in_without_a_token, setup, teardown)
{
	static const char *const headers[] = {"",
					      "Authorization: \r\n",
					      "Authorization: Bearer\r\n",
					      "Authorization: Bearer \r\n",
					      "Authorization: Basic dTpw\r\n",
					      "Authorization: Bearer a b\r\n",
					      "Authorization: Bearer \xff\r\n"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(headers); i++)
		assert_int_equal(status_of(client_with(f, headers[i])), 401);
	assert_null(http_script_request(f->s.http, 0));
}

TEST_WITH(the_api_server_is_asked_who_it_is_and_what_it_may, setup, teardown)
{
	struct fixture *f = *state;

	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true}}");
	assert_int_equal(scrape(f, "good"), 200);
	assert_non_null(strstr(http_script_request(f->s.http, 0), "\"spec\":{\"token\":\"good\"}"));
	assert_non_null(strstr(
		http_script_request(f->s.http, 1),
		"\"spec\":{\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"},"
		"\"user\":\"prometheus\",\"uid\":\"1\",\"groups\":[\"g\"],\"extra\":{\"pod\":["
		"\"p\"]}}"));

	/* That counts for a while, for this token. */
	now_us += (METRICS_ACCESS_GOOD_MS - 1) * 1000;
	assert_int_equal(scrape(f, "good"), 200);
	assert_null(http_script_request(f->s.http, 2));
	now_us += 2000;
	reply(f, TOKENS, "{\"status\":{\"authenticated\":false}}");
	assert_int_equal(scrape(f, "good"), 401);
}

TEST_WITH(who_may_not_is_refused_and_not_asked_about_again_and_again, setup, teardown)
{
	struct fixture *f = *state;

	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true,\"denied\":true}}");
	assert_int_equal(scrape(f, "other"), 403);
	assert_int_equal(scrape(f, "other"), 403);
	reply(f, TOKENS, "{\"status\":{\"authenticated\":true,\"user\":{}}}");
	assert_int_equal(scrape(f, "nobody"), 401);
	assert_int_equal(http_script_unexpected(f->s.http), 0);

	now_us += METRICS_ACCESS_BAD_MS * 1000;
	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true}}");
	assert_int_equal(scrape(f, "other"), 200);
}

TEST_WITH(nobody_is_let_in_for_want_of_an_answer, setup, teardown)
{
	struct fixture *f = *state;

	http_script_add(f->s.http, TOKENS, &(struct http_reply){.status = 403});
	assert_int_equal(scrape(f, "t"), 503);
	reply(f, TOKENS, "[]");
	assert_int_equal(scrape(f, "u"), 401);
	api_server_knows(f);
	http_script_add(f->s.http, ACCESS, &(struct http_reply){.status = 403});
	assert_int_equal(scrape(f, "t"), 503);
	/* Nothing is remembered of that. */
	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true}}");
	assert_int_equal(scrape(f, "t"), 200);
}

TEST_WITH(strangers_do_not_keep_out_who_was_good, setup, teardown)
{
	struct fixture *f = *state;
	struct client *strangers[METRICS_ACCESS_AT_ONCE];

	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true}}");
	assert_int_equal(scrape(f, "good"), 200);
	for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
		auto_free char *header = str_printf("Authorization: Bearer bad%zu\r\n", i);

		http_script_add(f->s.http, TOKENS, &(struct http_reply){.status = -1});
		strangers[i] = client_with(f, header);
		settle(f->s.loop);
	}
	assert_int_equal(scrape(f, "bad"), 503);
	now_us += METRICS_ACCESS_GOOD_MS * 1000;
	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true}}");
	assert_int_equal(scrape(f, "good"), 200);
	for (size_t i = 0; i < ARRAY_LEN(strangers); i++)
		client_free(strangers[i]);
}

TEST_WITH(many_tokens_take_the_place_of_the_oldest, setup, teardown)
{
	struct fixture *f = *state;

	api_server_knows(f);
	reply(f, ACCESS, "{\"status\":{\"allowed\":true}}");
	assert_int_equal(scrape(f, "good"), 200);
	for (int i = 0; i < METRICS_ACCESS_MAX + 1; i++) {
		auto_free char *token = str_printf("bad%d", i);

		reply(f, TOKENS, "{\"status\":{\"authenticated\":false}}");
		assert_int_equal(scrape(f, token), 401);
	}
	assert_int_equal(scrape(f, "good"), 200);
	reply(f, TOKENS, "{\"status\":{\"authenticated\":false}}");
	assert_int_equal(scrape(f, "bad0"), 401);
	assert_int_equal(http_script_unused(f->s.http), 0);
}
