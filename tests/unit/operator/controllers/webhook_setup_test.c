// SPDX-License-Identifier: Apache-2.0
/*
 * What is put into the cluster so that API servers call us; worlds as webhook_setup_gather makes
 * them.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/controllers/certificates.h"
#include "operator/controllers/webhook_setup.h"
#include "operator/writer/applier_patch.h"
#include "reconcilers/admission/pod_environment.h"
#include "reconcilers/spider/cni_config.h"

#define NS         "orbweaver-system"
#define SECRET_KEY NS "/" CERTIFICATES_SECRET
#define CONF_KEY   NS "/spiderpool-conf"

static json_t *new_world(void)
{
	return json_pack(
		"{s:{s:s, s:s, s:{s:s, s:I, s:b, s:s}}}", "env", "now", "2026-01-01T00:00:00Z",
		"namespace", NS, "webhook", "service", "orbweaver-webhook", "lifetimeSeconds",
		(json_int_t)CERTIFICATES_LIFETIME_S, "matchConditions", 0, "configNamespace", NS);
}

static void put(json_t *world, const char *kind, const char *key, json_t *object)
{
	json_put(json_need_object(world, kind), key, object);
}

static void put_settings(json_t *world, const char *yaml)
{
	put(world, MIRROR_SPIDERPOOL_CONF, CONF_KEY,
	    json_pack("{s:{s:s}}", "data", "conf.yml", yaml));
}

static void put_namespace(json_t *world, const char *name, bool labelled, bool asks)
{
	json_t *namespace = json_pack("{s:{s:s}}", "metadata", "name", name);
	json_t *metadata = json_at(namespace, "metadata");

	if (labelled)
		json_put_str(json_need_object(metadata, "labels"), "kubernetes.io/metadata.name",
			     name);
	if (asks)
		json_put_str(json_need_object(metadata, "annotations"), CNI_ANNOTATION_RDMA_INJECT,
			     "g");
	put(world, KIND_NAMESPACE, name, namespace);
}

static void reconcile(const json_t *world, struct plan *plan)
{
	struct err err = {0};

	if (webhook_setup_reconcile(world, WEBHOOK_SETUP_KEY, plan, &err) < 0)
		fail_msg("%s", err.text);
}

/* The object that the plan applies; NULL: none. Borrowed. */
static json_t *applied(const struct plan *plan, const char *kind)
{
	const json_t *op = NULL;
	size_t i = 0;

	json_array_foreach (plan->ops, i, op)
		if (str_eq(json_str_at(op, "op"), "apply") && str_eq(json_str_at(op, "kind"), kind))
			return json_at(op, "object");
	return NULL;
}

/* The n-th webhook of the mutating configuration. Borrowed. */
static json_t *mutating(const struct plan *plan, size_t n)
{
	return json_array_get(json_at(applied(plan, MIRROR_MUTATING), "webhooks"), n);
}

static void assert_json(const json_t *got, const char *want)
{
	auto_free char *text = json_text(got);

	assert_string_equal(text, want);
}

TEST(everything_shows_one_bundle)
{
	json_auto_t *world = new_world();
	auto_plan struct plan plan = {0};
	const json_t *kinds[2], *webhook = NULL;
	const char *bundle = NULL;
	size_t i = 0;

	put_settings(world, "podResourceInject: {enabled: true}");
	reconcile(world, &plan);
	/* The Secret goes first: nothing is trusted before it is kept. */
	assert_string_equal(json_str_at(json_array_get(plan.ops, 0), "kind"), MIRROR_CERTIFICATE);
	bundle = json_str_at(applied(&plan, MIRROR_CERTIFICATE), "data", "ca.crt");
	assert_non_null(bundle);
	kinds[0] = applied(&plan, MIRROR_VALIDATING);
	kinds[1] = applied(&plan, MIRROR_MUTATING);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		json_array_foreach (json_at(kinds[k], "webhooks"), i, webhook)
			assert_string_equal(json_str_at(webhook, "clientConfig", "caBundle"),
					    bundle);
	assert_int_equal(json_array_size(json_at(kinds[1], "webhooks")), 2);
}

