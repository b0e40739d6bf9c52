// SPDX-License-Identifier: Apache-2.0
/*
 * A gRPC server on a UNIX socket: a table of methods, unary and server-streaming.
 *
 *	static void allocate(struct grpc_call *call, const struct ProtobufCMessage *request,
 *			     void *arg)
 *	{
 *		const DevicePlugin__AllocateRequest *req = (const void *)request;
 *		...
 *		grpc_call_reply(call, &response.base);
 *	}
 *
 *	static const struct grpc_method methods[] = {
 *		{"/v1beta1.DevicePlugin/Allocate", &device_plugin__allocate_request__descriptor,
 *		 allocate},
 *	};
 *
 * The rest answers itself: Unimplemented for other methods and for compressed messages, Internal
 * for bytes that are not a message, ResourceExhausted for too many of them, DeadlineExceeded when
 * the client's time is up.
 *
 * Protocol: grpc/grpc, doc/PROTOCOL-HTTP2.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/metrics.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/status.h"
#include "lib/loop/loop.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

struct grpc_call;
struct grpc_server;

struct grpc_method {
	const char *path; /* "/package.Service/Method" */
	const struct ProtobufCMessageDescriptor *request;
	/*
	 * Called with the one message of the request, borrowed until it returns. It answers, now
	 * or later, with messages (streaming) and exactly one of grpc_call_reply, grpc_call_finish
	 * and grpc_call_fail. Who answers later says so with grpc_call_on_end before it returns.
	 */
	void (*handle)(struct grpc_call *call, const struct ProtobufCMessage *request, void *arg);
};

struct grpc_server_config {
	const char *path;                  /* of the socket */
	unsigned int mode;                 /* its permissions; 0 is 0600 */
	const struct grpc_method *methods; /* borrowed as long as the server lives */
	size_t n_methods;
	void *arg;               /* for the handlers */
	size_t message_max;      /* in both directions; 0 is GRPC_MESSAGE_MAX */
	size_t connections_max;  /* 0 is GRPC_CONNECTIONS_MAX */
	struct metrics *metrics; /* grpc_server_calls_total{method,code}; may be NULL */
};

/*
 * Listen. The socket appears under its name at once with its permissions, and replaces one that is
 * there, whichever process listens on that; connections to the old one go on. Returns NULL with
 * err: ERR_INVALID "BadSocketPath"; ERR_HOST "SocketNotMade" with errno, "SocketPathTaken" when
 * there is something that is not a socket.
 */
struct grpc_server *grpc_server_new(struct loop *loop, const struct grpc_server_config *config,
				    struct err *err);

/*
 * The end. No connection is taken any more, and the socket is removed if the path still leads to
 * ours. Clients get GOAWAY, streaming calls end as Unavailable at once; other calls that are not
 * answered yet have drain_ms for it. grpc_call_on_end is called for every call that is cut off.
 * Then done(arg) is called from a later turn of the loop, and the server is gone. Accepts NULL
 * (done is not called then).
 */
void grpc_server_close(struct grpc_server *server, int64_t drain_ms, void (*done)(void *arg),
		       void *arg);

/*
 * Listen at the path again, for when a user has removed the socket; connections go on. Returns 0,
 * or -1 with err as grpc_server_new and nothing changed. Not after grpc_server_close.
 */
int grpc_server_listen_again(struct grpc_server *server, struct err *err);

/* Does the path still lead to the socket that we listen to? */
bool grpc_server_owns_path(const struct grpc_server *server);

/* ---- calls: for handlers --------------------------------------------------------------------- */

/*
 * ended(arg, why) is called once if the call ends before the handler has answered: GRPC_CANCELLED
 * when the client cancelled or went away, GRPC_DEADLINE_EXCEEDED, GRPC_UNAVAILABLE when the server
 * closes. The call must not be used after it, nor after an answer.
 */
void grpc_call_on_end(struct grpc_call *call, void (*ended)(void *arg, enum grpc_code why),
		      void *arg);

/* The answer of a unary call. A message above the limit becomes ResourceExhausted. */
void grpc_call_reply(struct grpc_call *call, const struct ProtobufCMessage *response);

/*
 * Streaming, for messages that are a whole state each: what is queued and has not begun to leave
 * is forgotten, then this one is queued. However slow the client is, at most two messages wait. -1
 * with err: ERR_INVALID "MessageTooLarge".
 */
int grpc_call_send_latest(struct grpc_call *call, const struct ProtobufCMessage *message,
			  struct err *err);
/* Bytes that have not been handed to the connection yet. */
size_t grpc_call_queued_bytes(const struct grpc_call *call);
/* Streaming: end with OK after what is queued. */
void grpc_call_finish(struct grpc_call *call);

/* End with an error, after what is queued. code is not GRPC_OK. */
void grpc_call_fail(struct grpc_call *call, enum grpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
