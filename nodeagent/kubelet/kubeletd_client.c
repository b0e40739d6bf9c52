// SPDX-License-Identifier: Apache-2.0
/*
 * Pools go to kubeletd whenever they change, and its last state is kept for callers. In the agent;
 * the other end of the channel is kubeletd_server.c.
 */
#include "nodeagent/kubelet/kubeletd_client.h"

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/process/channel.h"

struct kubeletd {
	struct kubeletd_config config;
	struct channel *channel;
	bool greeted;
	json_t *sent;     /* {"pools", "claims"}, last; NULL: none */
	json_t *prepared; /* received last */
	int64_t number;   /* of them */
	int64_t awaited;  /* of the last ones with a resource that no state before could have */
	json_t *state;    /* received last; NULL: none */
};

static void take_prepared(struct kubeletd *kubeletd, const json_t *body)
{
	json_replace(&kubeletd->prepared, json_incref(json_at(body, "prepared")));
}

static void take_greeting(struct kubeletd *kubeletd, const json_t *greeting)
{
	const json_t *pools = json_at(greeting, "pools");

	if (kubeletd->greeted)
		return;
	kubeletd->greeted = true;
	take_prepared(kubeletd, greeting);
	kubeletd->config.ready(kubeletd->config.arg, json_is_object(pools) ? pools : NULL);
}

static void take_state(struct kubeletd *kubeletd, const json_t *state)
{
	json_replace(&kubeletd->state, json_incref((json_t *)state));
	take_prepared(kubeletd, state);
	metrics_append(kubeletd->config.metrics, "kubeletd", json_str_at(state, "metrics"));
	kubeletd->config.changed(kubeletd->config.arg);
}

static void emit_event(const struct kubeletd *kubeletd, const json_t *event)
{
	kubeletd->config.emit(kubeletd->config.arg, json_is_true(json_at(event, "warning")),
			      json_str_or(json_at(event, "reason"), "Unknown"),
			      json_str_or(json_at(event, "message"), ""));
}

static void take_gpu_question(struct kubeletd *kubeletd, const json_t *request)
{
	int64_t id = json_integer_value(json_at(request, "id"));
	const char *resource = json_str_or(json_at(request, "resource"), "");

	if (kubeletd->config.asked_gpus)
		kubeletd->config.asked_gpus(kubeletd->config.arg, id, resource);
	else
		kubeletd_answer_gpus(kubeletd, id, NULL);
}

static void on_heard(void *arg, const json_t *message)
{
	struct kubeletd *kubeletd = arg;
	const json_t *body;

	if ((body = json_at(message, "greeting")))
		take_greeting(kubeletd, body);
	else if ((body = json_at(message, "state")))
		take_state(kubeletd, body);
	else if ((body = json_at(message, "event")))
		emit_event(kubeletd, body);
	else if (json_at(message, "allocated"))
		kubeletd->config.allocated(kubeletd->config.arg);
	else if (str_eq(json_str_at(message, "kind"), "claim") && kubeletd->config.asked)
		kubeletd->config.asked(kubeletd->config.arg, message);
	else if (str_eq(json_str_at(message, "kind"), "gpus"))
		take_gpu_question(kubeletd, message);
	else
		log_error("kubeletd sent an unknown message");
}

static void on_lost(void *arg, const struct err *err)
{
	const struct kubeletd *kubeletd = arg;

	kubeletd->config.lost(kubeletd->config.arg, err);
}

struct kubeletd *kubeletd_new(const struct kubeletd_config *config)
{
	struct kubeletd *kubeletd = mem_new(struct kubeletd);

	kubeletd->config = *config;
	kubeletd->channel = channel_new(&(struct channel_config){
		.loop = config->loop,
		.fd = config->fd,
		.heard = on_heard,
		.lost = on_lost,
		.arg = kubeletd,
	});
	return kubeletd;
}

void kubeletd_free(struct kubeletd *kubeletd)
{
	if (!kubeletd)
		return;
	channel_free(kubeletd->channel);
	metrics_append(kubeletd->config.metrics, "kubeletd", NULL);
	json_decref(kubeletd->sent);
	json_decref(kubeletd->prepared);
	json_decref(kubeletd->state);
	mem_free(kubeletd);
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

void kubeletd_set(struct kubeletd *kubeletd, const json_t *pools, const json_t *claims)
{
	json_auto_t *offers = json_object(), *message = NULL;

	json_put(offers, "pools", json_incref((json_t *)pools));
	json_put(offers, "claims", json_incref((json_t *)claims));
	if (json_same(kubeletd->sent, offers))
		return;
	json_replace(&kubeletd->sent, json_incref(offers));
	message = json_copy(offers);
	json_put_int(message, "number", ++kubeletd->number);
	if (has_other_resources(pools, json_at(kubeletd->state, "status")))
		kubeletd->awaited = kubeletd->number;
	channel_send(kubeletd->channel, message);
}

void kubeletd_answer(struct kubeletd *kubeletd, const char *uid, const json_t *claim,
		     const struct err *why)
{
	json_auto_t *request = json_object(), *message = NULL;

	json_put_str(request, "id", uid);
	message = ask_reply_new(request, json_incref((json_t *)claim), why);
	channel_send(kubeletd->channel, message);
}

void kubeletd_answer_gpus(struct kubeletd *kubeletd, int64_t id, const json_t *near)
{
	json_auto_t *request = ask_new(id, "gpus");
	json_auto_t *reply =
		ask_reply_new(request, near ? json_incref((json_t *)near) : json_object(), NULL);

	channel_send(kubeletd->channel, reply);
}

const json_t *kubeletd_prepared(const struct kubeletd *kubeletd)
{
	return kubeletd->prepared;
}

json_t *kubeletd_status(const struct kubeletd *kubeletd)
{
	const json_t *status = json_at(kubeletd->state, "status");

	return json_is_array(status) ? json_incref((json_t *)status) : json_array();
}

/*
 * A state of before says nothing of new resources; that other devices are on their way changes
 * nothing.
 */
bool kubeletd_are_served(const struct kubeletd *kubeletd)
{
	return json_integer_value(json_at(kubeletd->state, "of")) >= kubeletd->awaited &&
	       json_is_true(json_at(kubeletd->state, "served"));
}

bool kubeletd_has_all(const struct kubeletd *kubeletd)
{
	return json_integer_value(json_at(kubeletd->state, "of")) >= kubeletd->number;
}
