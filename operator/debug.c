// SPDX-License-Identifier: Apache-2.0
/*
 * program.c opens the listener at once, and attaches manager and client when they exist. Each page
 * is built from their accessors at the time of the request; nothing is kept for it.
 */
#include "operator/debug.h"

#include <assert.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/queue.h"
#include "operator/dependency_health.h"

/* Longer specs of log levels are nobody's. */
#define LOG_LEVEL_MAX 1024

/* Shown on a page. */
enum { CONNECTIONS_MAX = 64 };

struct debug {
	struct http_server *server;
	struct http_route routes[5];
	const struct manager *manager; /* NULL at first, as the client */
	const struct kube_client *client;
	char *log_level; /* as set last */
	bool all_debug;  /* toggled */
	void (*done)(void *arg);
	void *arg;
};

static json_t *queues_json(const struct debug *debug)
{
	json_t *page = json_object();

	for (enum controller_id id = 0; id < CONTROLLER_COUNT; id++) {
		const struct queue *queue = manager_queue(debug->manager, id);
		json_t *counts = json_need_object(page, controllers[id].name);

		json_put_int(counts, "waiting", (int64_t)queue_waiting(queue, QUEUE_MAIN));
		json_put_int(counts, "waitingForQuiet", (int64_t)queue_waiting(queue, QUEUE_LATER));
		json_put_int(counts, "working", (int64_t)queue_working(queue));
		json_put_int(counts, "delayed", (int64_t)queue_delayed(queue));
	}
	return page;
}

static void add_trouble(void *arg, const char *name, const char *reason, const char *text)
{
	json_t *entry = json_need_object(arg, name);

	json_put_str(entry, "reason", reason);
	json_put_str(entry, "message", text);
}

static json_t *caches_json(const struct debug *debug)
{
	const struct mirror *mirror = manager_sources(debug->manager)->mirror;
	json_t *page = json_object();

	for (const struct operator_kind *row = operator_kinds; row->kind; row++) {
		const struct informer_health health = mirror_health(mirror, row->kind);
		json_t *entry = json_need_object(page, row->kind);

		json_put_int(entry, "objects", (int64_t)cache_len(mirror_cache(mirror, row->kind)));
		json_put(entry, "resourceVersion",
			 json_fmt("%llu", (unsigned long long)health.version));
		json_put_int(entry, "unreadable", (int64_t)health.unreadable);
		json_put_bool(entry, "synced", mirror_is_synced(mirror, row->kind));
	}
	dependency_health_visit(manager_troubles(debug->manager), add_trouble, page);
	return page;
}

static json_t *errors_json(const struct debug *debug)
{
	return json_deep_copy(manager_errors(debug->manager));
}

static json_t *connections_json(const struct debug *debug)
{
	struct kube_connection connections[CONNECTIONS_MAX];
	size_t n = kube_client_connections(debug->client, connections, CONNECTIONS_MAX);
	json_t *page = json_array();

	for (size_t i = 0; i < n && i < CONNECTIONS_MAX; i++) {
		const struct kube_connection *c = &connections[i];

		json_array_append_new(
			page,
			json_pack("{s:s, s:b, s:I, s:I, s:I}", "carries",
				  c->lane == KUBE_LANE_WATCHES ? "watches" : "calls", "retired",
				  c->retired, "streams", (json_int_t)c->streams, "ageMs",
				  (json_int_t)c->age_ms, "silentMs", (json_int_t)c->silent_ms));
	}
	return page;
}

static void answer_page(const struct debug *debug, struct http_response *resp,
			json_t *(*page)(const struct debug *debug))
{
	json_auto_t *value = NULL;

	if (!debug->manager) {
		resp->status = 503;
		strbuf_adds(&resp->body, "the API server has not answered yet\n");
		return;
	}
	value = page(debug);
	resp->content_type = HTTP_JSON;
	json_write(value, &resp->body);
	strbuf_addc(&resp->body, '\n');
}

