// SPDX-License-Identifier: Apache-2.0
/* The streams are few: a kubelet has one, or two for a moment after it has started again. */
#include "nodeagent/kubelet/dra_health.h"

#include <assert.h>
#include <time.h>

#include "lib/base/err.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/grpc/server.h"
#include "lib/json/json.h"
#include "nodeagent/kubelet/dra_messages.h"

/* A third of the kubelet's patience (k8s.io/kubernetes, pkg/kubelet/cm/dra/healthinfo.go). */
#define AGAIN_MS 10000

struct stream {
	struct dra_health *health;
	struct stream *next;
	struct grpc_call *call;
};

struct dra_health {
	struct stream *streams;
	json_t *devices; /* NULL: not known */
	struct timer *again;
};

static void send_to(const struct dra_health *health, const struct stream *stream)
{
	struct ProtobufCMessage *message = dra_message_health(health->devices, time(NULL));
	struct err err = {0};

	if (grpc_call_send_latest(stream->call, message, &err) < 0)
		log_warn("cannot send the health of claims' devices", F_ERR(&err));
	dra_message_free(message);
}

static void send_all(void *arg)
{
	struct dra_health *health = arg;

	if (!health->devices || !health->streams)
		return;
	for (const struct stream *stream = health->streams; stream; stream = stream->next)
		send_to(health, stream);
	timer_start(health->again, AGAIN_MS);
}

static void on_stream_end(void *arg, enum grpc_code why)
{
	struct stream *stream = arg, **place = &stream->health->streams;

	while (*place != stream)
		place = &(*place)->next;
	*place = stream->next;
	mem_free(stream);
}

void dra_health_watch(struct dra_health *health, struct grpc_call *call)
{
	struct stream *stream = mem_new(struct stream);

	assert(call);
	stream->health = health;
	stream->call = call;
	stream->next = health->streams;
	health->streams = stream;
	grpc_call_on_end(call, on_stream_end, stream);
	if (health->devices)
		send_to(health, stream);
	if (!timer_is_active(health->again))
		timer_start(health->again, AGAIN_MS);
}

void dra_health_set(struct dra_health *health, json_t *devices)
{
	json_auto_t *before = health->devices;

	health->devices = devices;
	if (!json_same(before, devices))
		send_all(health);
}

struct dra_health *dra_health_new(struct loop *loop)
{
	struct dra_health *health = mem_new(struct dra_health);

	health->again = timer_new(loop, send_all, health);
	return health;
}

void dra_health_free(struct dra_health *health)
{
	if (!health)
		return;
	assert(!health->streams);
	timer_free(health->again);
	json_decref(health->devices);
	mem_free(health);
}
