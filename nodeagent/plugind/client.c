/*
 * See the header.
 */
#include "nodeagent/plugind/client.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/plugind/channel.h"

struct plugind {
	struct plugind_config config;
	struct channel *channel;
	bool greeted;
	json_t *pools;   /* sent last; NULL: none */
	int64_t number;  /* of them */
	int64_t awaited; /* of the last ones with a resource that no state before could have */
	json_t *state;   /* heard last; NULL: none */
};

static void take_greeting(struct plugind *plugind, const json_t *greeting)
{
	const json_t *pools = json_at(greeting, "pools");

	if (plugind->greeted)
		return;
	plugind->greeted = true;
	plugind->config.ready(plugind->config.arg, json_is_object(pools) ? pools : NULL);
}

static void take_state(struct plugind *plugind, const json_t *state)
{
	json_decref(plugind->state);
	plugind->state = json_incref((json_t *)state);
	metrics_append(plugind->config.metrics, json_str_at(state, "metrics"));
	plugind->config.changed(plugind->config.arg);
}

static void take_told(const struct plugind *plugind, const json_t *told)
{
	plugind->config.told(plugind->config.arg, json_is_true(json_at(told, "warning")),
			     json_str_or(json_at(told, "reason"), "Unknown"),
			     json_str_or(json_at(told, "message"), ""));
}

static void on_heard(void *arg, const json_t *message)
{
	struct plugind *plugind = arg;
	const json_t *body;

	if ((body = json_at(message, "greeting")))
		take_greeting(plugind, body);
	else if ((body = json_at(message, "state")))
		take_state(plugind, body);
	else if ((body = json_at(message, "told")))
		take_told(plugind, body);
	else if (json_at(message, "allocated"))
		plugind->config.allocated(plugind->config.arg);
	else
		log_error("the process that serves the kubelet sent what we do not know");
}

static void on_lost(void *arg, const struct err *err)
{
	const struct plugind *plugind = arg;

	plugind->config.lost(plugind->config.arg, err);
}

struct plugind *plugind_new(const struct plugind_config *config)
{
	struct plugind *plugind = mem_new(struct plugind);

	plugind->config = *config;
	plugind->channel = channel_new(&(struct channel_config){
		.loop = config->loop,
		.fd = config->fd,
		.heard = on_heard,
		.lost = on_lost,
		.arg = plugind,
	});
	return plugind;
}

void plugind_free(struct plugind *plugind)
{
	if (!plugind)
		return;
	channel_free(plugind->channel);
	metrics_append(plugind->config.metrics, NULL);
	json_decref(plugind->pools);
	json_decref(plugind->state);
	mem_free(plugind);
}

static bool has_other_resources(const json_t *pools, const json_t *status)
{
	const json_t *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource)
		if (!json_find(status, "name", json_str_at(resource, "name")))
			return true;
	return false;
}

void plugind_set(struct plugind *plugind, const json_t *pools)
{
	json_auto_t *message = NULL;

	if (json_same(plugind->pools, pools))
		return;
	json_decref(plugind->pools);
	plugind->pools = json_incref((json_t *)pools);
	message = json_object();
	json_put(message, "pools", json_incref(plugind->pools));
	json_put_int(message, "number", ++plugind->number);
	if (has_other_resources(pools, json_at(plugind->state, "status")))
		plugind->awaited = plugind->number;
	channel_send(plugind->channel, message);
}

json_t *plugind_status(const struct plugind *plugind)
{
	const json_t *status = json_at(plugind->state, "status");

	return json_is_array(status) ? json_incref((json_t *)status) : json_array();
}

/* A state of before says nothing of new resources; that other devices are on their way changes nothing. */
bool plugind_are_served(const struct plugind *plugind)
{
	return json_integer_value(json_at(plugind->state, "of")) >= plugind->awaited &&
	       json_is_true(json_at(plugind->state, "served"));
}
