// SPDX-License-Identifier: Apache-2.0
/*
 * The gate before /metrics: a scrape waits here until the counters of devices are fresh, and all
 * that wait get the one text. The HTTP server asks, counter_collector.c gathers. What is given out
 * within a window is bounded, so that many clients cost no memory.
 */
#include "nodeagent/agent/scrapes.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"

struct scrapes {
	struct http_gate gate;
	bool (*refresh)(void *arg);
	void *arg;
	struct http_asked **waiting;
	size_t n_waiting;
	size_t size; /* of the text that is there */
	/* Given out since then. */
	size_t given;
	int64_t window_ms;
};

static void answer_scrape(struct scrapes *scrapes, struct http_asked *asked)
{
	int64_t now = clock_ms();
	bool is_too_much;

	if (now - scrapes->window_ms >= SCRAPES_WINDOW_MS) {
		scrapes->window_ms = now;
		scrapes->given = 0;
	}
	is_too_much = scrapes->given > 0 && scrapes->given + scrapes->size > SCRAPES_BYTES_MAX;
	if (!is_too_much)
		scrapes->given += scrapes->size;
	http_asked_answer(asked, is_too_much ? 503 : 200);
}

static void on_scrape(const struct http_request *req, struct http_asked *asked, void *arg)
{
	struct scrapes *scrapes = arg;

	if (!scrapes->refresh || scrapes->refresh(scrapes->arg)) {
		answer_scrape(scrapes, asked);
		return;
	}
	scrapes->waiting = mem_realloc(scrapes->waiting,
				       (scrapes->n_waiting + 1) * sizeof(struct http_asked *));
	scrapes->waiting[scrapes->n_waiting++] = asked;
}

/* Who is answered may ask again at once. */
void scrapes_fresh(struct scrapes *scrapes, size_t size_bytes)
{
	auto_free struct http_asked **waiting = take_ptr(scrapes->waiting);
	size_t n = scrapes->n_waiting;

	scrapes->n_waiting = 0;
	scrapes->size = size_bytes;
	for (size_t i = 0; i < n; i++)
		answer_scrape(scrapes, waiting[i]);
}

void scrapes_on(struct scrapes *scrapes, bool (*refresh)(void *arg), void *arg)
{
	assert(!refresh || !scrapes->refresh);
	scrapes->refresh = refresh;
	scrapes->arg = arg;
}

const struct http_gate *scrapes_gate(const struct scrapes *scrapes)
{
	return &scrapes->gate;
}

struct scrapes *scrapes_new(void)
{
	struct scrapes *scrapes = mem_new(struct scrapes);

	scrapes->gate = (struct http_gate){on_scrape, scrapes};
	scrapes->window_ms = clock_ms();
	return scrapes;
}

void scrapes_free(struct scrapes *scrapes)
{
	if (!scrapes)
		return;
	scrapes_on(scrapes, NULL, NULL);
	scrapes_fresh(scrapes, 0);
	mem_free(scrapes);
}
