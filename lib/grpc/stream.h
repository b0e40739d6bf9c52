// SPDX-License-Identifier: Apache-2.0
/*
 * One call on an HTTP/2 connection: header fields, messages, an end. Internal to lib/grpc.
 *
 * What a stream has to send waits in its own queue until the peer's windows and the socket take
 * it. Callbacks come from within grpc_session_receive and grpc_session_send.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/grpc/status.h"

struct grpc_session;
struct grpc_stream;

/* The fields that we look at in a block of header fields; NULL when absent. */
struct grpc_headers {
	char *method;
	char *path;
	char *http_status;
	char *content_type;
	char *encoding;
	char *timeout;
	char *status;
	char *text; /* grpc-message, as it came */
	size_t size;
	bool is_malformed; /* a field came twice, or has a NUL in it */
};

/* All optional. After `closed`, and after grpc_stream_detach, none is called. */
struct grpc_stream_ops {
	void (*headers)(void *arg, const struct grpc_headers *headers);
	/* A whole message, borrowed; data is NULL when len is 0. */
	void (*message)(void *arg, const void *data, size_t len);
	/*
	 * What the peer sends cannot be understood, or is too large; nothing more comes but
	 * `closed`.
	 */
	void (*failed)(void *arg, const struct grpc_status *why);
	/* The peer has said all, in an orderly way. */
	void (*ended)(void *arg);
	/* The stream is gone. h2_error as in RFC 9113 section 7. */
	void (*closed)(void *arg, uint32_t h2_error);
};

/* Call these operations with arg from now on. */
void grpc_stream_attach(struct grpc_stream *stream, const struct grpc_stream_ops *ops, void *arg);
/* Call no operation any more; the stream ends by itself. */
void grpc_stream_detach(struct grpc_stream *stream);

/*
 * Client: open a stream; timeout is a value of grpc-timeout, or NULL. All is borrowed. Return NULL
 * when the connection takes no new stream.
 */
struct grpc_stream *grpc_stream_open(struct grpc_session *session, const char *authority,
				     const char *path, const char *timeout,
				     const struct grpc_stream_ops *ops, void *arg);

/*
 * Queue a message, its frame head included; copied. Server: the response begins with the first
 * one.
 */
void grpc_stream_send(struct grpc_stream *stream, const void *frame, size_t len);
/* Take back what is queued and of which nothing has gone out yet. */
void grpc_stream_unsend(struct grpc_stream *stream);
/* Server: begin the response before there is a message. */
void grpc_stream_begin(struct grpc_stream *stream);
/* Client: end the request after what is queued. */
void grpc_stream_end(struct grpc_stream *stream);
/*
 * Server: end with this status, after what is queued. Without any message before, this is an
 * answer of trailers only; http_status is then its ":status", else unused.
 */
void grpc_stream_finish(struct grpc_stream *stream, const char *http_status,
			const struct grpc_status *status);
/* Send RST_STREAM and drop what is queued. */
void grpc_stream_reset(struct grpc_stream *stream, uint32_t h2_error);
/* Return the number of bytes that are queued. */
size_t grpc_stream_queued(const struct grpc_stream *stream);
