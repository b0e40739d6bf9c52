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
#ifndef ORBWEAVER_LIB_GRPC_SESSION_H
#define ORBWEAVER_LIB_GRPC_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "lib/base/err.h"
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
	/* The queue has been handed to the connection to the last byte. */
	void (*drained)(void *arg);
	/* The stream is gone. h2_error as in RFC 9113 section 7. */
	void (*closed)(void *arg, uint32_t h2_error);
};

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

struct grpc_session *grpc_session_new(const struct grpc_session_config *config);
/* Ends all streams without a callback; the session must not be in use further up the stack. */
void grpc_session_free(struct grpc_session *session);
/* No callback comes after this. */
void grpc_session_mute(struct grpc_session *session);
/* Tell all streams that they are gone, with h2_error. */
void grpc_session_abandon(struct grpc_session *session, uint32_t h2_error);

/*
 * Take bytes from the peer. -1 with err ("BadHttp2", "PeerDoesNotRead") when the connection cannot
 * go on.
 */
int grpc_session_receive(struct grpc_session *session, const void *data, size_t len,
			 struct err *err);
/*
 * The next bytes for the peer, borrowed until the next call; returns their number, 0 when there is
 * nothing now, -1 with err when the connection cannot go on.
 */
ssize_t grpc_session_send(struct grpc_session *session, const uint8_t **ret_data, struct err *err);
/* Neither reads nor writes any more: time to close. */
bool grpc_session_is_over(struct grpc_session *session);

size_t grpc_session_n_streams(const struct grpc_session *session);
/*
 * Has the peer announced the end of this connection (GOAWAY)? Client: no new stream can be opened
 * then.
 */
bool grpc_session_is_going_away(struct grpc_session *session);
void grpc_session_ping(struct grpc_session *session);
/*
 * Server: announce the end; streams that exist go on, and those that are on their way still come.
 */
void grpc_session_announce_end(struct grpc_session *session);
/* Send GOAWAY; then the session is over. */
void grpc_session_end(struct grpc_session *session);

/* ---- streams ---- */

void grpc_stream_attach(struct grpc_stream *stream, const struct grpc_stream_ops *ops, void *arg);
/* Nobody wants to hear of it any more; it ends by itself. */
void grpc_stream_detach(struct grpc_stream *stream);

/* Client: open a stream; timeout is a value of grpc-timeout, or NULL. All is borrowed. */
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
/* Client: nothing more comes after what is queued. */
void grpc_stream_end(struct grpc_stream *stream);
/*
 * Server: end with this status, after what is queued. Without any message before, this is an
 * answer of trailers only; http_status is then its ":status", else unused.
 */
void grpc_stream_finish(struct grpc_stream *stream, const char *http_status,
			const struct grpc_status *status);
/* RST_STREAM; what is queued is dropped. */
void grpc_stream_reset(struct grpc_stream *stream, uint32_t h2_error);
/* Bytes that are queued. */
size_t grpc_stream_queued(const struct grpc_stream *stream);

#endif
