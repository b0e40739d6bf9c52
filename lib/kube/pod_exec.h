// SPDX-License-Identifier: Apache-2.0
/*
 * A command in a container of a pod, run by the API server's exec over a WebSocket: `kubectl exec`
 * without a terminal and without input.
 *
 * Each has a connection of its own, made by libcurl with the address, trust, proxy and credentials
 * of the client's other calls. The right that is needed is `get` and, on newer servers, `create` of
 * pods/exec.
 *
 * Facts: k8s.io/apimachinery, pkg/util/remotecommand (the protocol's versions and what channel 3
 * says), k8s.io/kubelet, pkg/cri/streaming/remotecommand/websocket.go (a message's first byte is
 * its channel).
 */
#ifndef ORBWEAVER_LIB_KUBE_POD_EXEC_H
#define ORBWEAVER_LIB_KUBE_POD_EXEC_H

#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/kube/client.h"

/* The most that is taken of both outputs together. */
#define POD_EXEC_MAX_OUTPUT (1024 * 1024)

struct pod_exec;

struct pod_exec_request {
	const char *ns, *pod, *container;
	const char *const *argv; /* ends with NULL */
	int64_t timeout_ms;      /* the connection included */
	/*
	 * Called once, never from inside pod_exec_start; the exec is freed afterwards. err is NULL
	 * when the command has ended: with exit_code, and what it printed on stdout and stderr
	 * (NUL-terminated, borrowed). Errors: those of client.h; "NotFound", "Forbidden",
	 * "BadRequest" (the container does not run); "ExecFailed": the command could not be
	 * started, in the runtime's words; "BadWebSocket", "ConnectionLost", "DeadlineExceeded",
	 * "OutputTooLong".
	 */
	void (*done)(void *arg, int exit_code, const char *out, const char *errors,
		     const struct err *err);
	void *arg;
};

/* What the request has is copied. The client must outlive it. */
struct pod_exec *pod_exec_start(struct kube_client *client, const struct pod_exec_request *request);

/*
 * End the connection without a callback; what the runtime does with the command is its affair. NULL
 * is fine. Not from inside its callback.
 */
void pod_exec_cancel(struct pod_exec *exec);

#endif
