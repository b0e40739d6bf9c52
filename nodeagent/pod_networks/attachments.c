// SPDX-License-Identifier: Apache-2.0
/*
 * Questions of the CNI server on one connection. Each is passed to the part that can answer it
 * (addresses, networks.c, settings_reader.c) and ends with one reply; a connection that is lost
 * ends them all, except releases and reports, which go on without a reply.
 */
#include "nodeagent/pod_networks/attachments.h"

#include <assert.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/ask.h"
#include "lib/json/json.h"
#include "nodeagent/pod_networks/networks.h"
#include "nodeagent/pod_networks/settings_reader.h"
#include "nodeagent/process/channel.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/endpoint.h"

/* One that the server has asked and we have not answered. */
struct question {
	struct attachments *attachments;
	struct question *next;
	json_t *ask;
	struct addresses_want *want;
	struct networks_question *networks;
	struct settings_question *settings;
	bool is_said; /* addresses has our callback until it calls */
	bool is_over; /* no call waits for it any more */
};

struct attachments {
	struct attachments_config config;
	struct networks *networks;
	struct settings_reader *settings;
	struct channel *server; /* NULL: no line */
	struct timer *connecting;
	struct question *questions;
	json_t *list;
	json_t *adding;       /* UIDs of pods that get something now, as the server said last */
	bool is_told;         /* list is what the server of this line says */
	json_t *pod_networks; /* as the server said last; NULL: not yet */
	enum profile profile;
	bool has_profile;
};

/* ---- answers --------------------------------------------------------------------------------- */

static void question_free(struct question *q)
{
	for (struct question **at = &q->attachments->questions; *at; at = &(*at)->next) {
		if (*at != q)
			continue;
		*at = q->next;
		break;
	}
	addresses_want_cancel(q->want);
	networks_cancel(q->networks);
	settings_cancel(q->settings);
	json_decref(q->ask);
	mem_free(q);
}

/* Takes the result; NULL: the error. */
static void reply_to(struct question *q, json_t *result, const struct err *err)
{
	json_auto_t *message = ask_reply_new(q->ask, result, err);

	if (q->attachments->server && !q->is_over)
		channel_send(q->attachments->server, message);
	question_free(q);
}

static void refuse_question(struct question *q, const struct err *err)
{
	reply_to(q, NULL, err);
}

static const char *container_of_question(const struct question *q)
{
	return json_str_or(json_at(q->ask, "container"), "");
}

/* ---- coordinator ----------------------------------------------------------------------------- */

static void on_settings(void *arg, const json_t *settings, const struct err *err)
{
	struct question *q = arg;

	assert(!settings != !err);
	q->settings = NULL;
	if (err)
		refuse_question(q, err);
	else
		reply_to(q, json_incref((json_t *)settings), NULL);
}

static void ask_settings(struct question *q, const json_t *pod)
{
	struct settings_question *asked = settings_ask(
		q->attachments->settings, container_of_question(q), pod, on_settings, q);

	/* Without one it is answered, and gone. */
	if (asked)
		q->settings = asked;
}

