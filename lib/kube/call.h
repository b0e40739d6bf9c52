// SPDX-License-Identifier: Apache-2.0
/*
 * What client.c and call.c share: the client with its lanes, and one call. Calls of client.c go
 * down into call.c.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/base/map.h"
#include "lib/kube/answer.h"
#include "lib/kube/attempts.h"
#include "lib/kube/auth/credentials.h"
#include "lib/kube/client.h"
#include "lib/kube/connection.h"
#include "lib/kube/fence.h"
#include "lib/kube/handle.h"
#include "lib/kube/lane.h"

TAILQ_HEAD(call_list, kube_call);

/* A lane, and who waits for room on it. */
struct client_lane {
	struct kube_client *client;
	struct lane lane;
	struct call_list waiting; /* in the order of kube_call */
	size_t n_waiting;
};

struct kube_client {
	struct loop *loop;
	const struct kube_config *config;
	struct kube_credentials *credentials;
	struct deferred *starter;
	struct timer *later; /* calls wait for a connection that is being opened */
	struct fence *fence; /* the sockets of calls; nothing is written on those of watches */
	struct handle_pool handles;
	bool (*may_write)(void *arg);
	void *may_write_arg;
	void (*warned)(void *arg, const char *lines);
	void *warned_arg;
	struct client_lane lanes[2]; /* KUBE_LANE_… */
	struct call_list calls;      /* all that are not fenced */
	struct call_list writes;     /* the fenced ones */
	size_t n_writes;
	size_t n_sent_writes; /* those of them that curl has */
	bool in_callback;     /* curl called on_bytes or on_open, and may not be entered */
	struct metric *requests, *duration;
	struct attempts attempts;
	struct map refused; /* kinds that are not streamed, and since when: int64_t, clock_ms */
};

struct kube_call {
	struct kube_client *client;
	struct client_lane *lane;
	TAILQ_ENTRY(kube_call) link;    /* in calls or writes */
	TAILQ_ENTRY(kube_call) waiting; /* while queued */
	struct kube_request request;    /* with copies: path, body */
	char *path;
	struct handle handle;            /* while an attempt runs */
	struct connection_stream stream; /* its place on a connection */
	struct kube_credentials_wait wait;
	uint64_t secret_generation;
	/* pausing: the next attempt; else the end of patience: deadline or silence */
	struct timer *timer;
	struct answer answer;
	int64_t deadline_ms; /* clock_ms, or INT64_MAX */
	int64_t started_us;
	int64_t queued_us; /* when it began to wait for room */
	int64_t sent_us;   /* when this attempt began */
	int64_t heard_ms;  /* when this attempt began, or last received something */
	unsigned int attempts;
	bool queued;
	bool pinned; /* about one connection, and nowhere else */
	bool pausing;
	bool counted;  /* this attempt was, as a stream that began */
	bool rejected; /* one 401 was answered with fresh credentials */
	char curl_text[CURL_ERROR_SIZE];
};

/*
 * The first call that waits on its lane begins, or ends where it may not be sent. False: there is
 * no room for it now.
 */
bool call_start_queued(struct kube_call *call);

/*
 * Before curl gets a chance to move bytes: when the client may not write any more, connections that
 * hold bytes of writes are cut, and all writes end with "NotLeader".
 */
void call_end_fenced(struct kube_client *client);

/* Curl is done with the attempt of this handle: the call ends, or is tried again. */
void call_attempt_ended(CURL *easy, CURLcode code);

/*
 * Is a server there? Asks on this connection of the lane. HTTP/2 has PING for that, but libcurl's
 * multi interface does not send any. /livez is exempt from priority and fairness, so an overloaded
 * server answers, and a user that may not see it gets a response, too.
 */
void call_probe(struct client_lane *lane, struct connection *connection);
