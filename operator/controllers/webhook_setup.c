// SPDX-License-Identifier: Apache-2.0
/*
 * Two objects built field by field, with the values that the server fills in, so that they compare
 * equal to what is stored.
 */
#include "operator/controllers/webhook_setup.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "operator/controllers/certificates.h"
#include "operator/controllers/controllers_internal.h"
#include "operator/controllers/gather.h"
#include "reconcilers/admission/kind_rules.h"
#include "reconcilers/admission/pod_environment.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/networks.h"
#include "reconcilers/spider/cni_config.h"

#define MANAGED_BY      "app.kubernetes.io/managed-by"
#define PART_OF         "app.kubernetes.io/part-of"
#define NAMESPACE_LABEL "kubernetes.io/metadata.name"

#define POD_WEBHOOK "pods.orbweaver.spidernet.io"

char *webhook_url_host(const char *url)
{
	static const char scheme[] = "https://";
	const char *host = url + strlen(scheme);
	const char *end = NULL;
	int64_t port = 0;
	bool quoted = false;

	if (!str_starts(url, scheme))
		return NULL;
	quoted = *host == '[';
	host += quoted;
	end = host + strcspn(host, quoted ? "]" : ":");
	if (end == host || (quoted && *end != ']') || strcspn(host, "/?#@%") < strlen(host))
		return NULL;
	if (end[quoted] != '\0' &&
	    (end[quoted] != ':' || !str_to_int(end + quoted + 1, 1, 65535, &port)))
		return NULL;
	return str_ndup(host, (size_t)(end - host));
}

/* ---- one webhook ----------------------------------------------------------------------------- */

struct webhook_text {
	const char *name, *path;
	int64_t timeout_s;
};

/* Takes operations. */
static json_t *rule_of(const char *id, json_t *operations)
{
	const struct kind_info *kind = kind_find(id);

	return json_pack("{s:[s], s:[s], s:[s], s:s, s:o}", "apiGroups", kind->group, "apiVersions",
			 kind->version, "resources", kind->id, "scope", "*", "operations",
			 operations);
}

static json_t *client_config(const json_t *world, const char *path, const char *bundle)
{
	const char *url = json_str_at(world, "env", "webhook", "url");
	json_t *config = json_pack("{s:s}", "caBundle", bundle);

	if (url)
		json_put(config, "url", json_fmt("%s%s", url, path));
	else
		json_put(config, "service",
			 json_pack("{s:s, s:s, s:s, s:i}", "namespace",
				   world_env(world, "namespace"), "name",
				   json_str_at(world, "env", "webhook", "service"), "path", path,
				   "port", 443));
	return config;
}

/* Takes rules. */
static json_t *webhook_of(const json_t *world, const struct webhook_text *text, const char *bundle,
			  json_t *rules_new)
{
	return json_pack("{s:s, s:o, s:o, s:s, s:s, s:s, s:I, s:[s], s:{}, s:{}}", "name",
			 text->name, "clientConfig", client_config(world, text->path, bundle),
			 "rules", rules_new, "failurePolicy", "Ignore", "matchPolicy", "Equivalent",
			 "sideEffects", "None", "timeoutSeconds", (json_int_t)text->timeout_s,
			 "admissionReviewVersions", "v1", "namespaceSelector", "objectSelector");
}

static json_t *users_kinds(const json_t *world, const struct webhook_text *text, const char *bundle,
			   bool with_defaults)
{
	json_t *list = json_array();

	for (const struct kind_rules *rules = kind_rules_all(); rules->kind; rules++)
		if (rules->fill || !with_defaults)
			json_array_append_new(
				list,
				rule_of(rules->kind, json_pack("[s, s]", "CREATE", "UPDATE")));
	return webhook_of(world, text, bundle, list);
}

/* ---- pods ------------------------------------------------------------------------------------ */

/* All of those that exist carry their name as a label, so that a selector finds them. */
static bool are_labelled(const json_t *world, const json_t *names)
{
	const json_t *name = NULL;
	size_t i = 0;

	json_array_foreach (names, i, name) {
		const char *text = json_string_value(name);
		const json_t *namespace = world_get(world, KIND_NAMESPACE, text);

		if (namespace &&
		    !str_eq(json_str_at(namespace, "metadata", "labels", NAMESPACE_LABEL), text))
			return false;
	}
	return true;
}

/*
 * A requirement that selects one of these would never hold where the label is missing: then it is
 * left to us.
 */
