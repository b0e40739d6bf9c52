// SPDX-License-Identifier: Apache-2.0
/* Three routes that differ in what their worlds hold and which function judges. */
#include "operator/server/webhook.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/http/certificate.h"
#include "lib/json/json.h"
#include "operator/controllers/certificates.h"
#include "operator/controllers/gather.h"
#include "reconcilers/admission/admission.h"
#include "reconcilers/admission/network_resources.h"
#include "reconcilers/admission/pod_inject.h"

/* What is shown until the leader's certificate is known: no client trusts it. */
#define PROVISIONAL_NAME "orbweaver-webhook.invalid"
#define PROVISIONAL_S    (INT64_C(24) * 3600)

/* Configs of a group that are kept parsed, a few KiB each. */
#define KEPT_MAX 64

struct webhook;

/* Judges a request; returns new. */
typedef json_t *judge_fn(struct webhook *webhook, const struct admission_request *request);

static judge_fn judge_validate, judge_default, judge_inject;

static const struct {
	const char *path;
	judge_fn *judge;
	size_t body_max;
} paths[] = {
	{"/validate", judge_validate, WEBHOOK_BODY_MAX},
	{"/default", judge_default, WEBHOOK_BODY_MAX},
	{"/inject", judge_inject, WEBHOOK_POD_BODY_MAX},
};

enum { PATHS = ARRAY_LEN(paths) };

/* What a route's handler gets. */
struct entry {
	struct webhook *webhook;
	const char *path;
	judge_fn *judge;
};

struct webhook {
	struct http_server *server;
	struct entry entries[PATHS];
	struct http_route routes[PATHS];
	const struct controller_sources *sources; /* NULL at first */
	struct inject_settings inject;
	json_t *secret; /* what is served from */
	/*
	 * The group that was asked for last, and its configs as they are in the cache. Pods of a
	 * job come in a burst and ask for the same; parsing eight configs again for each would take
	 * longer than all the rest of an answer.
	 */
	char *group;     /* with the namespace; NULL: none */
	json_t *configs; /* { key: config } */
	struct metric *requests, *seconds, *expiry;
	void (*done)(void *arg);
	void *arg;
};

/* ---- judging --------------------------------------------------------------------------------- */

static json_t *new_world(const struct webhook *webhook)
{
	json_t *world = json_object();

	gather_env(webhook->sources, world);
	return world;
}

static json_t *judge_validate(struct webhook *webhook, const struct admission_request *request)
{
	const struct operator_kind *kind = operator_kind_find(request->kind);
	const json_t *objects[] = {request->object, request->old};
	json_auto_t *world = new_world(webhook);

	for (size_t i = 0; kind && kind->gather && i < ARRAY_LEN(objects); i++)
		if (objects[i])
			kind->gather(webhook->sources, world, objects[i]);
	return admission_validate(world, request);
}

static json_t *judge_default(struct webhook *webhook, const struct admission_request *request)
{
	return admission_default(request);
}

static void forget_group(struct webhook *webhook)
{
	mem_free(take_ptr(webhook->group));
	json_decref(take_ptr(webhook->configs));
}

static void add_group(struct webhook *webhook, json_t *world, const char *group, const char *ns)
{
	auto_free char *value = gather_group_value(group, ns);

	if (str_eq(webhook->group, value)) {
		json_put(world, KIND_MULTUS_CONFIG, json_incref(webhook->configs));
		return;
	}
	gather_group(webhook->sources, world, group, ns);
	if (json_object_size(json_at(world, KIND_MULTUS_CONFIG)) > KEPT_MAX)
		return;
	forget_group(webhook);
	webhook->group = take_ptr(value);
	webhook->configs = json_incref(json_need_object(world, KIND_MULTUS_CONFIG));
}

struct naming {
	const struct webhook *webhook;
	json_t *world;
};

static void add_nad(void *arg, const char *key)
{
	const struct naming *naming = arg;

	mirror_add(naming->webhook->sources->mirror, naming->world, KIND_NAD, key);
}

static json_t *judge_inject(struct webhook *webhook, const struct admission_request *request)
{
	json_auto_t *world = new_world(webhook);
	json_auto_t *pod = network_resources_annotated(&webhook->inject, request->object, NULL);
	struct naming naming = {webhook, world};
	auto_free char *group = NULL;
	const json_t *namespace;

	mirror_add(webhook->sources->mirror, world, KIND_NAMESPACE, request->ns);
	namespace = world_get(world, KIND_NAMESPACE, request->ns);
	group = pod_inject_group(pod, namespace);
	if (group)
		add_group(webhook, world, group, request->ns);
	if (pod_inject_looks_at_networks(&webhook->inject, pod, namespace))
		network_resources_visit(pod, request->ns, add_nad, &naming);
	return pod_inject(world, &webhook->inject, request);
}

