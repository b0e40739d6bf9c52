// SPDX-License-Identifier: Apache-2.0
/*
 * A session on a connected socket: reading, writing, and the end. Internal to lib/grpc.
 *
 * The descriptor is polled through lib/loop and not wrapped in a uv_pipe_t: nghttp2 produces bytes
 * when it is asked, which is what readiness is for; and libuv's pipe would raise SIGPIPE, cut a
 * long path silently (libuv 1.44) and remove a listening socket's path although another process may
 * own it by then.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/grpc/session.h"
#include "lib/loop/loop.h"

struct grpc_conn;

struct grpc_conn_ops {
	void (*opened)(void *arg, struct grpc_stream *stream); /* server only */
	void (*idle)(void *arg);                               /* optional: no stream is left */
	/*
	 * The connection is gone, and all streams are closed; free it now or later. Not called
	 * after grpc_conn_free.
	 */
	void (*closed)(void *arg, const struct err *why);
};

struct grpc_conn_config {
	bool is_server;
	size_t message_max;
	int64_t ready_ms; /* the peer's SETTINGS have to be here by then */
	const struct grpc_conn_ops *ops;
	void *arg;
};

/* Takes fd, which is connected and non-blocking. */
struct grpc_conn *grpc_conn_new(struct loop *loop, int fd, const struct grpc_conn_config *config);
/* At any time, also from callbacks; none comes after it, of streams neither. Accepts NULL. */
void grpc_conn_free(struct grpc_conn *conn);

struct grpc_session *grpc_conn_session(struct grpc_conn *conn);
/* Return why the connection is gone, NULL while it is there. Set before streams close. */
const struct err *grpc_conn_error(const struct grpc_conn *conn);