static json_t *pod_namespaces(const json_t *world, const struct inject_settings *settings)
{
	json_t *selector = inject_settings_selector(settings, world_env(world, "namespace"));
	json_t *requirements = json_at(selector, "matchExpressions");

	for (size_t i = json_array_size(requirements); i-- > 0;)
		if (str_eq(json_str_at(json_array_get(requirements, i), "operator"), "In") &&
		    !are_labelled(world, settings->include))
			json_array_remove(requirements, i);
	return selector;
}

/*
 * ["a", "b"] in CEL: the namespaces that ask, in an order of their own. Names of namespaces need no
 * quoting.
 */
static void add_asking(const json_t *world, struct strbuf *text)
{
	const json_t *namespaces = world_kind(world, KIND_NAMESPACE);
	auto_free const char **names = mem_calloc(json_object_size(namespaces) + 1, sizeof(*names));
	const char *name = NULL;
	const json_t *namespace = NULL;
	size_t n = 0;

	json_each (namespaces, name, namespace)
		if (pod_inject_asks_for_pods(namespace))
			names[n++] = name;
	qsort(names, n, sizeof(*names), str_compare);
	strbuf_addc(text, '[');
	for (size_t i = 0; i < n; i++)
		strbuf_addf(text, "%s\"%s\"", i ? ", " : "", names[i]);
	strbuf_addc(text, ']');
}

/* CEL: the pod asks, or its namespace does. */
static char *asks_expression(const json_t *world, const struct inject_settings *settings)
{
	const struct {
		const char *annotation;
		bool counts;
	} asking[] = {
		{CNI_ANNOTATION_RDMA_INJECT, true},
		{CNI_ANNOTATION_NETWORK_INJECT, true},
		{POD_ENVIRONMENT_NAME, true},
		/* Where pods get what networks need that they name themselves. */
		{NETWORKS_ANNOTATION, settings->references},
		{DEFAULT_NETWORK_ANNOTATION, settings->references},
	};
	auto_strbuf struct strbuf text = {0};

	strbuf_adds(&text, "(has(object.metadata.annotations) && (");
	for (size_t i = 0; i < ARRAY_LEN(asking); i++)
		if (asking[i].counts)
			strbuf_addf(&text, "%s\"%s\" in object.metadata.annotations",
				    i ? " || " : "", asking[i].annotation);
	strbuf_adds(&text, ")) || ");
	if (settings->references && json_object_size(json_at(settings->switches, "injections"))) {
		const char *label = NULL, *before = "";
		json_t *injection = NULL;

		/*
		 * CEL: a label of the pod asks for a user-defined injection. Keys of labels need no
		 * quoting.
		 */
		strbuf_adds(&text, "(has(object.metadata.labels) && (");
		json_each (json_at(settings->switches, "injections"), label, injection) {
			strbuf_addf(&text, "%s\"%s\" in object.metadata.labels", before, label);
			before = " || ";
		}
		strbuf_adds(&text, ")) || ");
	}
	strbuf_adds(&text, "request.namespace in ");
	add_asking(world, &text);
	return strbuf_take(&text);
}

static json_t *pod_webhook(const json_t *world, const struct inject_settings *settings,
			   const char *bundle)
{
	static const struct webhook_text text = {POD_WEBHOOK, "/inject", WEBHOOK_POD_TIMEOUT_S};
	json_t *webhook =
		webhook_of(world, &text, bundle,
			   json_pack("[o]", rule_of(KIND_POD, json_pack("[s]", "CREATE"))));
	auto_free char *expression = NULL;

	json_put_str(webhook, "reinvocationPolicy", "IfNeeded");
	json_put(webhook, "namespaceSelector", pod_namespaces(world, settings));
	json_put(webhook, "objectSelector",
		 json_pack("{s:[{s:s, s:s, s:[s]}]}", "matchExpressions", "key", PART_OF,
			   "operator", "NotIn", "values", "orbweaver"));
	if (json_is_true(json_at(world, "env", "webhook", "matchConditions"))) {
		expression = asks_expression(world, settings);
		json_put(webhook, "matchConditions",
			 json_pack("[{s:s, s:s}]", "name", "asks-for-injection", "expression",
				   expression));
	}
	return webhook;
}

/*
 * The pods' webhook as it is in the cluster, with a new bundle: settings that cannot be read change
 * nothing.
 */
static json_t *pod_webhook_kept(const json_t *world, const char *bundle)
{
	const json_t *present =
		json_at(world_get(world, MIRROR_MUTATING, WEBHOOK_MUTATING), "webhooks");
	json_t *kept = json_deep_copy(json_find(present, "name", POD_WEBHOOK));

	if (kept)
		json_put(kept, "clientConfig", client_config(world, "/inject", bundle));
	return kept;
}

