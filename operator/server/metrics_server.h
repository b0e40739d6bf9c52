// SPDX-License-Identifier: Apache-2.0
/*
 * Where the operator serves /metrics: to all clients, or by HTTPS to those that may
 * (metrics_access.h).
 */
#pragma once

#include <stdbool.h>

#include "lib/base/metrics.h"
#include "lib/http/server.h"
#include "lib/kube/client.h"
#include "lib/loop/loop.h"

struct metrics_server;

/* All borrowed; metrics as long as the server lives, the rest during the call. */
struct metrics_server_config {
	const char *listen; /* as in http_server_config, or "0": nothing is served */
	const char *ns;     /* of the Service, for the certificate of our own */
	bool secure;
	/*
	 * A folder with tls.crt and tls.key in PEM, as a Secret of the type kubernetes.io/tls is
	 * mounted; NULL: none. Looked at every ten seconds. As long as neither file is there, the
	 * certificate is our own, which clients cannot verify. A pair that cannot be used is
	 * logged, and the last one kept.
	 */
	const char *certificate_path;
	struct http_tls_policy tls;
	struct metrics *metrics;
};

#define METRICS_SERVER_CERTIFICATE "tls.crt"
#define METRICS_SERVER_KEY         "tls.key"

/* Errors: those of probes_serve_metrics. client is borrowed. */
int metrics_server_new(struct loop *loop, struct kube_client *client,
		       const struct metrics_server_config *config, struct metrics_server **ret,
		       struct err *err);

/*
 * Release everything, then done(arg) from the loop; the loop has to run until then. Before the
 * client.
 */
void metrics_server_close(struct metrics_server *server, void (*done)(void *arg), void *arg);
