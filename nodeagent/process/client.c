// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of requests, in front of a few exchanges, each with a worker of its own. See the
 * header.
 *
 * `pump` is the only place that begins an exchange, and runs in a turn of its own, so that no
 * callback comes out of a call of ours.
 */
#include "nodeagent/process/client.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/process/exchange.h"
#include "nodeagent/process/protocol.h"

/* Observing waits for the kernel's locks, such as rtnl while VFs are being made. */
#define OBSERVE_MS 60000
/* A disk that is slow because it is busy. */
#define FILE_MS 30000
/*
 * Added to the deadline of a step: both ways, a machine that is busy, and the kubelet, which is
 * asked before. A waiting step gives up by itself before.
 */
#define ON_THE_WAY_MS (2000 + PROTOCOL_KUBELET_MS)

struct request {
	struct request *next;
	json_t *message;
	int64_t id, deadline_ms, began_us;
	hostd_done_fn done;
	void *arg;
};

struct line {
	struct hostd *hostd;
	struct exchange *exchange; /* NULL: was never needed */
	struct request *request;   /* under way; NULL: none */
};

struct hostd {
	struct hostd_config config;
	struct loop *loop;
	struct orders *orders;
	struct line lines[HOSTD_PARALLEL_MAX];
	size_t n_lines;
	struct deferred *pump;
	struct request *first, **last; /* that wait */
	bool lost;
	int64_t last_id;
	json_t *addresses, *held;
	struct metric *requests, *seconds;
};

/* ---- results --------------------------------------------------------------------------------- */

/* The label of a metric: a step's own name, or the kind of request. */
static const char *name_of(const struct request *request)
{
	return json_str_or(json_at(request->message, "step", "step"),
			   json_str_or(json_at(request->message, "kind"), ""));
}

static void free_request(struct request *request)
{
	json_decref(request->message);
	mem_free(request);
}

/* The last thing that a callback does: `done` may free us. Takes request. */
static void finish(struct hostd *hostd, struct request *request, const json_t *result,
		   const struct err *err)
{
	hostd_done_fn done = request->done;
	void *arg = request->arg;

	if (hostd->first)
		deferred_run(hostd->pump);
	metric_add(hostd->requests, 1, name_of(request), err ? err->reason : "OK");
	if (request->began_us)
		metric_observe(hostd->seconds, (double)(clock_us() - request->began_us) / 1e6,
			       name_of(request));
	free_request(request);
	if (done)
		done(arg, result, err);
}

static void on_done(void *arg, const json_t *result, const struct err *err)
{
	struct line *line = arg;

	finish(line->hostd, take_ptr(line->request), result, err);
}

