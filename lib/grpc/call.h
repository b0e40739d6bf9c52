// SPDX-License-Identifier: Apache-2.0
/*
 * Calls of a server: from a stream to a handler and back. Knows no sockets. Internal to lib/grpc.
 */
#pragma once

#include "lib/grpc/server.h"
#include "lib/grpc/session.h"

/* What all calls of a server share. The fields up to `calls` are set by the owner and stay. */
struct grpc_dispatch {
	struct loop *loop;
	const struct grpc_method *methods;
	size_t n_methods;
	void *arg;
	size_t message_max;
	struct metric *counter; /* labels method, code */

	struct grpc_call *calls; /* those that live */
	bool is_closing;         /* new calls are refused */
};

/* A client has opened a stream. */
void grpc_dispatch_opened(struct grpc_dispatch *dispatch, struct grpc_stream *stream);

/*
 * New calls are refused from now on, streaming calls end as Unavailable. Not from within a
 * handler.
 */
void grpc_dispatch_close(struct grpc_dispatch *dispatch);
/* All calls that are not answered end as Unavailable. Not from within a handler. */
void grpc_dispatch_cut_off(struct grpc_dispatch *dispatch);
/* Free the calls, after grpc_dispatch_cut_off, and when no session will speak of them any more. */
void grpc_dispatch_done(struct grpc_dispatch *dispatch);
