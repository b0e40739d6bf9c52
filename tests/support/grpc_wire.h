// SPDX-License-Identifier: Apache-2.0
/*
 * The calls of a server without a socket: bytes in, bytes out. For tests that care for bytes, and
 * for fuzzing.
 */
#pragma once

#include "lib/base/str.h"
#include "lib/grpc/call.h"
#include "lib/grpc/session.h"
#include "lib/loop/loop.h"

struct wire {
	struct loop *loop;
	struct grpc_dispatch dispatch;
	struct grpc_session *session;
	struct strbuf out;
};

static void wire_opened(void *arg, struct grpc_stream *stream)
{
	struct wire *w = arg;

	grpc_dispatch_opened(&w->dispatch, stream);
}

static inline void wire_open(struct wire *w, const struct grpc_method *methods, size_t n_methods,
			     size_t message_max, void *arg)
{
	static const struct grpc_session_ops ops = {.opened = wire_opened};
	const struct grpc_session_config config = {
		.is_server = true,
		.message_max = message_max,
		.ops = &ops,
		.arg = w,
	};

	*w = (struct wire){.loop = loop_new()};
	w->dispatch = (struct grpc_dispatch){
		.loop = w->loop,
		.methods = methods,
		.n_methods = n_methods,
		.arg = arg,
		.message_max = message_max,
	};
	w->session = grpc_session_new(&config);
}

/* What the session has to say is added to out. False when the connection is at its end. */
static inline bool wire_pull(struct wire *w)
{
	const uint8_t *data = NULL;
	ssize_t len;

	while ((len = grpc_session_send(w->session, &data, NULL)) > 0)
		strbuf_add(&w->out, data, (size_t)len);
	return len == 0 && !grpc_session_is_over(w->session);
}

static inline bool wire_push(struct wire *w, const void *data, size_t len)
{
	if (grpc_session_receive(w->session, data, len, NULL) < 0)
		return false;
	return wire_pull(w);
}

static inline void wire_close(struct wire *w)
{
	grpc_session_abandon(w->session, 8 /* CANCEL */);
	grpc_session_free(w->session);
	grpc_dispatch_done(&w->dispatch);
	loop_free(w->loop);
	strbuf_done(&w->out);
}