/* ---- serving --------------------------------------------------------------------------------- */

static bool is_complete(const struct webhook *webhook)
{
	static const char *const needs[] = {KIND_MULTUS_CONFIG,     KIND_NAD,
					    KIND_IP_POOL,           KIND_NAMESPACE,
					    MIRROR_SPIDERPOOL_CONF, MIRROR_SWITCHES};

	if (!webhook->sources)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(needs); i++)
		if (!mirror_is_synced(webhook->sources->mirror, needs[i]))
			return false;
	return true;
}

static const char *verdict_of(const json_t *review)
{
	const json_t *response = json_at(review, "response");

	if (!json_is_true(json_at(response, "allowed")))
		return "refused";
	return json_at(response, "patch") ? "patched" : "allowed";
}

static void answer_text(struct http_response *resp, int status, const char *text)
{
	resp->status = status;
	strbuf_addf(&resp->body, "%s\n", text);
}

static void answer(const struct entry *entry, const struct http_request *req,
		   struct http_response *resp)
{
	struct webhook *webhook = entry->webhook;
	auto_admission_request struct admission_request request = {0};
	json_auto_t *review = NULL;
	json_auto_t *verdict = NULL;
	size_t weight = json_weight(req->body, req->body_len, WEBHOOK_WEIGHT_MAX);
	struct err err = {0};

	if (weight > WEBHOOK_WEIGHT_MAX) {
		auto_free char *text = str_printf(
			"review has too many commas and brackets, at most %d are read: make the "
			"object smaller",
			WEBHOOK_WEIGHT_MAX);

		metric_add(webhook->requests, 1, entry->path, "", "too heavy");
		answer_text(resp, 413, text);
		return;
	}
	if (!is_complete(webhook)) {
		metric_add(webhook->requests, 1, entry->path, "", "too early");
		answer_text(resp, 503,
			    "not ready: the operator has not seen the whole cluster yet");
		return;
	}
	review = json_parse(req->body, req->body_len, &err);
	if (!review || admission_read(review, &request, &err) < 0) {
		metric_add(webhook->requests, 1, entry->path, "", "unreadable");
		answer_text(resp, 400, err.text);
		return;
	}
	verdict = entry->judge(webhook, &request);
	metric_add(webhook->requests, 1, entry->path, request.kind ? request.kind : "other",
		   verdict_of(verdict));
	resp->content_type = HTTP_JSON;
	json_write(verdict, &resp->body);
}

static void handle(const struct http_request *req, struct http_response *resp, void *arg)
{
	const struct entry *entry = arg;
	int64_t started_us = clock_us();

	answer(entry, req, resp);
	/* Parsed, it was many times as long, and the heap would keep that. */
	if (req->body_len > HTTP_BODY_MAX)
		mem_trim();
	metric_observe(entry->webhook->seconds, (double)(clock_us() - started_us) / 1e6,
		       entry->path);
}

/* ---- what changes while it serves ------------------------------------------------------------ */

static void use_certificate(struct webhook *webhook, const json_t *secret)
{
	auto_certificates_pair struct certificates_pair pair = {0};
	int64_t end_s = 0;
	struct err err = {0};

	certificates_pair_read(secret, &pair);
	if (!pair.certificate_pem || !pair.key_pem)
		return;
	if (http_server_set_certificate(webhook->server, pair.certificate_pem, pair.key_pem, &err) <
	    0) {
		/* The leader makes another one. */
		log_warn("cannot use the new webhook certificate, keeping the last one",
			 F_ERR(&err));
		return;
	}
	certificate_validity(pair.certificate_pem, NULL, &end_s, NULL);
	metric_set(webhook->expiry, (double)end_s);
	log_info("webhook serves with another certificate",
		 F_STR("version", json_str_at(secret, "metadata", "resourceVersion")));
}

static bool same_certificate(const json_t *a, const json_t *b)
{
	return a && json_same(json_at(a, "data", "tls.crt"), json_at(b, "data", "tls.crt")) &&
	       json_same(json_at(a, "data", "tls.key"), json_at(b, "data", "tls.key"));
}

/* Settings that cannot be read change nothing: the last good ones stay. */
static void settings_changed(struct webhook *webhook, const json_t *config_map)
{
	struct inject_settings settings = {0};
	struct err err = {0};

	if (inject_settings_read(config_map, &settings, &err) < 0) {
		log_error("cannot read the settings of pod injection, keeping the last ones",
			  F_ERR(&err));
		return;
	}
	settings.switches = take_ptr(webhook->inject.switches);
	inject_settings_done(&webhook->inject);
	webhook->inject = settings;
	log_info("settings of pod injection", F_BOOL("enabled", settings.enabled),
		 F_INT("include", (int64_t)json_array_size(settings.include)),
		 F_INT("exclude", (int64_t)json_array_size(settings.exclude)),
		 F_BOOL("network_resources", settings.references),
		 F_INT("environments", (int64_t)json_object_size(settings.environment)));
}