/* Promises that hold for each webhook of ours, whatever it is for. */
TEST(no_webhook_can_stop_the_cluster)
{
	json_auto_t *world = new_world();
	auto_plan struct plan plan = {0};
	const char *const kinds[] = {MIRROR_VALIDATING, MIRROR_MUTATING};
	const json_t *webhook = NULL, *rule = NULL, *value = NULL;
	size_t i = 0, j = 0, k = 0;

	put_settings(world, "podResourceInject: {enabled: true}");
	reconcile(world, &plan);
	for (size_t n = 0; n < ARRAY_LEN(kinds); n++)
		json_array_foreach (json_at(applied(&plan, kinds[n]), "webhooks"), i, webhook) {
			assert_string_equal(json_str_at(webhook, "failurePolicy"), "Ignore");
			assert_string_equal(json_str_at(webhook, "sideEffects"), "None");
			assert_true(json_integer_value(json_at(webhook, "timeoutSeconds")) <= 5);
			json_array_foreach (json_at(webhook, "rules"), j, rule) {
				json_array_foreach (json_at(rule, "operations"), k, value)
					assert_string_not_equal(json_string_value(value), "DELETE");
				/* A subresource would have to be named. */
				json_array_foreach (json_at(rule, "resources"), k, value)
					assert_null(strpbrk(json_string_value(value), "/*"));
			}
		}
}

TEST(pods_are_left_alone_unless_settings_say_so)
{
	static const char *const texts[] = {NULL, "", "podResourceInject: {}",
					    "podResourceInject: {enabled: false}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_auto_t *world = new_world();
		auto_plan struct plan plan = {0};

		if (texts[i])
			put_settings(world, texts[i]);
		reconcile(world, &plan);
		assert_non_null(mutating(&plan, 0));
		assert_null(mutating(&plan, 1));
	}
}

TEST(pods_are_narrowed_by_namespace_and_label)
{
	json_auto_t *world = new_world();
	auto_plan struct plan plan = {0};

	put_settings(world, "podResourceInject: {enabled: true, namespacesExclude: [], "
			    "namespacesInclude: [ai]}");
	put_namespace(world, "ai", true, false);
	reconcile(world, &plan);
	assert_json(json_at(mutating(&plan, 1), "namespaceSelector"),
		    "{\"matchExpressions\":[{\"key\":\"kubernetes.io/metadata.name\",\"operator\":"
		    "\"NotIn\",\"values\":[\"kube-system\",\"orbweaver-system\"]},{\"key\":"
		    "\"kubernetes.io/metadata.name\",\"operator\":\"In\",\"values\":[\"ai\"]}]}");
	assert_json(json_at(mutating(&plan, 1), "objectSelector"),
		    "{\"matchExpressions\":[{\"key\":\"app.kubernetes.io/part-of\",\"operator\":"
		    "\"NotIn\",\"values\":[\"orbweaver\"]}]}");
	assert_json(json_at(mutating(&plan, 1), "rules"),
		    "[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],"
		    "\"resources\":[\"pods\"],\"scope\":\"*\"}]");
}

TEST(an_included_namespace_without_its_label_is_not_lost)
{
	json_auto_t *world = new_world();
	auto_plan struct plan plan = {0};

	put_settings(world, "podResourceInject: {enabled: true, namespacesInclude: [ai, gone]}");
	put_namespace(world, "ai", false, false);
	reconcile(world, &plan);
	assert_int_equal(json_array_size(json_at(mutating(&plan, 1), "namespaceSelector",
						 "matchExpressions")),
			 1);
}

TEST(servers_that_can_are_asked_to_call_only_for_pods_that_ask)
{
	json_auto_t *world = new_world();
	auto_plan struct plan plan = {0};

	json_put_bool(json_at(world, "env", "webhook"), "matchConditions", true);
	put_settings(world, "podResourceInject: {enabled: true}");
	put_namespace(world, "zoo", true, true);
	put_namespace(world, "ai", true, true);
	put_namespace(world, "plain", true, false);
	put_namespace(world, "jobs", true, false);
	json_put_str(json_at(world, KIND_NAMESPACE, "jobs", "metadata", "labels"),
		     POD_ENVIRONMENT_NAME, "nccl");
	reconcile(world, &plan);
	assert_json(
		json_at(mutating(&plan, 1), "matchConditions"),
		"[{\"expression\":\"(has(object.metadata.annotations) && "
		"(\\\"cni.spidernet.io/rdma-resource-inject\\\" in object.metadata.annotations || "
		"\\\"cni.spidernet.io/network-resource-inject\\\" in "
		"object.metadata.annotations || \\\"orbweaver.io/environment\\\" in "
		"object.metadata.annotations)) || request.namespace in [\\\"ai\\\", "
		"\\\"jobs\\\", \\\"zoo\\\"]\",\"name\":\"asks-for-injection\"}]");
	assert_null(json_at(mutating(&plan, 0), "matchConditions"));
}