/* ---- the two configurations ------------------------------------------------------------------ */

/* Takes webhooks. */
static void plan_configuration(const json_t *world, struct plan *plan, const char *kind,
			       const char *name, json_t *webhooks)
{
	const json_t *ns = world_get(world, KIND_NAMESPACE, world_env(world, "namespace"));
	json_t *object =
		json_pack("{s:{s:s, s:{s:s, s:s}}, s:o}", "metadata", "name", name, "labels",
			  MANAGED_BY, OPERATOR_NAME, PART_OF, "orbweaver", "webhooks", webhooks);

	/*
	 * The garbage collector removes it with our namespace, when no operator is there any more
	 * to do so.
	 */
	if (ns)
		json_put(json_at(object, "metadata"), "ownerReferences",
			 json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1", "kind",
				   "Namespace", "name", json_name(ns), "uid", json_uid(ns)));
	plan_apply(plan, kind, object);
}

static json_t *new_pod_webhook(const json_t *world, struct plan *plan, const char *bundle)
{
	auto_inject_settings struct inject_settings settings = {0};
	const char *ns = json_str_at(world, "env", "webhook", "configNamespace");
	auto_free char *key = str_printf("%s/%s", ns, INJECT_CONFIG_MAP);
	auto_free char *switches = str_printf("%s/%s", ns, INJECT_SWITCHES_CONFIG_MAP);
	auto_free char *problem = NULL;
	struct err err = {0};

	if (inject_settings_read(world_get(world, MIRROR_SPIDERPOOL_CONF, key), &settings, &err) <
	    0) {
		plan_event(plan, MIRROR_SPIDERPOOL_CONF, key, true, err.reason, err.text);
		return pod_webhook_kept(world, bundle);
	}
	problem = pod_environment_problem(settings.environment);
	if (problem)
		plan_event(plan, MIRROR_SPIDERPOOL_CONF, key, true, "BadConfig", problem);
	if (inject_switches_read(world_get(world, MIRROR_SWITCHES, switches), &settings.switches,
				 &err) < 0) {
		plan_event(plan, MIRROR_SWITCHES, switches, true, err.reason, err.text);
		return pod_webhook_kept(world, bundle);
	}
	return settings.enabled ? pod_webhook(world, &settings, bundle) : NULL;
}

static void plan_mutating(const json_t *world, struct plan *plan, const char *bundle)
{
	static const struct webhook_text text = {"default.orbweaver.spidernet.io", "/default",
						 WEBHOOK_TIMEOUT_S};
	json_t *defaults = users_kinds(world, &text, bundle, true);
	json_t *pods = new_pod_webhook(world, plan, bundle);
	json_t *webhooks = json_pack("[o]", defaults);

	json_put_str(defaults, "reinvocationPolicy", "IfNeeded");
	if (pods)
		json_array_append_new(webhooks, pods);
	plan_configuration(world, plan, MIRROR_MUTATING, WEBHOOK_MUTATING, webhooks);
}

/* ---- reconciling ----------------------------------------------------------------------------- */

static void plan_removal(const json_t *world, struct plan *plan, const char *kind, const char *key)
{
	const json_t *object = world_get(world, kind, key);

	if (str_eq(json_str_at(object, "metadata", "labels", MANAGED_BY), OPERATOR_NAME))
		plan_delete(plan, kind, key, json_uid(object));
}

/*
 * The bundle that all webhooks of both configurations show; NULL when they differ, or one
 * configuration is missing.
 */
static const char *published_bundle(const json_t *world)
{
	const json_t *configurations[] = {
		world_get(world, MIRROR_VALIDATING, WEBHOOK_VALIDATING),
		world_get(world, MIRROR_MUTATING, WEBHOOK_MUTATING),
	};
	const char *bundle = NULL;

	for (size_t i = 0; i < ARRAY_LEN(configurations); i++) {
		const json_t *webhooks = json_at(configurations[i], "webhooks");
		const json_t *webhook = NULL;
		size_t j = 0;

		if (json_array_size(webhooks) == 0)
			return NULL;
		json_array_foreach (webhooks, j, webhook) {
			const char *shown =
				json_str_or(json_at(webhook, "clientConfig", "caBundle"), "");

			if (bundle && !str_eq(bundle, shown))
				return NULL;
			bundle = shown;
		}
	}
	return bundle;
}

