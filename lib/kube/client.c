// SPDX-License-Identifier: Apache-2.0
/*
 * The client: its lanes, whose connections say when calls (call.c) begin and end, and what it was
 * told. Of a crowd of calls that start, those of TURN_US begin in one turn of the loop.
 */
#include "lib/kube/client.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/kube/call.h"

enum {
	/* Others wait for the loop, too. */
	TURN_US = 100,
};

/* ---- what connections say -------------------------------------------------------------------- */

static void on_entering(void *arg)
{
	call_end_fenced(((const struct client_lane *)arg)->client);
}

static void on_ended(void *arg, CURL *easy, CURLcode code)
{
	call_attempt_ended(easy, code);
}

static void on_room(void *arg)
{
	deferred_run(((const struct client_lane *)arg)->client->starter);
}

static void on_silent(void *arg, struct connection *connection)
{
	call_probe(arg, connection);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void start_queued(void *arg)
{
	struct kube_client *client = arg;
	int64_t until_us = clock_us() + TURN_US;

	for (size_t i = 0; i < ARRAY_LEN(client->lanes); i++) {
		struct client_lane *lane = &client->lanes[i];
		struct kube_call *call = NULL;

		lane_free_unused(&lane->lane);
		/*
		 * No further than the last one of now: a callback that tries again at once gets the
		 * next turn.
		 */
		for (size_t n = lane->n_waiting; n > 0 && (call = TAILQ_FIRST(&lane->waiting));
		     n--) {
			if (!call_start_queued(call)) {
				timer_start(client->later, CONNECTION_OPENING_MS);
				break;
			}
			if (clock_us() >= until_us) {
				deferred_run(client->starter);
				break;
			}
		}
	}
}

static void init_lane(struct kube_client *client, enum kube_lane which)
{
	struct client_lane *lane = &client->lanes[which];

	lane->client = client;
	TAILQ_INIT(&lane->waiting);
	lane_init(&lane->lane,
		  &(struct connection_owner){
			  .loop = client->loop,
			  .multiplexed = client->config->tls,
			  .fence = which == KUBE_LANE_CALLS ? client->fence : NULL,
			  .streams_max = CONNECTION_STREAMS,
			  .silence_ms =
				  which == KUBE_LANE_CALLS ? KUBE_PROBE_MS : KUBE_WATCH_SILENCE_MS,
			  .entering = on_entering,
			  .ended = on_ended,
			  .changed = on_room,
			  .silent = on_silent,
			  .arg = lane,
		  });
}

struct kube_client *kube_client_new(struct loop *loop, const struct kube_config *config,
				    struct metrics *metrics)
{
	struct kube_client *client = mem_new(struct kube_client);

	handle_pool_init(&client->handles, config);
	TAILQ_INIT(&client->calls);
	TAILQ_INIT(&client->writes);
	client->loop = loop;
	client->config = config;
	client->credentials = kube_credentials_new(loop, config, NULL);
	client->fence = fence_new();
	client->refused.free_value = mem_free;
	client->starter = deferred_new(loop, start_queued, client);
	client->later = timer_new(loop, start_queued, client);
	init_lane(client, KUBE_LANE_WATCHES);
	init_lane(client, KUBE_LANE_CALLS);
	client->requests = metric_counter(metrics, "orbweaver_kube_requests_total",
					  "Requests to the API server.", "verb,code");
	client->duration = metric_histogram(metrics, "orbweaver_kube_request_duration_seconds",
					    "From the call to its end, retries included.", "verb",
					    METRIC_SECONDS);
	attempts_init(&client->attempts, config, metrics);
	return client;
}

void kube_client_free(struct kube_client *client)
{
	if (!client)
		return;
	assert(!client->in_callback);
	while (!TAILQ_EMPTY(&client->calls))
		kube_call_cancel(TAILQ_FIRST(&client->calls));
	while (!TAILQ_EMPTY(&client->writes))
		kube_call_cancel(TAILQ_FIRST(&client->writes));
	for (size_t i = 0; i < ARRAY_LEN(client->lanes); i++)
		lane_done(&client->lanes[i].lane);
	handle_pool_done(&client->handles);
	attempts_done(&client->attempts);
	map_done(&client->refused);
	fence_free(client->fence);
	timer_free(client->later);
	deferred_free(client->starter);
	kube_credentials_free(client->credentials);
	mem_free(client);
}

void kube_client_set_fence(struct kube_client *client, bool (*may_write)(void *arg), void *arg)
{
	client->may_write = may_write;
	client->may_write_arg = arg;
}

void kube_client_set_warned(struct kube_client *client,
			    void (*warned)(void *arg, const char *lines), void *arg)
{
	client->warned = warned;
	client->warned_arg = arg;
}

void kube_client_writes_end_at(struct kube_client *client, int64_t at_ms)
{
	fence_set(client->fence, at_ms);
}

void kube_client_set_watch_silence(struct kube_client *client, int64_t silence_ms)
{
	client->lanes[KUBE_LANE_WATCHES].lane.owner.silence_ms = silence_ms;
}

bool kube_client_may_stream(const struct kube_client *client, const char *kind)
{
	const int64_t *since = map_get(&client->refused, kind);

	return !since || clock_ms() - *since >= KUBE_STREAMS_AGAIN_MS;
}

void kube_client_refused_stream(struct kube_client *client, const char *kind)
{
	int64_t *since = mem_new(int64_t);

	*since = clock_ms();
	map_set(&client->refused, kind, since);
}

size_t kube_client_connections(const struct kube_client *client, struct kube_connection *ret,
			       size_t max)
{
	const struct connection *c = NULL;
	int64_t now = clock_ms();
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(client->lanes); i++)
		TAILQ_FOREACH(c, &client->lanes[i].lane.connections, link)
		{
			if (n++ >= max)
				continue;
			ret[n - 1] = (struct kube_connection){
				.lane = (enum kube_lane)i,
				.retired = c->retired,
				.streams = c->n_streams,
				.age_ms = now - c->made_ms,
				.silent_ms = now - c->spoke_ms,
			};
		}
	return n;
}
