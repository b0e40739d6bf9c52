// SPDX-License-Identifier: Apache-2.0
/*
 * A gRPC client on a UNIX socket: unary and server-streaming calls over one connection.
 *
 *	client = grpc_client_new(loop, &(struct grpc_client_config){.path = "/run/x.sock"}, &err);
 *	...
 *	grpc_client_call(client, &(struct grpc_request){
 *		.path = "/v1beta1.Registration/Register",
 *		.message = &request.base,
 *		.response = &device_plugin__empty__descriptor,
 *		.timeout_ms = 15000,
 *		.done = registered,
 *		.arg = plugin,
 *	}, &err);
 *
 * Nothing waits, and nothing is tried again: when the connection is gone, free the client and make
 * another one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/grpc/limits.h"
#include "lib/grpc/status.h"
#include "lib/loop/loop.h"

struct ProtobufCMessage;
struct ProtobufCMessageDescriptor;

struct grpc_client;
struct grpc_client_call;

struct grpc_client_config {
	const char *path; /* of the socket */
	/*
	 * Who connects when we may not: returns a connected descriptor, non-blocking and
	 * close-on-exec, which is the client's, or -1 with errno set. NULL: connect(2) to the path.
	 */
	int (*connect)(void *connect_arg);
	void *connect_arg;
	const char *authority; /* NULL is "localhost" */
	int64_t connect_ms;    /* 0 is GRPC_CONNECT_MS */
	size_t message_max;    /* in both directions; 0 is GRPC_MESSAGE_MAX */
	/* The connection is gone; all calls have ended. Optional. The client may be freed here. */
	void (*closed)(void *arg, const struct err *why);
	void *arg;
};

/*
 * Connect. Returns NULL with err: ERR_INVALID "BadSocketPath"; ERR_HOST "SocketUnavailable" with
 * errno: ENOENT when there is no socket, ECONNREFUSED when no process listens, EAGAIN when the
 * process that listens does not take connections.
 */
struct grpc_client *grpc_client_new(struct loop *loop, const struct grpc_client_config *config,
				    struct err *err);
/*
 * At any time, also from callbacks. Calls are cancelled; no callback comes after it. Accepts NULL.
 */
void grpc_client_free(struct grpc_client *client);

struct grpc_request {
	const char *path; /* "/package.Service/Method" */
	const struct ProtobufCMessage *message;
	const struct ProtobufCMessageDescriptor *response; /* static, as the generated ones are */
	bool is_streaming;  /* any number of messages may come, instead of one */
	int64_t timeout_ms; /* 0: no deadline */
	/*
	 * A message of the response, borrowed. A unary call has it just before done, and only when
	 * all went well.
	 */
	void (*message_fn)(void *arg, const struct ProtobufCMessage *message);
	/* The end, called once; GRPC_OK is the only success. The call is gone. */
	void (*done)(void *arg, const struct grpc_status *status);
	void *arg;
};

/*
 * Begin a call; *request is borrowed. Callbacks come from the loop, never from here. Returns NULL
 * with err: ERR_TRANSIENT "Unavailable" when the connection is gone or takes no more calls,
 * ERR_INVALID "MessageTooLarge".
 *
 * How calls end otherwise: with the server's status; DeadlineExceeded; Unavailable when the
 * connection is lost; Internal when the server's answer is malformed; ResourceExhausted when it is
 * too large.
 */
struct grpc_client_call *grpc_client_call(struct grpc_client *client,
					  const struct grpc_request *request, struct err *err);
