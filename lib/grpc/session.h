// SPDX-License-Identifier: Apache-2.0
/*
 * One HTTP/2 connection, without a socket: bytes in, bytes out, and streams that carry gRPC
 * messages. Server and client use it alike. Internal to lib/grpc.
 *
 * What a stream has to send waits in its own queue until the peer's windows and the socket take
 * it, so a slow reader costs what its streams have queued and nothing else. What it receives is
 * bounded by the size of a message per stream and by GRPC_RECEIVE_MAX for all streams together.
 *
 * Callbacks come from within grpc_session_receive and grpc_session_send. All functions but these
 * two and grpc_session_free may be called there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
#include "lib/grpc/stream.h"

struct grpc_session_ops {
	/* There may be something to send; also called when there is not. */
	void (*wants_send)(void *arg);
	/* The peer's SETTINGS are here: it speaks HTTP/2. */
	void (*ready)(void *arg);
	/* Server: a call begins; answer it with grpc_stream_attach. */
	void (*opened)(void *arg, struct grpc_stream *stream);
	/* The last stream has been closed. */
	void (*idle)(void *arg);
};

struct grpc_session_config {
	bool is_server;
	size_t message_max;
	const struct grpc_session_ops *ops;
	void *arg;
};

/* Return a new session; config is copied, its ops are borrowed. */
struct grpc_session *grpc_session_new(const struct grpc_session_config *config);
/* End all streams without a callback; the session must not be in use further up the stack. */
void grpc_session_free(struct grpc_session *session);
/* Make no callback after this. */
void grpc_session_mute(struct grpc_session *session);
/* Report to all streams that they are gone, with h2_error. */
void grpc_session_abandon(struct grpc_session *session, uint32_t h2_error);

/*
 * Take bytes from the peer. Return 0, or -1 with err when the connection cannot go on:
 *
 *   BadHttp2         the peer breaks HTTP/2
 *   PeerDoesNotRead  too many of our frames wait for it
 */
int grpc_session_receive(struct grpc_session *session, const void *data, size_t len,
			 struct err *err);
/*
 * Return the next bytes for the peer, borrowed until the next call, and their number; 0 when there
 * is nothing now, -1 with err when the connection cannot go on:
 *
 *   BadHttp2  nghttp2 refuses to go on
 */
ssize_t grpc_session_send(struct grpc_session *session, const uint8_t **ret_data, struct err *err);
/* True when the session neither reads nor writes any more: time to close. */
bool grpc_session_is_over(struct grpc_session *session);

/* Return the number of streams that exist. */
size_t grpc_session_n_streams(const struct grpc_session *session);
/* True when the peer has announced the end (GOAWAY): a client can open no new stream then. */
bool grpc_session_is_going_away(struct grpc_session *session);
/*
 * Server: announce the end; streams that exist go on, and those that are on their way still come.
 */
void grpc_session_announce_end(struct grpc_session *session);
/* Send GOAWAY; then the session is over. */
void grpc_session_end(struct grpc_session *session);
