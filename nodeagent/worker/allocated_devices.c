// SPDX-License-Identifier: Apache-2.0
/*
 * A question of blocking code to a server that answers by events: ask_kubelet() runs a loop until
 * the kubelet has answered and no Allocate came in between, or the time is over. worker.c hands it
 * to nodeagent/host, whose evidence asks before each write; an answer serves all VFs of a plan.
 */
#include "nodeagent/worker/allocated_devices.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/loop/loop.h"
#include "nodeagent/kubelet/pod_resources.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/process/allocation_epoch.h"
#include "nodeagent/process/protocol.h"

struct allocated_devices {
	struct allocated_devices_config config; /* socket is ours */
	json_t *functions; /* of the last answer, {function: pod}; NULL: none */
	int64_t asked_ms;  /* when its question was put */
	uint64_t count;    /* of allocation_epoch.h, then */
	struct err why;    /* of the last question, when it failed; 0: it did not */
	int64_t failed_ms;
};

/* A loop of its own, for as long as it takes. */
struct question {
	struct allocated_devices *given;
	struct loop *loop;
	struct timer *next, *end;
	struct pod_resources *resources; /* it is put; NULL: not yet */
	struct err err;
};

static void forget_answer(struct allocated_devices *given)
{
	json_decref(take_ptr(given->functions));
}

static void on_answer(void *arg, const json_t *allocated, const struct err *err)
{
	struct question *question = arg;
	struct allocated_devices *given = question->given;

	assert(question->resources && !given->functions);
	if (err) {
		question->err = *err;
	} else if (allocation_epoch_count(given->config.giving) != given->count) {
		/* It may not be in the answer. */
		timer_start(question->next, 0);
		return;
	} else {
		given->functions = observed_functions(allocated);
	}
	loop_stop(question->loop);
}

static void on_next(void *arg)
{
	struct question *question = arg;
	struct allocated_devices *given = question->given;
	int64_t quiet;

	pod_resources_free(take_ptr(question->resources));
	/* In this order: what is given from here on changes the count. */
	given->count = allocation_epoch_count(given->config.giving);
	quiet = allocation_epoch_quiet_ms(given->config.giving);
	if (quiet > 0) {
		timer_start(question->next, quiet);
		return;
	}
	given->asked_ms = clock_ms();
	question->resources =
		pod_resources_new(question->loop, &(struct pod_resources_config){
							  .socket = given->config.socket,
							  .wait_ms = 1,
							  .changed = on_answer,
							  .arg = question,
						  });
}

static void on_end(void *arg)
{
	struct question *question = arg;

	assert(question->given->config.wait_ms > 0);
	(void)err_set(&question->err, ERR_TRANSIENT, "PodResourcesUnavailable",
		      "the kubelet has not said for %d ms which pods have devices, or gives one "
		      "after the other away",
		      (int)question->given->config.wait_ms);
	loop_stop(question->loop);
}

static int ask_kubelet(struct allocated_devices *given)
{
	struct question question = {.given = given, .loop = loop_new()};

	forget_answer(given);
	question.next = timer_new(question.loop, on_next, &question);
	question.end = timer_new(question.loop, on_end, &question);
	timer_start(question.next, 0);
	timer_start(question.end, given->config.wait_ms);
	loop_run(question.loop);
	pod_resources_free(question.resources);
	timer_free(question.next);
	timer_free(question.end);
	loop_free(question.loop);
	assert(!given->functions == (question.err.class != ERR_NONE));
	given->why = question.err;
	given->failed_ms = clock_ms();
	return given->functions ? 0 : -1;
}

static bool is_good(const struct allocated_devices *given, const char *function)
{
	int64_t age = clock_ms() - given->asked_ms;

	if (!given->functions || age >= ALLOCATED_DEVICES_KEEP_MS ||
	    given->count != allocation_epoch_count(given->config.giving))
		return false;
	return age < ALLOCATED_DEVICES_RECENT_MS || !json_object_get(given->functions, function);
}

/* A step about many VFs does not wait for each of them. */
static bool has_just_failed(const struct allocated_devices *given)
{
	return given->why.class != ERR_NONE &&
	       clock_ms() - given->failed_ms < ALLOCATED_DEVICES_FAILED_MS;
}

int allocated_devices_pod(struct allocated_devices *given, const char *function,
			  const char **ret_pod, struct err *err)
{
	assert(function && ret_pod);
	if (!is_good(given, function) && (has_just_failed(given) || ask_kubelet(given) < 0)) {
		if (err)
			*err = given->why;
		return -1;
	}
	*ret_pod = json_str_at(given->functions, function);
	return 0;
}

struct allocated_devices *allocated_devices_new(const struct allocated_devices_config *config)
{
	struct allocated_devices *given = mem_new(struct allocated_devices);

	assert(config->socket && config->wait_ms >= 0);
	given->config = *config;
	given->config.socket = str_dup(config->socket);
	if (given->config.wait_ms == 0)
		given->config.wait_ms = PROTOCOL_KUBELET_MS;
	return given;
}

void allocated_devices_free(struct allocated_devices *given)
{
	if (!given)
		return;
	forget_answer(given);
	mem_free((char *)given->config.socket);
	mem_free(given);
}