static void foresee_settings(struct question *q)
{
	settings_foresee(q->attachments->settings, container_of_question(q),
			 json_at(q->ask, "pod"));
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* What one NIC has, new; NULL: no address. */
static json_t *result_of(const json_t *status, const char *nic, const char *version)
{
	json_auto_t *result = NULL;

	if (endpoint_item(status, nic))
		result = ipam_cni_result(status, nic, version);
	return json_array_size(json_at(result, "ips")) > 0 ? json_incref(result) : NULL;
}

/* NICs without an address are left out: each asks alone then, and has its own error. New. */
static json_t *results_of(const json_t *status, const json_t *versions)
{
	json_t *answer = json_object(), *results = json_need_object(answer, "results");
	const char *nic;
	json_t *version;

	json_each (versions, nic, version)
		json_put(results, nic, result_of(status, nic, json_string_value(version)));
	return answer;
}

static void on_addresses(void *arg, const json_t *status, const struct err *err)
{
	struct question *q = arg;
	const char *nic = json_str_at(q->ask, "ifname");
	const json_t *versions = json_at(q->ask, "versions");
	struct err why = {0};
	json_t *answer = NULL;

	q->want = NULL;
	if (err) {
		refuse_question(q, err);
		return;
	}
	answer = versions ? results_of(status, versions)
			  : result_of(status, nic, json_str_at(q->ask, "version"));
	if (!answer) {
		(void)err_set(
			&why, ERR_INVALID, "NoAddressForNic",
			"no address was given to interface %s: name it in the pod's annotation "
			"ipam.spidernet.io/ippools, or give its network a pool",
			nic);
		refuse_question(q, &why);
		return;
	}
	/* Not before: a pod waits for its address, and its interface has to be made after it. */
	if (settings_are_in_use(q->attachments->settings))
		foresee_settings(q);
	reply_to(q, answer, NULL);
}

/* Of one NIC, or of all that a pod will ask for (nodeagent/cni/worker/pod_addresses.h). */
static void want_addresses(struct question *q)
{
	json_auto_t *asks = json_incref(json_at(q->ask, "wishes"));

	if (json_array_size(asks) == 0) {
		json_replace(&asks, json_pack("[O]", json_at(q->ask, "wish")));
	}
	q->want = addresses_want(
		q->attachments->config.addresses,
		&(struct addresses_request){.ns = json_str_at(q->ask, "pod", "namespace"),
					    .name = json_str_at(q->ask, "pod", "name"),
					    .uid = json_str_or(json_at(q->ask, "pod", "uid"), ""),
					    .asks = asks,
					    .deadline_ms = clock_ms() + ATTACHMENTS_ANSWER_MS},
		on_addresses, q);
}

static void on_said(void *arg, const struct err *err)
{
	struct question *q = arg;

	q->is_said = false;
	if (err && !q->is_over)
		refuse_question(q, err);
	else
		reply_to(q, json_object(), NULL);
}

/* ---- networks -------------------------------------------------------------------------------- */

/* What the plugins of a pod's networks will ask for. */
struct needs {
	bool addresses, settings;
};

static void find_needs_of(const json_t *plugin, struct needs *needs)
{
	needs->addresses |= str_eq(json_str_at(plugin, "ipam", "type"), "spiderpool");
	needs->settings |= str_eq(json_str_at(plugin, "type"), "coordinator");
}

static struct needs find_needs(const json_t *nads)
{
	struct needs needs = {0};
	const char *key;
	json_t *nad;

	json_each (nads, key, nad) {
		const char *text = json_str_or(json_at(nad, "spec", "config"), "");
		json_auto_t *config = limits_parse(text, strlen(text), LIMIT_CONFIG_BYTES, NULL);
		json_t *plugin;
		size_t i;

		find_needs_of(config, &needs);
		json_array_foreach (json_at(config, "plugins"), i, plugin)
			find_needs_of(plugin, &needs);
	}
	return needs;
}

static void on_networks(void *arg, const json_t *answer, const struct err *err)
{
	struct question *q = arg;
	const json_t *pod = json_at(q->ask, "pod");
	struct needs needs;

	assert(!answer != !err);
	q->networks = NULL;
	if (err) {
		refuse_question(q, err);
		return;
	}
	/* Read ahead while the cluster's own network is set up, which is the first. */
	needs = find_needs(json_at(answer, "nads"));
	if (needs.addresses && !str_empty(json_str_at(pod, "uid")))
		addresses_foresee(q->attachments->config.addresses, json_str_at(pod, "namespace"),
				  json_str_at(pod, "name"), json_str_at(pod, "uid"));
	if (needs.settings)
		foresee_settings(q);
	reply_to(q, json_incref((json_t *)answer), NULL);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* A name is not enough: a pod of the same name may be another one. */
static bool is_about_one_pod(const char *what)
{
	return str_eq(what, "addresses") || str_eq(what, "release") || str_eq(what, "conflict");
}

/*
 * dockershim, and containerd before 1.5, do not report it. Without it no pod gets an address, so
 * there is none to release either.
 */
static void start_without_uid(struct question *q, const char *what)
{
	struct err err = {0};

	if (!str_eq(what, "addresses")) {
		reply_to(q, json_object(), NULL);
		return;
	}
	(void)err_set(
		&err, ERR_INVALID, "BadEnvironment",
		"CNI_ARGS name no K8S_POD_UID, so nobody knows which pod of this name gets the "
		"address: use a container runtime that tells it (containerd 1.5 or later, "
		"CRI-O)");
	refuse_question(q, &err);
}

static void on_question(struct attachments *a, const json_t *message)
{
	const char *what = json_str_or(json_at(message, "kind"), "");
	const json_t *pod = json_at(message, "pod");
	struct question *q = mem_new(struct question);
	struct err err = {0};

	q->attachments = a;
	q->ask = json_incref((json_t *)message);
	q->next = a->questions;
	a->questions = q;
	if (!json_str_at(pod, "namespace") || !json_str_at(pod, "name")) {
		(void)err_set(&err, ERR_INVALID, "BadEnvironment",
			      "CNI_ARGS name no pod (K8S_POD_NAMESPACE, K8S_POD_NAME): this plugin "
			      "serves pods of Kubernetes only");
		refuse_question(q, &err);
	} else if (is_about_one_pod(what) && str_empty(json_str_at(pod, "uid"))) {
		start_without_uid(q, what);
	} else if (str_eq(what, "topology")) {
		json_t *topology = a->config.topology(a->config.arg);

		reply_to(q, topology ? topology : json_object(), NULL);
	} else if (str_eq(what, "coordinator")) {
		ask_settings(q, pod);
	} else if (str_eq(what, "addresses")) {
		want_addresses(q);
	} else if (str_eq(what, "release")) {
		q->is_said = true;
		addresses_release(q->attachments->config.addresses,
				  json_str_at(q->ask, "pod", "namespace"),
				  json_str_at(q->ask, "pod", "name"),
				  json_str_or(json_at(q->ask, "pod", "uid"), ""), on_said, q);
	} else if (str_eq(what, "conflict")) {
		q->is_said = true;
		addresses_report_conflicts(q->attachments->config.addresses,
					   json_str_at(q->ask, "pod", "namespace"),
					   json_str_at(q->ask, "pod", "name"),
					   json_str_or(json_at(q->ask, "pod", "uid"), ""),
					   json_at(q->ask, "conflicts"), on_said, q);
	} else if (networks_knows(what)) {
		q->networks = networks_ask(a->networks, message, on_networks, q);
	} else {
		(void)err_set(&err, ERR_BUG, "BadAnswer", "no answer to \"%s\"", what);
		refuse_question(q, &err);
	}
}

/* ---- what the server says -------------------------------------------------------------------- */

static void on_event(const struct attachments *a, const json_t *event)
{
	const struct event_object object = {
		.resource = &kube_pods,
		.ns = json_str_at(event, "pod", "namespace"),
		.name = json_str_at(event, "pod", "name"),
		.uid = json_str_at(event, "pod", "uid"),
	};

	if (object.ns && object.name && json_str_at(event, "reason"))
		recorder_emit(a->config.recorder, &object, true, json_str_at(event, "reason"),
			      json_str_or(json_at(event, "message"), ""));
}

static void on_heard(void *arg, const json_t *message)
{
	struct attachments *a = arg;
	json_t *list = json_object_get(message, "attachments");
	json_t *adding = json_object_get(message, "adding");
	json_t *pod_networks = json_object_get(message, "podNetworks");

	if (adding) {
		json_replace(&a->adding, json_incref(adding));
	}
	if (pod_networks && !json_same(pod_networks, a->pod_networks)) {
		json_replace(&a->pod_networks, json_incref(pod_networks));
		a->config.changed(a->config.arg);
	}
	if (json_at(message, "kind")) {
		on_question(a, message);
	} else if (json_object_get(message, "event")) {
		on_event(a, json_object_get(message, "event"));
	} else if (json_str_at(message, "metrics")) {
		if (a->config.metrics)
			metrics_append(a->config.metrics, "cnid", json_str_at(message, "metrics"));
	} else if (list) {
		a->is_told = true;
		if (json_same(list, a->list))
			return;
		json_replace(&a->list, json_incref(list));
		a->config.changed(a->config.arg);
	}
}

/* ---- the line -------------------------------------------------------------------------------- */

/* Its next process asks again. */
static void on_lost(void *arg, const struct err *err)
{
	struct attachments *a = arg;
	struct question *q, *next;

	channel_free(take_ptr(a->server));
	a->is_told = false;
	for (q = a->questions; q; q = next) {
		next = q->next;
		/* The word goes out all the same. */
		if (q->is_said)
			q->is_over = true;
		else
			question_free(q);
	}
	timer_start(a->connecting, ATTACHMENTS_CONNECT_MS);
}

static void send_profile(struct attachments *a)
{
	json_auto_t *message = json_object();

	if (!a->server || !a->has_profile)
		return;
	json_put_str(message, "profile", profile_name(a->profile));
	channel_send(a->server, message);
}

static void on_connecting(void *arg)
{
	struct attachments *a = arg;
	int fd = a->config.connect(a->config.arg);

	assert(!a->server);
	if (fd < 0) {
		timer_start(a->connecting, ATTACHMENTS_CONNECT_MS);
		return;
	}
	a->server = channel_new(&(struct channel_config){
		.loop = a->config.loop, .fd = fd, .heard = on_heard, .lost = on_lost, .arg = a});
	send_profile(a);
}

struct attachments *attachments_new(const struct attachments_config *config)
{
	struct attachments *a = mem_new(struct attachments);

	assert(config->loop && config->connect && config->changed);
	a->config = *config;
	a->networks = networks_new(&(struct networks_config){
		.loop = config->loop,
		.client = config->client,
		.recorder = config->recorder,
		.look_at_devices = config->look_at_devices,
		.arg = config->arg,
	});
	a->settings = settings_reader_new(&(struct settings_reader_config){
		.loop = config->loop, .client = config->client, .addresses = config->addresses});
	a->connecting = timer_new(config->loop, on_connecting, a);
	timer_start(a->connecting, 0);
	return a;
}

void attachments_free(struct attachments *a)
{
	if (!a)
		return;
	while (a->questions)
		question_free(a->questions);
	networks_free(a->networks);
	settings_reader_free(a->settings);
	channel_free(a->server);
	timer_free(a->connecting);
	json_decref(a->list);
	json_decref(a->adding);
	json_decref(a->pod_networks);
	mem_free(a);
}

const json_t *attachments_list(const struct attachments *a)
{
	return a->list;
}

const json_t *attachments_networks(const struct attachments *a)
{
	return a->pod_networks;
}

void attachments_set_profile(struct attachments *a, enum profile profile)
{
	if (a->has_profile && a->profile == profile)
		return;
	a->has_profile = true;
	a->profile = profile;
	send_profile(a);
}

bool attachments_hold(const struct attachments *a, const char *uid)
{
	json_t *attachment, *adding;
	size_t i;

	if (!a->is_told)
		return true;
	/* From the answer to its question until the list has what came of it. */
	json_array_foreach (a->adding, i, adding)
		if (str_eq(json_string_value(adding), uid))
			return true;
	for (const struct question *q = a->questions; q; q = q->next)
		if (str_eq(json_str_at(q->ask, "pod", "uid"), uid))
			return true;
	json_array_foreach (a->list, i, attachment)
		if (str_eq(json_str_at(attachment, "pod", "uid"), uid))
			return true;
	return false;
}

void attachments_devices(struct attachments *a, const json_t *named, const json_t *served)
{
	networks_devices(a->networks, named, served);
}