int webhook_setup_reconcile(const json_t *world, const char *key, struct plan *plan,
			    struct err *err)
{
	static const struct webhook_text text = {"validate.orbweaver.spidernet.io", "/validate",
						 WEBHOOK_TIMEOUT_S};
	const json_t *settings = json_at(world, "env", "webhook");
	auto_certificates_answer struct certificates_answer answer = {0};
	auto_free char *secret =
		str_printf("%s/%s", world_env(world, "namespace"), CERTIFICATES_SECRET);
	auto_free char *name = NULL; /* of the server, in its certificate */
	const char *url = NULL;
	struct certificates_question question = {0};

	if (!settings) {
		plan_removal(world, plan, MIRROR_MUTATING, WEBHOOK_MUTATING);
		plan_removal(world, plan, MIRROR_VALIDATING, WEBHOOK_VALIDATING);
		plan_removal(world, plan, MIRROR_CERTIFICATE, secret);
		return 0;
	}
	url = json_str_at(settings, "url");
	name = url ? webhook_url_host(url)
		   : str_printf("%s.%s.svc", json_str_or(json_at(settings, "service"), ""),
				world_env(world, "namespace"));
	question = (struct certificates_question){
		.ns = world_env(world, "namespace"),
		.secret = world_get(world, MIRROR_CERTIFICATE, secret),
		.names = (const char *const *)&name,
		.n_names = 1,
		.lifetime_s = json_integer_value(json_at(settings, "lifetimeSeconds")),
		.published = published_bundle(world),
	};
	rfc3339_read(world_env(world, "now"), &question.now_us);
	if (certificates_decide(&question, &answer, err) < 0)
		return -1;
	if (answer.secret)
		plan_apply(plan, MIRROR_CERTIFICATE, json_incref(answer.secret));
	plan_configuration(world, plan, MIRROR_VALIDATING, WEBHOOK_VALIDATING,
			   json_pack("[o]", users_kinds(world, &text, answer.bundle, false)));
	plan_mutating(world, plan, answer.bundle);
	plan_requeue(plan, answer.again_ms);
	return 0;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void add_namespaces(const struct controller_sources *from, json_t *world,
			   const json_t *config_map)
{
	auto_inject_settings struct inject_settings settings = {0};
	const json_t *name = NULL;
	size_t i = 0;

	mirror_add_indexed(from->mirror, world, KIND_NAMESPACE, NAMESPACE_ASKING, MIRROR_ASKING);
	if (inject_settings_read(config_map, &settings, NULL) < 0)
		return;
	json_array_foreach (settings.include, i, name)
		mirror_add(from->mirror, world, KIND_NAMESPACE, json_string_value(name));
}

void webhook_setup_gather(const struct controller_sources *from, const struct controller *self,
			  const char *key, json_t *world)
{
	auto_free char *secret = str_printf("%s/%s", from->ns, CERTIFICATES_SECRET);
	auto_free char *conf = str_printf("%s/%s", from->config_ns, INJECT_CONFIG_MAP);
	auto_free char *switches = str_printf("%s/%s", from->config_ns, INJECT_SWITCHES_CONFIG_MAP);
	const struct webhook_settings *webhook;
	json_t *settings;

	mirror_add(from->mirror, world, MIRROR_CERTIFICATE, secret);
	mirror_add(from->mirror, world, MIRROR_VALIDATING, WEBHOOK_VALIDATING);
	mirror_add(from->mirror, world, MIRROR_MUTATING, WEBHOOK_MUTATING);
	if (!from->webhook->listen)
		return;
	mirror_add(from->mirror, world, KIND_NAMESPACE, from->ns);
	webhook = from->webhook;
	settings = json_need_object(json_need_object(world, "env"), "webhook");
	json_put_str(settings, "service", webhook->service);
	json_put_str(settings, "url", webhook->url);
	json_put_int(settings, "lifetimeSeconds", webhook->lifetime_s);
	json_put_bool(settings, "matchConditions", webhook->match_conditions);
	json_put_str(settings, "configNamespace", from->config_ns);
	mirror_add(from->mirror, world, MIRROR_SPIDERPOOL_CONF, conf);
	mirror_add(from->mirror, world, MIRROR_SWITCHES, switches);
	add_namespaces(from, world, world_get(world, MIRROR_SPIDERPOOL_CONF, conf));
}

/* There are always namespaces, so their list is also what starts this. */
void webhook_setup_changed(const struct change *c)
{
	wake(c, CONTROLLER_WEBHOOK_SETUP, WEBHOOK_SETUP_KEY);
}