/* The same for those of the network resources injector. */
static void switches_changed(struct webhook *webhook, const json_t *config_map)
{
	json_t *switches = NULL;
	struct err err = {0};

	if (inject_switches_read(config_map, &switches, &err) < 0) {
		log_error("cannot read the switches of pod injection, keeping the last ones",
			  F_ERR(&err));
		return;
	}
	json_replace(&webhook->inject.switches, switches);
	log_info("switches of pod injection",
		 F_BOOL("add_to_existing", inject_settings_add(&webhook->inject)),
		 F_BOOL("hugepages", inject_settings_hugepages(&webhook->inject)),
		 F_INT("injections", (int64_t)json_object_size(json_at(switches, "injections"))));
}

void webhook_changed(struct webhook *webhook, const char *kind, const json_t *now)
{
	/* A Secret that went is made again by the leader; what is served stays until then. */
	if (str_eq(kind, MIRROR_CERTIFICATE) && now && !same_certificate(webhook->secret, now)) {
		json_replace(&webhook->secret, json_deep_copy(now));
		use_certificate(webhook, now);
	} else if (str_eq(kind, MIRROR_SPIDERPOOL_CONF)) {
		settings_changed(webhook, now);
	} else if (str_eq(kind, MIRROR_SWITCHES)) {
		switches_changed(webhook, now);
	} else if (str_eq(kind, KIND_MULTUS_CONFIG)) {
		forget_group(webhook);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void webhook_free(struct webhook *webhook)
{
	inject_settings_done(&webhook->inject);
	json_decref(webhook->secret);
	forget_group(webhook);
	mem_free(webhook);
}

static struct http_server *new_server(struct webhook *webhook, struct loop *loop,
				      const char *listen, const struct http_tls_policy *tls,
				      struct metrics *metrics, struct err *err)
{
	static const char *const names[] = {PROVISIONAL_NAME};
	int64_t now_s = clock_wall_us() / 1000000;
	auto_certificate_set struct certificate_set provisional = {0};

	if (certificate_issue(&(struct certificate_order){"orbweaver webhook (provisional)", names,
							  ARRAY_LEN(names), now_s,
							  now_s + PROVISIONAL_S},
			      &provisional, err) < 0)
		return NULL;
	return http_server_new(loop,
			       &(struct http_server_config){
				       .name = "webhook",
				       .listen = listen,
				       .routes = webhook->routes,
				       .n_routes = PATHS,
				       .certificate_pem = provisional.certificate_pem,
				       .key_pem = provisional.key_pem,
				       .tls = *tls,
				       .metrics = metrics,
			       },
			       err);
}

struct webhook *webhook_new(struct loop *loop, const char *listen,
			    const struct http_tls_policy *tls, struct metrics *metrics,
			    struct err *err)
{
	struct webhook *webhook = mem_new(struct webhook);
	static const double bounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1};

	for (size_t i = 0; i < PATHS; i++) {
		webhook->entries[i] = (struct entry){webhook, paths[i].path, paths[i].judge};
		webhook->routes[i] = (struct http_route){
			.path = paths[i].path,
			.methods = HTTP_POST,
			.body_max = paths[i].body_max,
			.handle = handle,
			.arg = &webhook->entries[i],
		};
	}
	webhook->requests = metric_counter(metrics, "orbweaver_admission_requests_total",
					   "Admission reviews, by verdict.", "path,kind,verdict");
	webhook->seconds = metric_histogram(metrics, "orbweaver_admission_seconds",
					    "Time to answer an admission review.", "path", bounds,
					    ARRAY_LEN(bounds));
	webhook->expiry = metric_gauge(metrics, "orbweaver_webhook_certificate_expiry_seconds",
				       "When the certificate that is served ends to be valid.", "");
	if (inject_settings_read(NULL, &webhook->inject, err) == 0)
		webhook->server = new_server(webhook, loop, listen, tls, metrics, err);
	if (!webhook->server) {
		webhook_free(webhook);
		return NULL;
	}
	log_info("serving webhooks", F_INT("port", http_server_port(webhook->server)));
	return webhook;
}

void webhook_attach(struct webhook *webhook, const struct controller_sources *sources)
{
	webhook->sources = sources;
}

static void on_closed(void *arg)
{
	struct webhook *webhook = arg;
	void (*done)(void *arg) = webhook->done;
	void *done_arg = webhook->arg;

	webhook_free(webhook);
	done(done_arg);
}

void webhook_close(struct webhook *webhook, void (*done)(void *arg), void *arg)
{
	if (!webhook)
		return;
	webhook->done = done;
	webhook->arg = arg;
	http_server_close(take_ptr(webhook->server), on_closed, webhook);
}
