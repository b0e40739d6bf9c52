// SPDX-License-Identifier: Apache-2.0
/* Tables of one to three routes. */
#include "lib/http/probes.h"

#include <assert.h>

#include "lib/base/log.h"
#include "lib/base/str.h"

#define METRICS_ROUTE(metrics_)                                                                    \
	((struct http_route){.path = "/metrics",                                                   \
			     .methods = HTTP_GET,                                                  \
			     .handle = handle_metrics,                                             \
			     .arg = (metrics_)})
#define HEALTH_ROUTE(path_, health_)                                                               \
	((struct http_route){                                                                      \
		.path = (path_), .methods = HTTP_GET, .handle = health_handle, .arg = (health_)})

static void handle_metrics(const struct http_request *req, struct http_response *resp, void *arg)
{
	resp->content_type = METRICS_CONTENT_TYPE;
	metrics_render(arg, &resp->body);
}

static int serve_routes(struct loop *loop, const struct http_server_config *config,
			const char *flag, struct http_server **ret_server, struct err *err)
{
	*ret_server = NULL;
	if (str_eq(config->listen, "0"))
		return 0;
	*ret_server = http_server_new(loop, config, err);
	return *ret_server ? 0 : err_in(err, "--%s %s", flag, config->listen);
}

int probes_serve_metrics(struct probes *probes, struct loop *loop, const char *listen,
			 struct metrics *metrics, const struct probes_secure *secure,
			 struct http_server **ret_server, struct err *err)
{
	struct http_server_config config = {
		.name = "metrics",
		.listen = listen,
		.routes = probes->routes,
		.n_routes = 1,
		.connections_max = PROBES_METRICS_MAX,
		.metrics = metrics,
	};

	probes->routes[0] = METRICS_ROUTE(metrics);
	if (secure) {
		probes->routes[0].gate = secure->gate;
		config.certificate_pem = secure->certificate_pem;
		config.key_pem = secure->key_pem;
		config.tls = secure->tls;
	}
	if (serve_routes(loop, &config, "metrics-addr", ret_server, err) < 0)
		return -1;
	if (*ret_server)
		log_info("serving metrics", F_INT("port", http_server_port(*ret_server)),
			 F_BOOL("secure", secure != NULL));
	return 0;
}

int probes_serve_health(struct probes *probes, struct loop *loop, const char *listen,
			struct metrics *metrics, struct health *alive, struct health *ready,
			struct http_server **ret_server, struct err *err)
{
	const struct http_server_config config = {
		.name = "health",
		.listen = listen,
		.routes = probes->routes,
		.n_routes = 2,
		.connections_max = PROBES_HEALTH_MAX,
		.metrics = metrics,
	};

	probes->routes[0] = HEALTH_ROUTE("/healthz", alive);
	probes->routes[1] = HEALTH_ROUTE("/readyz", ready);
	if (serve_routes(loop, &config, "health-addr", ret_server, err) < 0)
		return -1;
	if (*ret_server)
		log_info("serving health", F_INT("port", http_server_port(*ret_server)));
	return 0;
}

int probes_serve(struct probes *probes, struct loop *loop, const char *listen,
		 struct metrics *metrics, const struct http_gate *gate, struct health *alive,
		 struct health *ready, struct http_server **ret_server, struct err *err)
{
	const struct http_server_config config = {
		.name = "metrics",
		.listen = listen,
		.routes = probes->routes,
		.n_routes = 3,
		.connections_max = PROBES_HEALTH_MAX,
		.metrics = metrics,
	};

	assert(listen);
	probes->routes[0] = METRICS_ROUTE(metrics);
	probes->routes[0].gate = gate;
	probes->routes[1] = HEALTH_ROUTE("/healthz", alive);
	probes->routes[2] = HEALTH_ROUTE("/readyz", ready);
	if (serve_routes(loop, &config, "metrics-addr", ret_server, err) < 0)
		return -1;
	if (*ret_server)
		log_info("serving metrics and health",
			 F_INT("port", http_server_port(*ret_server)));
	return 0;
}