static void on_lost(void *arg)
{
	struct hostd *hostd = arg;

	hostd->lost = true;
	/* In front of those that wait, the first line's first. */
	for (size_t i = hostd->n_lines; i-- > 0;) {
		struct request *request = take_ptr(hostd->lines[i].request);

		if (!request)
			continue;
		request->next = hostd->first;
		if (!hostd->first)
			hostd->last = &request->next;
		hostd->first = request;
	}
	if (hostd->first)
		deferred_run(hostd->pump);
	hostd->config.lost(hostd->config.arg);
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Why there is no point in sending; err is untouched when there is. */
static int check(const struct hostd *hostd, const struct request *request, struct err *err)
{
	if (hostd->lost)
		return err_set(err, ERR_HOST, "HostdDied",
			       "%s: hostd is gone, the agent has to be started again",
			       name_of(request));
	if (hostd_stuck(hostd, NULL) >= HOSTD_STUCK_MAX)
		return err_set(
			err, ERR_HOST, "HostHung",
			"%s: not tried, %d requests hang in the kernel already: only a reboot "
			"of the node helps",
			name_of(request), HOSTD_STUCK_MAX);
	return 0;
}

/* NULL: all are busy. The first one first, whose worker remembers most. */
static struct line *free_line(struct hostd *hostd)
{
	for (size_t i = 0; i < hostd->n_lines; i++)
		if (!hostd->lines[i].request)
			return &hostd->lines[i];
	return NULL;
}

static void begin(struct line *line, struct request *request)
{
	const struct exchange_hooks hooks = {.done = on_done, .arg = line};
	struct hostd *hostd = line->hostd;

	request->began_us = clock_us();
	if (hostd->config.answer) {
		json_auto_t *reply = hostd->config.answer(hostd->config.arg, request->message);
		const json_t *result = NULL;
		struct err failed = {0}, err = {0};

		/* Takes request. */
		if (protocol_reply_read(reply, request->id, &result, &failed, &err) < 0)
			finish(hostd, request, NULL, &err);
		else
			finish(hostd, request, result, result ? NULL : &failed);
		return;
	}
	if (!line->exchange)
		line->exchange =
			exchange_new(hostd->loop, hostd->orders, &hooks, hostd->config.metrics);
	line->request = request;
	exchange_begin(line->exchange, request->message, request->id, request->deadline_ms);
}

static void pump(void *arg)
{
	struct hostd *hostd = arg;
	struct line *line = free_line(hostd);
	struct request *request = hostd->first;
	struct err err = {0};

	if (!request || !line)
		return;
	hostd->first = request->next;
	request->next = NULL;
	if (!hostd->first)
		hostd->last = &hostd->first;
	else
		deferred_run(hostd->pump);
	if (check(hostd, request, &err) < 0)
		finish(hostd, request, NULL, &err);
	else
		begin(line, request);
}

static struct request *enqueue(struct hostd *hostd, enum protocol_kind kind, unsigned int flags,
			       const json_t *body, hostd_done_fn done, void *arg)
{
	struct request *request = mem_new(struct request);
	/* It waits here, and its owner may go on to change it. */
	json_auto_t *copy = json_deep_copy(body);
	struct protocol_request what = {.id = ++hostd->last_id,
					.kind = kind,
					.flags = flags,
					.addresses = hostd->addresses,
					.held = hostd->held,
					.body = copy};

	request->message = protocol_request_new(&what);
	request->id = what.id;
	request->deadline_ms = FILE_MS;
	request->done = done;
	request->arg = arg;
	*hostd->last = request;
	hostd->last = &request->next;
	deferred_run(hostd->pump);
	return request;
}

void hostd_observe(struct hostd *hostd, unsigned int flags, hostd_done_fn done, void *arg)
{
	enqueue(hostd, PROTOCOL_OBSERVE, flags, NULL, done, arg)->deadline_ms = OBSERVE_MS;
}

void hostd_step(struct hostd *hostd, const json_t *step, int deadline_ms, hostd_done_fn done,
		void *arg)
{
	assert(step && deadline_ms > 0);
	enqueue(hostd, PROTOCOL_STEP, 0, step, done, arg)->deadline_ms =
		deadline_ms + ON_THE_WAY_MS;
}

void hostd_load(struct hostd *hostd, hostd_done_fn done, void *arg)
{
	(void)enqueue(hostd, PROTOCOL_LOAD, 0, NULL, done, arg);
}

void hostd_save(struct hostd *hostd, const json_t *state, hostd_done_fn done, void *arg)
{
	(void)enqueue(hostd, PROTOCOL_SAVE, 0, state, done, arg);
}

void hostd_devices(struct hostd *hostd, const json_t *vfs, hostd_done_fn done, void *arg)
{
	json_auto_t *of = json_object();

	json_put(of, "vfs", json_incref((json_t *)vfs));
	enqueue(hostd, PROTOCOL_DEVICES, 0, of, done, arg)->deadline_ms = HOSTD_DEVICES_MS;
}

void hostd_counters(struct hostd *hostd, const json_t *device, hostd_done_fn done, void *arg)
{
	enqueue(hostd, PROTOCOL_COUNTERS, 0, device, done, arg)->deadline_ms = HOSTD_COUNTERS_MS;
}

void hostd_gids(struct hostd *hostd, const json_t *wanted, hostd_done_fn done, void *arg)
{
	enqueue(hostd, PROTOCOL_GIDS, 0, wanted, done, arg)->deadline_ms = HOSTD_GIDS_MS;
}

void hostd_port(struct hostd *hostd, const json_t *port, hostd_done_fn done, void *arg)
{
	enqueue(hostd, PROTOCOL_PORT, 0, port, done, arg)->deadline_ms = HOSTD_PORT_MS;
}

void hostd_inspect(struct hostd *hostd, hostd_done_fn done, void *arg)
{
	enqueue(hostd, PROTOCOL_INSPECT, 0, NULL, done, arg)->deadline_ms = HOSTD_INSPECT_MS;
}

/* Each request carries them, so a new worker needs no telling. */
void hostd_set_node_addresses(struct hostd *hostd, const json_t *addresses)
{
	json_replace(&hostd->addresses, json_deep_copy(addresses));
}

void hostd_set_held(struct hostd *hostd, const json_t *held)
{
	json_replace(&hostd->held, json_deep_copy(held));
}

size_t hostd_stuck(const struct hostd *hostd, const json_t **ret_request)
{
	const json_t *message = NULL, *one, *step;
	size_t n = 0;

	for (size_t i = 0; i < hostd->n_lines; i++) {
		if (!hostd->lines[i].exchange)
			continue;
		n += exchange_stuck(hostd->lines[i].exchange, &one);
		message = message ? message : one;
	}
	step = json_at(message, "step");
	if (ret_request)
		*ret_request = step ? step : message;
	return n;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct hostd *hostd_new(struct loop *loop, const struct hostd_config *config)
{
	struct hostd *hostd = mem_new(struct hostd);

	assert(config->answer || (config->orders >= 0 && config->lost));
	assert(config->parallel <= HOSTD_PARALLEL_MAX);
	hostd->config = *config;
	hostd->loop = loop;
	hostd->last = &hostd->first;
	hostd->addresses = json_array();
	hostd->pump = deferred_new(loop, pump, hostd);
	if (!config->answer)
		hostd->orders = orders_new(loop, config->orders, on_lost, hostd);
	hostd->n_lines = config->parallel ? config->parallel : 1;
	for (size_t i = 0; i < hostd->n_lines; i++)
		hostd->lines[i].hostd = hostd;
	hostd->requests = metric_counter(config->metrics, "orbweaver_hostd_requests_total",
					 "Requests to hostd, by step or kind.", "request,outcome");
	hostd->seconds = metric_histogram(config->metrics, "orbweaver_hostd_request_seconds",
					  "How long requests to hostd took, by step or kind.",
					  "request", METRIC_SECONDS);
	return hostd;
}

void hostd_free(struct hostd *hostd)
{
	if (!hostd)
		return;
	for (size_t i = 0; i < hostd->n_lines; i++) {
		exchange_free(hostd->lines[i].exchange);
		if (hostd->lines[i].request)
			free_request(hostd->lines[i].request);
	}
	orders_free(hostd->orders);
	deferred_free(hostd->pump);
	while (hostd->first) {
		struct request *request = hostd->first;

		hostd->first = request->next;
		free_request(request);
	}
	json_decref(hostd->addresses);
	json_decref(hostd->held);
	mem_free(hostd);
}
