// SPDX-License-Identifier: Apache-2.0
/*
 * Notification sockets of the kernel as pollers on the loop. host/watch.c opens them and decodes,
 * the wiring gets the events. Sockets that a kernel does not have yet, or that broke, are tried
 * again; after a break the event is `lost`, so that the host is looked at.
 */
#include "nodeagent/agent/host_events.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"

struct source {
	struct host_events *owner;
	enum watch_source which;
	struct poller *poller; /* NULL: this kernel has none (yet) */
};

struct host_events {
	struct loop *loop;
	watch_event_fn fn;
	void *arg;
	struct watch *watch; /* NULL while broken */
	struct source sources[WATCH_SOURCES];
	struct timer *retry;
	struct metric *heard;
};

static const char *const names[WATCH_SOURCES] = {
	[WATCH_UEVENT] = "uevent",
	[WATCH_LINK] = "link",
	[WATCH_RDMA] = "rdma",
};

static void on_event(void *arg, const struct watch_event *event)
{
	const struct host_events *events = arg;

	assert(event->source < WATCH_SOURCES);
	metric_add(events->heard, 1, names[event->source]);
	events->fn(events->arg, event);
}

static void stop_pollers(struct host_events *events)
{
	for (size_t i = 0; i < WATCH_SOURCES; i++)
		if (events->sources[i].poller)
			poller_free(take_ptr(events->sources[i].poller));
	watch_close(take_ptr(events->watch));
}

static void on_readable(void *arg, int what)
{
	struct source *source = arg;
	struct host_events *events = source->owner;
	struct err err = {0};

	assert(events->watch && source->poller);
	if (watch_read(events->watch, source->which, on_event, events, &err) == 0)
		return;
	log_error("cannot read events of the kernel, subscribing again",
		  F_STR("source", names[source->which]), F_ERR(&err));
	stop_pollers(events);
	timer_start(events->retry, HOST_EVENTS_RETRY_MS);
}

static void start_pollers(struct host_events *events)
{
	for (size_t i = 0; i < WATCH_SOURCES; i++) {
		struct source *source = &events->sources[i];
		int fd = watch_fd(events->watch, (enum watch_source)i);

		if (fd < 0 || source->poller)
			continue;
		source->poller = poller_new(events->loop, fd, on_readable, source);
		poller_want(source->poller, POLL_READ);
	}
}

static bool is_complete(const struct host_events *events)
{
	for (size_t i = 0; i < WATCH_SOURCES; i++)
		if (!events->sources[i].poller)
			return false;
	return true;
}

static void subscribe_again(void *arg)
{
	struct host_events *events = arg;
	struct err err = {0};

	if (events->watch) {
		watch_retry(events->watch);
	} else {
		struct watch_event event = {.lost = true};

		events->watch = watch_open(&err);
		if (events->watch)
			events->fn(events->arg, &event);
	}
	if (events->watch)
		start_pollers(events);
	if (!is_complete(events))
		timer_start(events->retry, HOST_EVENTS_RETRY_MS);
}

struct host_events *host_events_new(struct loop *loop, struct watch *watch, watch_event_fn fn,
				    void *arg, struct metrics *metrics)
{
	struct host_events *events = mem_new(struct host_events);

	assert(fn);
	events->loop = loop;
	events->fn = fn;
	events->arg = arg;
	events->watch = watch;
	events->retry = timer_new(loop, subscribe_again, events);
	events->heard = metric_counter(metrics, "orbweaver_agent_host_events_total",
				       "Notifications of the kernel that concern NICs.", "source");
	for (size_t i = 0; i < WATCH_SOURCES; i++) {
		events->sources[i].owner = events;
		events->sources[i].which = (enum watch_source)i;
	}
	start_pollers(events);
	if (!is_complete(events))
		timer_start(events->retry, HOST_EVENTS_RETRY_MS);
	return events;
}

void host_events_free(struct host_events *events)
{
	if (!events)
		return;
	stop_pollers(events);
	timer_free(events->retry);
	mem_free(events);
}
