// SPDX-License-Identifier: Apache-2.0
/* Which listener answers what. */
#include "lib/http/probes.h"
#include "tests/unit/http/client.h"

struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct health *alive, *ready;
	struct probes probes[2];
	struct http_server *servers[2];
	int closed;
};

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	f->loop = loop_new();
	f->metrics = metrics_new();
	f->alive = health_new();
	f->ready = health_new();
	health_set(f->ready, "cache", false, "not listed yet");
	*state = f;
	return 0;
}

static void on_closed(void *arg)
{
	((struct fixture *)arg)->closed++;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	int wanted = 0;

	for (size_t i = 0; i < ARRAY_LEN(f->servers); i++)
		if (f->servers[i]) {
			http_server_close(f->servers[i], on_closed, f);
			wanted++;
		}
	settle(f->loop);
	assert_int_equal(f->closed, wanted);
	health_free(f->alive);
	health_free(f->ready);
	metrics_free(f->metrics);
	loop_free(f->loop);
	mem_free(f);
	return 0;
}

static int get(struct fixture *f, size_t server, const char *path)
{
	struct client *c = client_new(f->loop, http_server_port(f->servers[server]), NULL);
	auto_free char *ask = str_printf("GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	int status = client_ask(c, ask);

	client_free(c);
	return status;
}

TEST_WITH(metrics_and_health_are_apart, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(probes_serve_metrics(&f->probes[0], f->loop, "127.0.0.1:0", f->metrics,
					      NULL, &f->servers[0], NULL),
			 0);
	assert_int_equal(probes_serve_health(&f->probes[1], f->loop, "127.0.0.1:0", f->metrics,
					     f->alive, f->ready, &f->servers[1], NULL),
			 0);
	assert_int_equal(get(f, 0, "/metrics"), 200);
	assert_int_equal(get(f, 0, "/healthz"), 404);
	assert_int_equal(get(f, 0, "/readyz"), 404);
	assert_int_equal(get(f, 1, "/metrics"), 404);
	assert_int_equal(get(f, 1, "/healthz"), 200);
	assert_int_equal(get(f, 1, "/readyz"), 500);
}

TEST_WITH(one_address_can_have_both, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(probes_serve(&f->probes[0], f->loop, "127.0.0.1:0", f->metrics, NULL,
				      f->alive, f->ready, &f->servers[0], NULL),
			 0);
	assert_int_equal(get(f, 0, "/metrics"), 200);
	assert_int_equal(get(f, 0, "/healthz"), 200);
	assert_int_equal(get(f, 0, "/readyz"), 500);
}

static void turn_away(const struct http_request *req, struct http_asked *asked, void *arg)
{
	http_asked_answer(asked, 503);
}

TEST_WITH(metrics_can_have_a_gate_and_health_has_none, setup, teardown)
{
	static const struct http_gate gate = {turn_away, NULL};
	struct fixture *f = *state;

	assert_int_equal(probes_serve(&f->probes[0], f->loop, "127.0.0.1:0", f->metrics, &gate,
				      f->alive, f->ready, &f->servers[0], NULL),
			 0);
	assert_int_equal(get(f, 0, "/metrics"), 503);
	assert_int_equal(get(f, 0, "/healthz"), 200);
}

TEST_WITH(an_address_of_zero_serves_nothing, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(probes_serve_metrics(&f->probes[0], f->loop, "0", f->metrics, NULL,
					      &f->servers[0], NULL),
			 0);
	assert_null(f->servers[0]);
}

TEST_WITH(the_flag_is_named_with_a_bad_address, setup, teardown)
{
	struct fixture *f = *state;
	struct err err = {0};

	assert_int_equal(probes_serve_health(&f->probes[0], f->loop, "nowhere", f->metrics,
					     f->alive, f->ready, &f->servers[0], &err),
			 -1);
	assert_true(str_starts(err.text, "--health-addr nowhere: "));
	assert_int_equal(probes_serve_metrics(&f->probes[0], f->loop, "nowhere", f->metrics, NULL,
					      &f->servers[0], &err),
			 -1);
	assert_true(str_starts(err.text, "--metrics-addr nowhere: "));
}
