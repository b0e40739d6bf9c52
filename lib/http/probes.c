/*
 * Metrics and health on one address. See the header.
 */
#include "lib/http/probes.h"

#include "lib/base/log.h"
#include "lib/base/str.h"

static void handle_metrics(const struct http_request *req, struct http_response *resp, void *arg)
{
	resp->content_type = METRICS_CONTENT_TYPE;
	metrics_render(arg, &resp->body);
}

int probes_serve(struct probes *probes, struct loop *loop, const char *listen,
		 struct metrics *metrics, struct health *alive, struct health *ready,
		 struct http_server **ret_server, struct err *err)
{
	struct http_server_config config = {
		.name = "metrics",
		.listen = listen,
		.routes = probes->routes,
		.n_routes = ARRAY_LEN(probes->routes),
		.metrics = metrics,
	};

	*ret_server = NULL;
	if (str_eq(listen, "0"))
		return 0;
	probes->routes[0] = (struct http_route){"/metrics", HTTP_GET, 0, handle_metrics, metrics};
	probes->routes[1] = (struct http_route){"/healthz", HTTP_GET, 0, health_handle, alive};
	probes->routes[2] = (struct http_route){"/readyz", HTTP_GET, 0, health_handle, ready};
	*ret_server = http_server_new(loop, &config, err);
	if (!*ret_server)
		return err_in(err, "--metrics-addr %s", listen);
	log_info("serving metrics and health", F_INT("port", http_server_port(*ret_server)));
	return 0;
}
