// SPDX-License-Identifier: Apache-2.0
/*
 * What comes out of an exec: messages of the WebSocket to two outputs and an exit status. Pure.
 */
#ifndef ORBWEAVER_LIB_KUBE_EXEC_STREAM_H
#define ORBWEAVER_LIB_KUBE_EXEC_STREAM_H

#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/str.h"

/* In the order that we like them. Version 5 differs in how input ends, of which we have none. */
#define EXEC_STREAM_PROTOCOLS "v5.channel.k8s.io, v4.channel.k8s.io"

struct exec_stream {
	struct strbuf out, errors;
	struct strbuf status; /* what channel 3 said: a metav1.Status as JSON */
};

/*
 * A message: a channel's number, and its bytes. Channels that nobody has are passed over. A
 * websocket_message_fn; errors: ERR_TRANSIENT "OutputTooLong".
 */
int exec_stream_message(void *arg, const char *bytes, size_t len, struct err *err);

/*
 * How the command ended, once no more comes. Returns 0 with its exit code, or -1 with err:
 * ERR_TRANSIENT "ExecFailed": it was not started; "ConnectionLost": nothing was said about it.
 */
int exec_stream_end(const struct exec_stream *stream, int *ret_exit_code, struct err *err);

void exec_stream_done(struct exec_stream *stream);

#endif
