// SPDX-License-Identifier: Apache-2.0
/*
 * What the agent says goes to the device plugins and to the driver of claims; what they report goes
 * back as one state. Between the agent's channel and device_plugins.c, dra_driver.c.
 */
#include "nodeagent/kubelet/kubeletd_server.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_paths.h"
#include "nodeagent/kubelet/device_plugins.h"
#include "nodeagent/kubelet/dra_driver.h"
#include "nodeagent/process/allocation_epoch.h"
#include "nodeagent/process/channel.h"

/* How old the agent's copy of our metrics may be. */
enum { COUNTING_MS = 10000 };

struct kubeletd_server {
	struct kubeletd_server_config config;
	struct metrics *metrics;
	struct device_plugins *plugins;
	struct gpu_questions *questions;
	struct dra_driver *driver; /* NULL: none */
	struct deferred *unheard;  /* claims that no agent was there to be asked about */
	struct channel *agent;     /* NULL: none */
	json_t *pools;             /* NULL: none yet */
	int64_t number;            /* of the pools, as the agent there counts */
	struct deferred *saying;
	struct timer *counting;
	json_t *said; /* the last state that this agent was sent */
	bool has_offered;
	void (*done)(void *arg);
	void *done_arg;
};

/* ---- to the agent ---------------------------------------------------------------------------- */

/* Takes body. */
static void say(const struct kubeletd_server *server, const char *what, json_t *body)
{
	json_auto_t *message = json_object();

	json_put(message, what, body);
	if (server->agent)
		channel_send(server->agent, message);
}

/* What claims have, for a message. */
static void put_prepared(const struct kubeletd_server *server, json_t *body)
{
	const json_t *prepared = dra_driver_prepared(server->driver);

	if (server->config.dra)
		json_put(body, "prepared",
			 prepared ? json_incref((json_t *)prepared) : json_null());
}

static json_t *state_of(const struct kubeletd_server *server)
{
	auto_strbuf struct strbuf text = {0};
	json_t *state = json_object();

	metrics_render(server->metrics, &text);
	json_put_int(state, "of", server->number);
	json_put(state, "status", device_plugins_status(server->plugins));
	json_put_bool(state, "served", device_plugins_are_served(server->plugins));
	json_put_str(state, "metrics", strbuf_str(&text));
	put_prepared(server, state);
	return state;
}

static void say_state(void *arg)
{
	struct kubeletd_server *server = arg;
	json_auto_t *state = state_of(server);

	if (!server->agent || json_same(state, server->said))
		return;
	say(server, "state", json_incref(state));
	json_replace(&server->said, take_ptr(state));
}

/* Counters go on without anything else that changes. */
static void on_counting(void *arg)
{
	struct kubeletd_server *server = arg;

	timer_start(server->counting, COUNTING_MS);
	deferred_run(server->saying);
}

static void on_offer_changed(void *arg)
{
	const struct kubeletd_server *server = arg;

	deferred_run(server->saying);
}

static void emit_event(void *arg, bool warning, const char *reason, const char *message)
{
	json_t *event = json_object();

	json_put_bool(event, "warning", warning);
	json_put_str(event, "reason", reason);
	json_put_str(event, "message", message);
	say(arg, "event", event);
}

static void on_removed(void *arg)
{
	const struct kubeletd_server *server = arg;

	if (server->config.removed)
		server->config.removed(server->config.arg);
}

static void on_device_allocated(void *arg)
{
	const struct kubeletd_server *server = arg;

	allocation_epoch_note(server->config.giving);
	say(server, "allocated", json_true());
	deferred_run(server->saying);
}

static void on_ask(void *arg, const json_t *claim)
{
	const struct kubeletd_server *server = arg;
	json_auto_t *request = json_copy((json_t *)claim);

	if (!server->agent) {
		deferred_run(server->unheard);
		return;
	}
	json_put_str(request, "id", json_str_at(claim, "uid"));
	json_put_str(request, "kind", "claim");
	channel_send(server->agent, request);
}

static void on_unheard(void *arg)
{
	const struct kubeletd_server *server = arg;

	dra_driver_forget(server->driver);
}

static bool on_gpu_question(void *arg, const json_t *request)
{
	const struct kubeletd_server *server = arg;

	if (server->agent)
		channel_send(server->agent, request);
	return server->agent != NULL;
}

/* ---- from the agent -------------------------------------------------------------------------- */

static void on_agent_lost(void *arg, const struct err *err)
{
	struct kubeletd_server *server = arg;

	log_warn("agent has gone, keeping its offers", F_ERR(err));
	channel_free(take_ptr(server->agent));
	gpu_questions_forget(server->questions);
	if (server->driver)
		dra_driver_forget(server->driver);
}

/* What of the agent's pools pods may get. New. */
static json_t *keep_allowed(const struct kubeletd_server *server, const json_t *pools)
{
	auto_free char *cause = NULL;
	json_t *allowed = pools_keep_allowed(pools, server->config.device_paths, &cause);

	if (cause)
		log_warn("the agent offers what pods may not get", F_STR("why", cause));
	return allowed;
}

static void take_pools(struct kubeletd_server *server, const json_t *pools, int64_t number)
{
	json_auto_t *allowed = keep_allowed(server, pools);

	server->number = number;
	json_replace(&server->pools, json_incref((json_t *)pools));
	device_plugins_set(server->plugins, allowed);
	deferred_run(server->saying);
	if (server->has_offered || json_array_size(json_at(pools, "resources")) == 0)
		return;
	server->has_offered = true;
	server->config.offering(server->config.arg);
}

