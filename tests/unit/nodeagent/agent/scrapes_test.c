// SPDX-License-Identifier: Apache-2.0
/* Who scrapes waits for what is fresh, and crowds are turned away. */
#include "lib/base/clock.h"
#include "lib/http/probes.h"
#include "nodeagent/agent/scrapes.h"
#include "tests/unit/http/client.h"

static int64_t now_us = 1000000;

int64_t clock_us(void)
{
	return now_us;
}

struct fixture {
	struct loop *loop;
	struct metrics *metrics;
	struct health *health;
	struct scrapes *scrapes;
	struct probes probes;
	struct http_server *server;
	bool is_fresh;
	int refreshes, closed;
};

static int set_up(void **state)
{
	struct fixture *f = mem_new(struct fixture);

	f->loop = loop_new();
	f->metrics = metrics_new();
	f->health = health_new();
	f->scrapes = scrapes_new();
	assert_int_equal(probes_serve(&f->probes, f->loop, "127.0.0.1:0", f->metrics,
				      scrapes_gate(f->scrapes), f->health, f->health, &f->server,
				      NULL),
			 0);
	*state = f;
	return 0;
}

static void on_closed(void *arg)
{
	((struct fixture *)arg)->closed++;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	http_server_close(f->server, on_closed, f);
	settle(f->loop);
	assert_int_equal(f->closed, 1);
	scrapes_free(f->scrapes);
	health_free(f->health);
	metrics_free(f->metrics);
	loop_free(f->loop);
	mem_free(f);
	return 0;
}

static bool refresh(void *arg)
{
	struct fixture *f = arg;

	f->refreshes++;
	return f->is_fresh;
}

static struct client *scrape(struct fixture *f)
{
	struct client *c = client_new(f->loop, http_server_port(f->server), NULL);

	assert_true(client_sends(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
	settle(f->loop);
	return c;
}

static int answer_to(struct client *c)
{
	int status = client_receive(c, false) ? c->status : 0;

	client_free(c);
	return status;
}

TEST_WITH(there_is_nothing_to_wait_for_at_the_start, set_up, tear_down)
{
	assert_int_equal(answer_to(scrape(*state)), 200);
}

TEST_WITH(all_who_wait_are_answered_once_it_is_fresh, set_up, tear_down)
{
	struct fixture *f = *state;
	struct client *first, *second, *gone;

	scrapes_on(f->scrapes, refresh, f);
	first = scrape(f);
	second = scrape(f);
	gone = scrape(f);
	client_free(gone);
	settle(f->loop);
	assert_int_equal(f->refreshes, 3);
	assert_false(client_has_ended(first));
	assert_int_equal(first->in.len, 0);
	scrapes_fresh(f->scrapes, 100);
	assert_int_equal(answer_to(first), 200);
	assert_int_equal(answer_to(second), 200);
	f->is_fresh = true;
	assert_int_equal(answer_to(scrape(f)), 200);
}

TEST_WITH(a_server_that_closes_leaves_nobody_waiting, set_up, tear_down)
{
	struct fixture *f = *state;

	scrapes_on(f->scrapes, refresh, f);
	client_free(scrape(f));
	assert_int_equal(f->refreshes, 1);
}

TEST_WITH(a_crowd_is_turned_away_until_there_is_memory_again, set_up, tear_down)
{
	struct fixture *f = *state;

	f->is_fresh = true;
	scrapes_on(f->scrapes, refresh, f);
	scrapes_fresh(f->scrapes, SCRAPES_BYTES_MAX / 2);
	assert_int_equal(answer_to(scrape(f)), 200);
	assert_int_equal(answer_to(scrape(f)), 200);
	assert_int_equal(answer_to(scrape(f)), 503);
	now_us += SCRAPES_WINDOW_MS * INT64_C(1000);
	assert_int_equal(answer_to(scrape(f)), 200);
	/* What is longer than all of it is for one at a time. */
	now_us += SCRAPES_WINDOW_MS * INT64_C(1000);
	scrapes_fresh(f->scrapes, 2 * (size_t)SCRAPES_BYTES_MAX);
	assert_int_equal(answer_to(scrape(f)), 200);
	assert_int_equal(answer_to(scrape(f)), 503);
}