/* What is stored, as the plan wants it. */
static void store(json_t *world, const struct plan *plan)
{
	put(world, MIRROR_CERTIFICATE, SECRET_KEY,
	    json_deep_copy(applied(plan, MIRROR_CERTIFICATE)));
	put(world, MIRROR_VALIDATING, WEBHOOK_VALIDATING,
	    json_deep_copy(applied(plan, MIRROR_VALIDATING)));
	put(world, MIRROR_MUTATING, WEBHOOK_MUTATING,
	    json_deep_copy(applied(plan, MIRROR_MUTATING)));
}

static void put_switches(json_t *world, const char *text)
{
	put(world, MIRROR_SWITCHES, NS "/nri-control-switches",
	    json_pack("{s:{s:s}}", "data", "config.json", text));
}

static const char *condition_of(const struct plan *plan)
{
	return json_str_at(json_array_get(json_at(mutating(plan, 1), "matchConditions"), 0),
			   "expression");
}

/* Pods that name networks ask, too, and those with the label of an injection. */
TEST(with_network_resources_more_pods_ask)
{
	static const char names[] = " || \"k8s.v1.cni.cncf.io/networks\" in "
				    "object.metadata.annotations || "
				    "\"v1.multus-cni.io/default-network\" in "
				    "object.metadata.annotations)) || request.namespace in []";
	static const char labels[] = ")) || (has(object.metadata.labels) && (\"a.io/b\" in "
				     "object.metadata.labels || \"c\" in "
				     "object.metadata.labels)) || request.namespace in []";
	json_auto_t *world = new_world();
	auto_plan struct plan named = {0}, labelled = {0}, bad = {0};

	json_put_bool(json_at(world, "env", "webhook"), "matchConditions", true);
	put_settings(world,
		     "podResourceInject: {enabled: true, networkResources: {enabled: true}}");
	reconcile(world, &named);
	assert_non_null(strstr(condition_of(&named), names));
	put_switches(world, "{\"user-defined-injections\": {\"a.io/b\": {\"path\": "
			    "\"/metadata/annotations\"}, \"c\": {\"path\": "
			    "\"/metadata/annotations\"}}}");
	reconcile(world, &labelled);
	assert_non_null(strstr(condition_of(&labelled), labels));
	/* Switches that cannot be read change nothing. */
	store(world, &labelled);
	put_switches(world, "{");
	reconcile(world, &bad);
	assert_true(json_same(applied(&bad, MIRROR_MUTATING), applied(&labelled, MIRROR_MUTATING)));
}

TEST(settings_that_cannot_be_read_change_nothing)
{
	json_auto_t *world = new_world();
	auto_plan struct plan good = {0}, bad = {0};
	const json_t *op = NULL;
	size_t i = 0;
	bool told = false;

	put_settings(world, "podResourceInject: {enabled: true, namespacesExclude: [x]}");
	reconcile(world, &good);
	store(world, &good);
	put_settings(world, "podResourceInject: {enabled: maybe}");
	reconcile(world, &bad);
	assert_true(json_same(applied(&good, MIRROR_MUTATING), applied(&bad, MIRROR_MUTATING)));
	json_array_foreach (bad.ops, i, op)
		told = told || (str_eq(json_str_at(op, "op"), "event") &&
				strstr(json_str_at(op, "message"), "podResourceInject.enabled"));
	assert_true(told);
}

