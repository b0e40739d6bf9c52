// SPDX-License-Identifier: Apache-2.0
/*
 * One request, one reply: finds a worker, starting one where there is none, sends, waits no longer
 * than asked to, and gets rid of a worker that died, hangs or talks nonsense. A worker that rests
 * ends. The queue is client.c's.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/loop/loop.h"
#include "nodeagent/process/orders.h"

struct exchange;

struct exchange_hooks {
	/*
	 * Once per exchange_begin, from the loop or from there; result is borrowed, NULL with err.
	 * The exchange may be freed from here.
	 */
	void (*done)(void *arg, const json_t *result, const struct err *err);
	void *arg;
	int64_t rest_ms; /* a worker without a request for this long ends; 0: EXCHANGE_REST_MS */
};

/* Between two steps of a plan the worker stays. */
enum { EXCHANGE_REST_MS = 5000 };

/*
 * orders: borrowed until both are freed, the exchange first. When the supervisor is lost, `done`
 * does not come any more. metrics may be NULL.
 */
struct exchange *exchange_new(struct loop *loop, struct orders *orders,
			      const struct exchange_hooks *hooks, struct metrics *metrics);
void exchange_free(struct exchange *exchange);

/*
 * Begin, while none is under way and the supervisor is there. `message` is a request of protocol.h
 * with the given id, borrowed and kept as long as needed. Errors as client.h has them.
 */
void exchange_begin(struct exchange *exchange, const json_t *message, int64_t id,
		    int64_t deadline_ms);

/* Workers that were killed and do not end; the message of the oldest, borrowed, or NULL. */
size_t exchange_stuck(const struct exchange *exchange, const json_t **ret_message);
