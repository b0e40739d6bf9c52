/*
 * What every program of ours serves for people and machines that watch it: /metrics, /healthz and /readyz.
 */
#ifndef ORBWEAVER_LIB_HTTP_PROBES_H
#define ORBWEAVER_LIB_HTTP_PROBES_H

#include "lib/base/metrics.h"
#include "lib/http/health.h"
#include "lib/http/server.h"

/* The caller's, until the server's done callback. */
struct probes {
	struct http_route routes[3];
};

/*
 * listen: as in http_server_config, or "0": nothing is served and *ret_server is NULL. metrics, alive and ready are
 * borrowed like the routes. Errors: those of http_server_new, with the flag --metrics-addr in front.
 */
int probes_serve(struct probes *probes, struct loop *loop, const char *listen,
		 struct metrics *metrics, struct health *alive, struct health *ready,
		 struct http_server **ret_server, struct err *err);

#endif