static void handle_queues(const struct http_request *req, struct http_response *resp, void *arg)
{
	answer_page(arg, resp, queues_json);
}

static void handle_caches(const struct http_request *req, struct http_response *resp, void *arg)
{
	answer_page(arg, resp, caches_json);
}

static void handle_errors(const struct http_request *req, struct http_response *resp, void *arg)
{
	answer_page(arg, resp, errors_json);
}

static void handle_connections(const struct http_request *req, struct http_response *resp,
			       void *arg)
{
	answer_page(arg, resp, connections_json);
}

static void handle_log_level(const struct http_request *req, struct http_response *resp, void *arg)
{
	struct debug *debug = arg;
	struct err err = {0};

	if (req->method == HTTP_PUT) {
		auto_free char *spec = str_ndup(req->body, strcspn(req->body, "\r\n"));

		if (log_configure(spec, &err) < 0) {
			resp->status = 400;
			strbuf_addf(&resp->body, "%s\n", err.text);
			return;
		}
		str_replace(&debug->log_level, take_ptr(spec));
		debug->all_debug = false;
		log_info("log level set", F_STR("log_level", debug->log_level));
	}
	strbuf_addf(&resp->body, "%s\n", debug->all_debug ? "debug" : debug->log_level);
}

void debug_toggle_log(struct debug *debug)
{
	debug->all_debug = !debug->all_debug;
	(void)log_configure(debug->all_debug ? "debug" : debug->log_level, NULL);
	log_info("log level toggled by SIGUSR1",
		 F_STR("log_level", debug->all_debug ? "debug" : debug->log_level));
}

struct debug *debug_new(struct loop *loop, const char *listen, const char *log_level,
			struct err *err)
{
	struct debug *debug = mem_new(struct debug);
	struct http_server_config config = {
		.name = "debug",
		.listen = listen,
		.routes = debug->routes,
		.n_routes = ARRAY_LEN(debug->routes),
	};

	assert(listen && log_level);
	debug->log_level = str_dup(log_level);
	debug->routes[0] = (struct http_route){.path = "/debug/queues",
					       .methods = HTTP_GET,
					       .handle = handle_queues,
					       .arg = debug};
	debug->routes[1] = (struct http_route){.path = "/debug/caches",
					       .methods = HTTP_GET,
					       .handle = handle_caches,
					       .arg = debug};
	debug->routes[2] = (struct http_route){.path = "/debug/errors",
					       .methods = HTTP_GET,
					       .handle = handle_errors,
					       .arg = debug};
	debug->routes[3] = (struct http_route){.path = "/debug/loglevel",
					       .methods = HTTP_GET | HTTP_PUT,
					       .body_max = LOG_LEVEL_MAX,
					       .handle = handle_log_level,
					       .arg = debug};
	debug->routes[4] = (struct http_route){.path = "/debug/connections",
					       .methods = HTTP_GET,
					       .handle = handle_connections,
					       .arg = debug};
	if (str_eq(listen, "0"))
		return debug;
	debug->server = http_server_new(loop, &config, err);
	if (!debug->server) {
		err_in(err, "--debug-addr %s", listen);
		mem_free(debug->log_level);
		mem_free(debug);
		return NULL;
	}
	log_info("serving debug pages", F_INT("port", http_server_port(debug->server)));
	return debug;
}

void debug_attach(struct debug *debug, const struct manager *manager,
		  const struct kube_client *client)
{
	assert(manager && client && !debug->manager);
	debug->manager = manager;
	debug->client = client;
}

static void on_closed(void *arg)
{
	struct debug *debug = arg;
	void (*done)(void *arg) = debug->done;
	void *done_arg = debug->arg;

	mem_free(debug->log_level);
	mem_free(debug);
	done(done_arg);
}

void debug_close(struct debug *debug, void (*done)(void *arg), void *arg)
{
	assert(done && !debug->done);
	debug->done = done;
	debug->arg = arg;
	if (debug->server)
		http_server_close(take_ptr(debug->server), on_closed, debug);
	else
		on_closed(debug);
}
