// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/agent/scrapes.h"

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

static bool may_have_it(struct scrapes *scrapes)
{
	int64_t now = clock_ms();

	if (now - scrapes->window_ms >= SCRAPES_WINDOW_MS) {
		scrapes->window_ms = now;
		scrapes->given = 0;
	}
	if (scrapes->given > 0 && scrapes->given + scrapes->size > SCRAPES_BYTES_MAX)
		return false;
	scrapes->given += scrapes->size;
	return true;
}

static void answer(struct scrapes *scrapes, struct http_asked *asked)
{
	http_asked_answer(asked, may_have_it(scrapes) ? 200 : 503);
}

static void ask(const struct http_request *req, struct http_asked *asked, void *arg)
{
	struct scrapes *scrapes = arg;

	if (!scrapes->refresh || scrapes->refresh(scrapes->arg)) {
		answer(scrapes, asked);
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
		answer(scrapes, waiting[i]);
}

void scrapes_on(struct scrapes *scrapes, bool (*refresh)(void *arg), void *arg)
{
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

	scrapes->gate = (struct http_gate){ask, scrapes};
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
