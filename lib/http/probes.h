// SPDX-License-Identifier: Apache-2.0
/*
 * What every program of ours serves for people and machines that watch it: /metrics, /healthz and
 * /readyz.
 *
 * Metrics are for all clients of their Service. Probes are for the kubelet: on a listener of their
 * own strangers at the other ports cannot keep it from being answered.
 */
#pragma once

#include "lib/base/metrics.h"
#include "lib/http/health.h"
#include "lib/http/server.h"

/*
 * Connections of these servers, of which few are ever needed; together with a webhook's they stay
 * below 1,024 descriptors.
 */
#define PROBES_METRICS_MAX 128
#define PROBES_HEALTH_MAX  384

/* The routes of one listener. The caller's, until the server's done callback. */
struct probes {
	struct http_route routes[3];
};

/* HTTPS, and only for those whom the gate lets in. All borrowed; the gate like the routes. */
struct probes_secure {
	const char *certificate_pem, *key_pem;
	struct http_tls_policy tls;
	const struct http_gate *gate;
};

/*
 * listen: as in http_server_config, or "0": nothing is served and *ret_server is NULL. metrics,
 * alive and ready are borrowed like the routes. secure NULL: plain HTTP, for all clients. Errors:
 * those of http_server_new, with the flag in front: --metrics-addr, or --health-addr.
 */
int probes_serve_metrics(struct probes *probes, struct loop *loop, const char *listen,
			 struct metrics *metrics, const struct probes_secure *secure,
			 struct http_server **ret_server, struct err *err);
int probes_serve_health(struct probes *probes, struct loop *loop, const char *listen,
			struct metrics *metrics, struct health *alive, struct health *ready,
			struct http_server **ret_server, struct err *err);
/*
 * Both on one address, that of --metrics-addr. gate: of /metrics, borrowed like the routes; NULL:
 * none.
 */
int probes_serve(struct probes *probes, struct loop *loop, const char *listen,
		 struct metrics *metrics, const struct http_gate *gate, struct health *alive,
		 struct health *ready, struct http_server **ret_server, struct err *err);
