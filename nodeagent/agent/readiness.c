// SPDX-License-Identifier: Apache-2.0
/* Checks, their server, and the word to the supervisor. */
#include "nodeagent/agent/readiness.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/http/probes.h"
#include "nodeagent/process/workers.h"

enum {
	/* In the host's network the agent that we replace may still have our port. */
	AGAIN_MS = 1000,
};

struct readiness {
	struct loop *loop;
	struct metrics *metrics;
	int orders;
	struct health *alive, *ready;
	bool is_ready; /* as reported to the supervisor */
	struct probes probes;
	const char *listen;
	const struct http_gate *gate;
	struct http_server *server;
	struct timer *again;
};

void readiness_set(struct readiness *readiness, const char *check, bool ok, const char *why_not)
{
	assert(ok || why_not);
	(void)health_set(readiness->ready, check, ok, why_not);
	if (health_is_ok(readiness->ready) == readiness->is_ready)
		return;
	readiness->is_ready = !readiness->is_ready;
	(void)workers_send(readiness->orders,
			   readiness->is_ready ? WORKERS_READY : WORKERS_NOT_READY, 0);
}

static int serve_probes(struct readiness *readiness, struct err *err)
{
	return probes_serve(&readiness->probes, readiness->loop, readiness->listen,
			    readiness->metrics, readiness->gate, readiness->alive, readiness->ready,
			    &readiness->server, err);
}

static void serve_again(void *arg)
{
	struct readiness *readiness = arg;

	if (serve_probes(readiness, NULL) < 0)
		timer_start(readiness->again, AGAIN_MS);
}

int readiness_serve(struct readiness *readiness, const char *listen, const struct http_gate *gate,
		    struct err *err)
{
	assert(!readiness->server);
	readiness->listen = listen;
	readiness->gate = gate;
	if (serve_probes(readiness, err) == 0)
		return 0;
	if (err->class == ERR_INVALID)
		return -1;
	log_warn("cannot serve metrics and health, will retry", F_ERR(err));
	timer_start(readiness->again, AGAIN_MS);
	return 0;
}

void readiness_stop(struct readiness *readiness)
{
	timer_stop(readiness->again);
}

void readiness_close(struct readiness *readiness, loop_fn *done, void *arg)
{
	readiness_stop(readiness);
	if (readiness->server)
		http_server_close(take_ptr(readiness->server), done, arg);
	else
		done(arg);
}

struct readiness *readiness_new(struct loop *loop, struct metrics *metrics, int orders)
{
	struct readiness *readiness = mem_new(struct readiness);

	readiness->loop = loop;
	readiness->metrics = metrics;
	readiness->orders = orders;
	readiness->alive = health_new();
	readiness->ready = health_new();
	readiness->again = timer_new(loop, serve_again, readiness);
	health_set(readiness->ready, "host", false, "not looked at yet");
	health_set(readiness->ready, "nodestate", false, "the API server has not answered yet");
	health_set(readiness->ready, "resources", false, "not offered yet");
	return readiness;
}

void readiness_free(struct readiness *readiness)
{
	if (!readiness)
		return;
	assert(!readiness->server);
	timer_free(readiness->again);
	health_free(readiness->alive);
	health_free(readiness->ready);
	mem_free(readiness);
}