static bool all_named(const json_t *list, const char *key)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry)
		if (str_empty(json_str_at(entry, key)))
			return false;
	return json_is_array(list);
}

/* As far as a device plugin relies on it. */
static bool are_pools(const json_t *pools)
{
	const json_t *resources = json_at(pools, "resources"), *resource;
	size_t i;

	json_array_foreach (resources, i, resource)
		if (!all_named(json_at(resource, "devices"), "id"))
			return false;
	return all_named(resources, "name");
}

/* Before those of device plugins, which say that all has arrived. */
static void take_claims_pools(const struct kubeletd_server *server, const json_t *claims)
{
	const json_t *pools = json_at(claims, "pools");
	json_auto_t *allowed = NULL;

	if (!server->driver || !are_pools(pools))
		return;
	allowed = keep_allowed(server, pools);
	dra_driver_set(server->driver, allowed, json_str_or(json_at(claims, "boot"), ""));
}

static void on_heard(void *arg, const json_t *message)
{
	struct kubeletd_server *server = arg;
	const json_t *pools = json_at(message, "pools"), *number = json_at(message, "number");

	if (json_is_integer(json_at(message, "id"))) {
		gpu_questions_reply(server->questions, message);
	} else if (json_at(message, "id")) {
		const json_t *claim = NULL;
		struct err err = {0}, bad = {0};

		if (server->driver) {
			if (ask_reply_read(message, &claim, &err, &bad) < 0)
				(void)err_set(&err, ERR_TRANSIENT, "BadClaim", "%s", bad.text);
			dra_driver_answer(server->driver, json_str_or(json_at(message, "id"), ""),
					  claim, &err);
		}
	} else if (are_pools(pools) && json_is_integer(number)) {
		take_claims_pools(server, json_at(message, "claims"));
		take_pools(server, pools, json_integer_value(number));
	} else {
		log_error("agent sent something other than pools");
	}
}

void kubeletd_server_attach(struct kubeletd_server *server, int fd)
{
	json_t *greeting;

	channel_free(take_ptr(server->agent));
	gpu_questions_forget(server->questions);
	if (server->driver)
		dra_driver_forget(server->driver);
	server->number = 0;
	json_decref(take_ptr(server->said));
	server->agent = channel_new(&(struct channel_config){
		.loop = server->config.loop,
		.fd = fd,
		.heard = on_heard,
		.lost = on_agent_lost,
		.arg = server,
	});
	greeting = json_object();
	json_put(greeting, "pools", server->pools ? json_incref(server->pools) : json_null());
	put_prepared(server, greeting);
	say(server, "greeting", greeting);
	deferred_run(server->saying);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void start_driver(struct kubeletd_server *server)
{
	const struct dra_folders *folders = server->config.dra;

	server->unheard = deferred_new(server->config.loop, on_unheard, server);
	server->driver =
		dra_driver_new(server->config.loop, &(struct dra_driver_config){
							    .registry_dir = folders->registry_dir,
							    .cdi_dir = folders->cdi_dir,
							    .state_dir = folders->state_dir,
							    .ask = on_ask,
							    .changed = on_offer_changed,
							    .emit = emit_event,
							    .removed = on_removed,
							    .arg = server,
							    .metrics = server->metrics,
						    });
}

struct kubeletd_server *kubeletd_server_new(const struct kubeletd_server_config *config)
{
	struct kubeletd_server *server = mem_new(struct kubeletd_server);

	server->config = *config;
	server->metrics = metrics_new_part("orbweaver_kubelet");
	server->saying = deferred_new(config->loop, say_state, server);
	server->counting = timer_new(config->loop, on_counting, server);
	timer_start(server->counting, COUNTING_MS);
	server->questions = gpu_questions_new(config->loop, on_gpu_question, server);
	server->plugins =
		device_plugins_new(config->loop, &(struct device_plugins_config){
							 .dir = config->plugins_dir,
							 .devinfo_dir = config->devinfo_dir,
							 .changed = on_offer_changed,
							 .emit = emit_event,
							 .allocated = on_device_allocated,
							 .removed = on_removed,
							 .arg = server,
							 .questions = server->questions,
							 .metrics = server->metrics,
						 });
	if (config->dra)
		start_driver(server);
	return server;
}

static void on_closed(void *arg)
{
	struct kubeletd_server *server = arg;
	void (*done)(void *arg) = server->done;
	void *done_arg = server->done_arg;

	deferred_free(server->saying);
	deferred_free(server->unheard);
	timer_free(server->counting);
	gpu_questions_free(server->questions);
	metrics_free(server->metrics);
	json_decref(server->pools);
	json_decref(server->said);
	mem_free(server);
	done(done_arg);
}

static void on_driver_closed(void *arg)
{
	struct kubeletd_server *server = arg;

	device_plugins_close(server->plugins, on_closed, server);
}

void kubeletd_server_close(struct kubeletd_server *server, void (*done)(void *arg), void *arg)
{
	server->done = done;
	server->done_arg = arg;
	channel_free(take_ptr(server->agent));
	gpu_questions_forget(server->questions);
	if (server->driver)
		dra_driver_close(server->driver, on_driver_closed, server);
	else
		on_driver_closed(server);
}
