// SPDX-License-Identifier: Apache-2.0
/*
 * What session.c (nghttp2's callbacks, the connection) knows of stream.c (what is sent), which
 * stands below it.
 */
#pragma once

#include <nghttp2/nghttp2.h>

#include "lib/grpc/frame.h"
#include "lib/grpc/session.h"

/* A message that is queued. */
struct outgoing {
	struct outgoing *next;
	size_t len;
	size_t sent;
	uint8_t data[];
};

struct grpc_stream {
	struct grpc_session *session;
	struct grpc_stream *prev, *next;
	int32_t id;
	const struct grpc_stream_ops *ops; /* NULL: detached */
	void *arg;

	struct grpc_headers headers; /* the block that is arriving */
	bool has_headers;            /* the first block is complete */
	struct grpc_frames in;
	bool is_feeding;    /* messages of `in` are being handed out */
	bool input_is_over; /* the peer has ended, or we do not listen any more */
	bool peer_has_ended;

	struct outgoing *out;
	struct outgoing **out_end;
	size_t queued;
	bool has_begun;   /* our headers are submitted */
	bool is_deferred; /* nghttp2 has asked for data and got none */
	bool is_ending;   /* the end follows the queue */
	struct grpc_status status;
};

struct grpc_session {
	struct grpc_session_config config;
	nghttp2_session *h2;
	struct grpc_stream *first;
	size_t n_streams;
	size_t receiving; /* bytes of incomplete messages */
	bool is_mute;
	bool is_abandoned;
	bool is_ready;
	bool peer_goes_away;
};

/* Call an operation if anyone listens. */
#define TELL(stream_, op_, ...)                                                                    \
	do {                                                                                       \
		if (!(stream_)->session->is_mute && (stream_)->ops && (stream_)->ops->op_)         \
			(stream_)->ops->op_((stream_)->arg __VA_OPT__(, ) __VA_ARGS__);            \
	} while (0)

/* What nghttp2 refuses here is our mistake; it copies what it needs and memory does not run out. */
void grpc_h2_must(int result);

/* Say that there may be something to send. */
void grpc_wants_send(struct grpc_session *session);
/* Free the fields. */
void grpc_headers_done(struct grpc_headers *h);

/* Add a stream to the session, which owns it. */
struct grpc_stream *grpc_stream_new(struct grpc_session *session);
/* Take it out of its session and free it. */
void grpc_stream_free(struct grpc_stream *stream);
/*
 * Take no more input; drop what has arrived of a message, at once or, while it is being handed out,
 * after that.
 */
void grpc_stream_stop_input(struct grpc_stream *stream);