/* The other rules of injection, and other templates, go on. */
TEST(a_bad_template_is_an_event)
{
	json_auto_t *world = new_world();
	auto_plan struct plan good = {0}, bad = {0};
	const json_t *op = NULL;
	size_t i = 0;
	bool told = false;

	put_settings(world, "podResourceInject: {enabled: true}");
	reconcile(world, &good);
	store(world, &good);
	json_put_str(json_at(world, MIRROR_SPIDERPOOL_CONF, CONF_KEY, "data"), POD_ENVIRONMENT_KEY,
		     "{nccl: {NCCL_IB_TC: true}}");
	reconcile(world, &bad);
	assert_true(json_same(applied(&good, MIRROR_MUTATING), applied(&bad, MIRROR_MUTATING)));
	json_array_foreach (bad.ops, i, op)
		told = told || (str_eq(json_str_at(op, "op"), "event") &&
				strstr(json_str_at(op, "message"),
				       "data[environment.yml]: nccl: NCCL_IB_TC is a boolean"));
	assert_true(told);
}

TEST(what_was_stored_needs_no_second_write)
{
	static const char *const kinds[] = {MIRROR_CERTIFICATE, MIRROR_VALIDATING, MIRROR_MUTATING};
	static const char *const keys[] = {SECRET_KEY, WEBHOOK_VALIDATING, WEBHOOK_MUTATING};
	json_auto_t *world = new_world();
	auto_plan struct plan first = {0}, second = {0};

	put_settings(world, "podResourceInject: {enabled: true}");
	reconcile(world, &first);
	store(world, &first);
	reconcile(world, &second);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		assert_null(applier_patch(world_get(world, kinds[i], keys[i]),
					  applied(&second, kinds[i])));
}

TEST(without_webhooks_what_is_ours_is_removed_and_nothing_else)
{
	json_auto_t *world = new_world();
	auto_plan struct plan on = {0}, off = {0}, foreign = {0};

	reconcile(world, &on);
	store(world, &on);
	json_object_del(json_at(world, "env"), "webhook");
	reconcile(world, &off);
	assert_int_equal(json_array_size(off.ops), 3);
	assert_string_equal(json_str_at(json_array_get(off.ops, 0), "op"), "delete");
	/* the Secret last: nobody is asked to call what cannot be trusted any more */
	assert_string_equal(json_str_at(json_array_get(off.ops, 2), "kind"), MIRROR_CERTIFICATE);
	json_object_del(json_at(world, MIRROR_MUTATING, WEBHOOK_MUTATING, "metadata"), "labels");
	reconcile(world, &foreign);
	assert_int_equal(json_array_size(foreign.ops), 2);
}

TEST(servers_call_by_url_or_by_service)
{
	json_auto_t *world = new_world();
	auto_plan struct plan by_service = {0}, by_url = {0};
	json_t *config = NULL;

	reconcile(world, &by_service);
	config = json_at(mutating(&by_service, 0), "clientConfig");
	assert_json(json_at(config, "service"),
		    "{\"name\":\"orbweaver-webhook\",\"namespace\":\"orbweaver-system\",\"path\":"
		    "\"/default\",\"port\":443}");
	json_put_str(json_at(world, "env", "webhook"), "url", "https://[::1]:9443");
	reconcile(world, &by_url);
	config = json_at(mutating(&by_url, 0), "clientConfig");
	assert_string_equal(json_str_at(config, "url"), "https://[::1]:9443/default");
	assert_null(json_at(config, "service"));
}

TEST(finds_the_host_in_a_url)
{
	static const struct {
		const char *url, *host;
	} cases[] = {
		{"https://127.0.0.1:8443", "127.0.0.1"},
		{"https://hooks.example.com", "hooks.example.com"},
		{"https://[::1]:8443", "::1"},
		{"https://[::1]", "::1"},
		{"http://127.0.0.1:8443", NULL},
		{"https://", NULL},
		{"https://:8443", NULL},
		{"https://a:0", NULL},
		{"https://a:65536", NULL},
		{"https://a:b", NULL},
		{"https://a:", NULL},
		{"https://a/path", NULL},
		{"https://a:1/", NULL},
		{"https://user@a", NULL},
		{"https://[::1", NULL},
		{"https://[]", NULL},
		{"https://[::1]x", NULL},
		{"", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *host = webhook_url_host(cases[i].url);

		if (!str_eq(host, cases[i].host))
			fail_msg("%s: %s", cases[i].url, host ? host : "refused");
	}
}
