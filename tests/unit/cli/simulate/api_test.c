// SPDX-License-Identifier: Apache-2.0
/* Requests to the simulated API server and what it answers, without sockets. */
#include "tests/support/test.h"

#include "tests/support/simulated_api.h"

#define PODS "/api/v1/namespaces/default/pods"
#define CMS  "/api/v1/namespaces/default/configmaps"
#define CRDS "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
#define THINGS                                                                                     \
	"{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","       \
	"\"metadata\":{\"name\":\"things.x.io\"},\"spec\":{\"group\":\"x.io\",\"scope\":"          \
	"\"Namespaced\","                                                                          \
	"\"names\":{\"kind\":\"Thing\",\"plural\":\"things\",\"shortNames\":[\"th\"]},"            \
	"\"versions\":[{"                                                                          \
	"\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},"       \
	"\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{"                    \
	"\"spec\":{\"type\":\"object\",\"properties\":{\"vlan\":{\"type\":\"integer\","            \
	"\"maximum\":4094},\"mode\":{\"type\":\"string\",\"default\":\"fast\"}}},"                 \
	"\"status\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}}}]}}"
#define THING_PATH "/apis/x.io/v1/namespaces/default/things"

struct fixture {
	struct simulated_api server;
	int status;
	json_t *answer; /* NULL: it was no JSON */
	struct strbuf text;
};

static int setup(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	simulated_api_init(&f.server);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	json_decref(f->answer);
	strbuf_done(&f->text);
	simulated_api_done(&f->server);
	return 0;
}

static void add_request(struct strbuf *out, const char *method, const char *path, const char *type,
			const char *body)
{
	strbuf_addf(out,
		    "%s %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " SIMULATED_TOKEN
		    "\r\nUser-Agent: test/1\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s",
		    method, path, type, strlen(body), body);
}

/* Send one request; its status. */
static int ask_as(struct fixture *f, const char *method, const char *path, const char *type,
		  const char *body)
{
	auto_strbuf struct strbuf request = {0};
	struct in6_addr peer = {0};
	struct exchange x;
	const char *end;

	add_request(&request, method, path, type, body);
	strbuf_reset(&f->text);
	exchange_init(&x, &f->server.site, &peer);
	exchange_received(&x, request.data, request.len);
	simulated_api_drain(&x, &f->text);
	exchange_done(&x);
	assert_int_equal(sscanf(strbuf_str(&f->text), "HTTP/1.1 %d", &f->status), 1);
	end = strstr(f->text.data, "\r\n\r\n");
	assert_non_null(end);
	json_decref(f->answer);
	f->answer = json_parse(end + 4, strlen(end + 4), NULL);
	return f->status;
}

static int ask(struct fixture *f, const char *method, const char *path, const char *body)
{
	return ask_as(f, method, path, "application/json", body);
}

static const char *reason(const struct fixture *f)
{
	return json_str_or(json_at(f->answer, "reason"), "");
}

static void create_map(struct fixture *f, const char *name, const char *labels)
{
	auto_free char *body =
		str_printf("{\"metadata\":{\"name\":\"%s\",\"labels\":%s},\"data\":{\"a\":\"b\"}}",
			   name, labels);

	assert_int_equal(ask(f, "POST", CMS, body), 201);
}

static size_t items(const struct fixture *f)
{
	return json_array_size(json_at(f->answer, "items"));
}

/* ---- who asks, and for what ------------------------------------------------------------------ */

TEST_WITH(wants_a_token, setup, teardown)
{
	static const char request[] = "GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n";
	static const char health[] = "GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";
	struct fixture *f = *state;
	struct in6_addr peer = {0};
	struct exchange x;

	exchange_init(&x, &f->server.site, &peer);
	exchange_received(&x, request, sizeof(request) - 1);
	assert_non_null(strstr(x.out.data, "HTTP/1.1 401"));
	exchange_sent(&x);
	exchange_received(&x, health, sizeof(health) - 1);
	assert_non_null(strstr(x.out.data, "HTTP/1.1 200"));
	exchange_done(&x);
}

TEST_WITH(answers_404_for_what_is_not_served, setup, teardown)
{
	static const char *const paths[] = {"/",
					    "/api/v2",
					    "/apis/none/v1/things",
					    "/api/v1/nothings",
					    "/api/v1/pods/x",
					    "/api/v1/namespaces/default/nodes",
					    "/api/v1/namespaces/default/pods/x/y/z",
					    PODS "//",
					    "/openapi/v3/apis/none/v1"};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (ask(f, "GET", paths[i], "") != 404)
			fail_msg("%d for %s", f->status, paths[i]);
}

TEST_WITH(discovers_definitions_as_they_come_and_go, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "GET", "/apis/x.io/v1", ""), 404);
	assert_int_equal(ask(f, "POST", CRDS, THINGS), 201);
	assert_non_null(
		json_find(json_at(f->answer, "status", "conditions"), "type", "Established"));
	assert_int_equal(ask(f, "GET", "/apis/x.io/v1", ""), 200);
	assert_string_equal(
		json_str_at(json_array_get(json_at(f->answer, "resources"), 0), "singularName"),
		"thing");
	assert_int_equal(ask(f, "POST", THING_PATH, "{\"metadata\":{\"name\":\"a\"}}"), 201);
	assert_int_equal(ask(f, "DELETE", CRDS "/things.x.io", ""), 200);
	assert_int_equal(ask(f, "GET", "/apis/x.io/v1", ""), 404);
	assert_int_equal(ask(f, "POST", CRDS, THINGS), 201);
	assert_int_equal(ask(f, "GET", THING_PATH, ""), 200);
	assert_int_equal(items(f), 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

TEST_WITH(lists_what_selectors_select, setup, teardown)
{
	struct fixture *f = *state;

	create_map(f, "x", "{\"app\":\"a\"}");
	create_map(f, "y", "{\"app\":\"b\"}");
	assert_int_equal(ask(f, "GET", CMS "?labelSelector=app%3Da", ""), 200);
	assert_int_equal(items(f), 1);
	assert_int_equal(ask(f, "GET", CMS "?labelSelector=app+in+(a,b)", ""), 200);
	assert_int_equal(items(f), 2);
	assert_int_equal(ask(f, "GET", "/api/v1/configmaps?fieldSelector=metadata.name%3Dy", ""),
			 200);
	assert_int_equal(items(f), 1);
	assert_int_equal(ask(f, "GET", CMS "?fieldSelector=data.a%3Db", ""), 400);
	assert_int_equal(ask(f, "GET", "/api/v1/namespaces/other/configmaps", ""), 200);
	assert_int_equal(items(f), 0);
}

TEST_WITH(lists_in_pages, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *path = NULL;

	create_map(f, "x", "{}");
	create_map(f, "y", "{}");
	create_map(f, "z", "{}");
	assert_int_equal(ask(f, "GET", CMS "?limit=2", ""), 200);
	assert_int_equal(items(f), 2);
	assert_int_equal(json_integer_value(json_at(f->answer, "metadata", "remainingItemCount")),
			 1);
	path = str_printf(CMS "?limit=2&continue=%s",
			  json_str_at(f->answer, "metadata", "continue"));
	assert_int_equal(ask(f, "GET", path, ""), 200);
	assert_int_equal(items(f), 1);
	assert_null(json_at(f->answer, "metadata", "continue"));
	assert_int_equal(ask(f, "GET", CMS "?continue=nonsense", ""), 400);
}

TEST_WITH(watches_from_a_version, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *path = NULL;

	create_map(f, "x", "{}");
	path = str_printf(CMS "?watch=1&resourceVersion=%s",
			  json_str_at(f->answer, "metadata", "resourceVersion"));
	create_map(f, "y", "{}");
	assert_int_equal(ask(f, "DELETE", CMS "/x", ""), 200);
	assert_int_equal(ask(f, "GET", path, ""), 200);
	assert_non_null(strstr(f->text.data, "{\"type\":\"ADDED\",\"object\":"));
	assert_non_null(strstr(f->text.data, "{\"type\":\"DELETED\",\"object\":"));
	assert_null(strstr(f->text.data, "MODIFIED"));
}

TEST_WITH(tells_a_selective_watch_what_comes_and_goes, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *one = NULL, *two = NULL;

	create_map(f, "x", "{\"app\":\"a\"}");
	one = str_printf(CMS "?watch=1&labelSelector=app%%3Da&resourceVersion=%s",
			 json_str_at(f->answer, "metadata", "resourceVersion"));
	two = str_printf(CMS "?watch=1&labelSelector=app%%3Db&resourceVersion=%s",
			 json_str_at(f->answer, "metadata", "resourceVersion"));
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "application/merge-patch+json",
				"{\"metadata\":{\"labels\":{\"app\":\"b\"}}}"),
			 200);
	assert_int_equal(ask(f, "GET", one, ""), 200);
	assert_non_null(strstr(f->text.data, "\"DELETED\""));
	assert_int_equal(ask(f, "GET", two, ""), 200);
	assert_non_null(strstr(f->text.data, "\"ADDED\""));
}

TEST_WITH(sends_the_list_first_where_a_watch_asks_for_it, setup, teardown)
{
	struct fixture *f = *state;

	create_map(f, "x", "{}");
	assert_int_equal(ask(f, "GET", CMS "?watch=1&sendInitialEvents=true", ""), 200);
	assert_non_null(strstr(f->text.data, "ADDED"));
	assert_non_null(strstr(f->text.data, "k8s.io/initial-events-end"));
}

TEST_WITH(says_that_a_version_is_not_known, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "GET", CMS "?watch=1&resourceVersion=99999", ""), 200);
	assert_non_null(strstr(f->text.data, "\"ERROR\""));
	assert_non_null(strstr(f->text.data, "410"));
}

TEST_WITH(makes_tables, setup, teardown)
{
	struct fixture *f = *state;
	static const char request[] =
		"GET " CMS " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " SIMULATED_TOKEN
		"\r\nAccept: application/json;as=Table;v=v1;"
		"g=meta.k8s.io\r\n\r\n";
	struct in6_addr peer = {0};
	struct exchange x;

	create_map(f, "x", "{}");
	exchange_init(&x, &f->server.site, &peer);
	exchange_received(&x, request, sizeof(request) - 1);
	assert_non_null(strstr(x.out.data, "\"Table\""));
	assert_non_null(strstr(x.out.data, "columnDefinitions"));
	exchange_done(&x);
}

/* ---- writing --------------------------------------------------------------------------------- */

TEST_WITH(refuses_a_second_object_of_a_name, setup, teardown)
{
	struct fixture *f = *state;

	create_map(f, "x", "{}");
	assert_int_equal(ask(f, "POST", CMS, "{\"metadata\":{\"name\":\"x\"}}"), 409);
	assert_string_equal(reason(f), "AlreadyExists");
	assert_string_equal(json_str_at(f->answer, "message"), "configmaps \"x\" already exists");
}

TEST_WITH(makes_names, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", CMS, "{\"metadata\":{\"generateName\":\"x-\"}}"), 201);
	assert_true(str_starts(json_name(f->answer), "x-"));
	assert_int_equal(strlen(json_name(f->answer)), 7);
	assert_int_equal(ask(f, "POST", CMS, "{}"), 422);
}

TEST_WITH(needs_the_namespace, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", "/api/v1/namespaces/none/configmaps",
			     "{\"metadata\":{\"name\":\"x\"}}"),
			 404);
	assert_string_equal(json_str_at(f->answer, "message"), "namespaces \"none\" not found");
}

TEST_WITH(compares_versions, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *body = NULL;

	create_map(f, "x", "{}");
	body = json_text(f->answer);
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "application/merge-patch+json",
				"{\"data\":{\"c\":\"d\"}}"),
			 200);
	assert_int_equal(ask(f, "PUT", CMS "/x", body), 409);
	assert_string_equal(reason(f), "Conflict");
}

TEST_WITH(writes_nothing_where_nothing_changes, setup, teardown)
{
	struct fixture *f = *state;
	auto_free char *version = NULL;

	create_map(f, "x", "{}");
	version = str_dup(json_str_at(f->answer, "metadata", "resourceVersion"));
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "application/merge-patch+json",
				"{\"data\":{\"a\":\"b\"}}"),
			 200);
	assert_string_equal(json_str_at(f->answer, "metadata", "resourceVersion"), version);
}

TEST_WITH(keeps_spec_and_status_apart, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", CRDS, THINGS), 201);
	assert_int_equal(ask(f, "POST", THING_PATH,
			     "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"vlan\":1,\"bogus\":2},"
			     "\"status\":{\"x\":1}}"),
			 201);
	assert_null(json_at(f->answer, "status"));
	assert_null(json_at(f->answer, "spec", "bogus"));
	assert_string_equal(json_str_at(f->answer, "spec", "mode"), "fast");
	assert_int_equal(ask_as(f, "PATCH", THING_PATH "/a/status", "application/merge-patch+json",
				"{\"spec\":{\"vlan\":2},\"status\":{\"x\":1}}"),
			 200);
	assert_int_equal(json_integer_value(json_at(f->answer, "spec", "vlan")), 1);
	assert_int_equal(json_integer_value(json_at(f->answer, "status", "x")), 1);
	assert_int_equal(json_generation(f->answer), 1);
	assert_int_equal(ask_as(f, "PATCH", THING_PATH "/a", "application/merge-patch+json",
				"{\"spec\":{\"vlan\":2},\"status\":{\"x\":2}}"),
			 200);
	assert_int_equal(json_generation(f->answer), 2);
	assert_int_equal(json_integer_value(json_at(f->answer, "status", "x")), 1);
}

TEST_WITH(validates_by_the_definition, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", CRDS, THINGS), 201);
	assert_int_equal(ask(f, "POST", THING_PATH,
			     "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"vlan\":5000}}"),
			 422);
	assert_string_equal(
		json_str_at(f->answer, "message"),
		"Thing.x.io \"a\" is invalid: spec.vlan: Invalid value: 5000: spec.vlan "
		"in body should be less than or equal to 4094");
	assert_int_equal(ask(f, "POST", THING_PATH "?fieldValidation=Strict",
			     "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"bogus\":1}}"),
			 400);
}

TEST_WITH(applies_and_names_conflicts, setup, teardown)
{
	static const char apply[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
				    "\"name\":\"x\"},\"data\":{\"a\":\"%s\"}}";
	struct fixture *f = *state;
	auto_free char *first = str_printf("%s", apply);
	auto_free char *second = NULL;

	strstr(first, "%s")[0] = '1';
	strstr(first, "1s")[1] = '1';
	second = str_dup(first);
	strstr(second, "11")[0] = '2';
	assert_int_equal(ask_as(f, "PATCH", CMS "/x?fieldManager=one",
				"application/apply-patch+yaml", first),
			 201);
	assert_int_equal(ask_as(f, "PATCH", CMS "/x?fieldManager=two",
				"application/apply-patch+yaml", second),
			 409);
	assert_int_equal(ask_as(f, "PATCH", CMS "/x?fieldManager=two&force=true",
				"application/apply-patch+yaml", second),
			 200);
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "application/apply-patch+yaml", second), 400);
}

TEST_WITH(stores_nothing_in_a_dry_run, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", CMS "?dryRun=All", "{\"metadata\":{\"name\":\"x\"}}"), 201);
	assert_int_equal(ask(f, "GET", CMS "/x", ""), 404);
}

TEST_WITH(refuses_bodies_that_it_cannot_read, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", CMS, "{"), 400);
	assert_int_equal(ask(f, "POST", CMS, "[]"), 400);
	assert_int_equal(ask(f, "POST", CMS, "{\"kind\":\"Secret\"}"), 400);
	assert_int_equal(ask_as(f, "POST", CMS, "application/vnd.kubernetes.protobuf", "k8s"), 400);
	assert_int_equal(ask_as(f, "POST", CMS, "application/cbor", "x"), 415);
	create_map(f, "x", "{}");
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "text/plain", "{}"), 415);
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "application/json-patch+json", "{}"), 400);
}

/* ---- deleting -------------------------------------------------------------------------------- */

TEST_WITH(waits_for_finalizers, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(
		ask(f, "POST", CMS, "{\"metadata\":{\"name\":\"x\",\"finalizers\":[\"x.io/a\"]}}"),
		201);
	assert_int_equal(ask(f, "DELETE", CMS "/x", ""), 200);
	assert_int_equal(ask(f, "GET", CMS "/x", ""), 200);
	assert_non_null(json_at(f->answer, "metadata", "deletionTimestamp"));
	assert_int_equal(ask_as(f, "PATCH", CMS "/x", "application/merge-patch+json",
				"{\"metadata\":{\"finalizers\":null}}"),
			 200);
	assert_int_equal(ask(f, "GET", CMS "/x", ""), 404);
}

static void create_owned(struct fixture *f, const char *name, const char *uid)
{
	auto_free char *body = str_printf(
		"{\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
		"\"kind\":\"ConfigMap\",\"name\":\"x\",\"uid\":\"%s\"}]}}",
		name, uid);

	assert_int_equal(ask(f, "POST", CMS, body), 201);
}

TEST_WITH(deletes_what_the_object_owned, setup, teardown)
{
	static const struct {
		const char *options;
		int left;
	} cases[] = {
		{"", 404},
		{"{\"propagationPolicy\":\"Foreground\"}", 404},
		{"{\"propagationPolicy\":\"Orphan\"}", 200},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *uid = NULL;

		create_map(f, "x", "{}");
		uid = str_dup(json_uid(f->answer));
		create_owned(f, "y", uid);
		assert_int_equal(ask(f, "DELETE", CMS "/x", cases[i].options), 200);
		assert_int_equal(ask(f, "GET", CMS "/x", ""), 404);
		assert_int_equal(ask(f, "GET", CMS "/y", ""), cases[i].left);
	}
}

TEST_WITH(checks_preconditions, setup, teardown)
{
	struct fixture *f = *state;

	create_map(f, "x", "{}");
	assert_int_equal(ask(f, "DELETE", CMS "/x", "{\"preconditions\":{\"uid\":\"other\"}}"),
			 409);
	assert_int_equal(ask(f, "GET", CMS "/x", ""), 200);
}

TEST_WITH(empties_a_namespace_before_it_goes, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", "/api/v1/namespaces", "{\"metadata\":{\"name\":\"a\"}}"),
			 201);
	assert_int_equal(ask(f, "POST", "/api/v1/namespaces/a/configmaps",
			     "{\"metadata\":{\"name\":\"x\",\"finalizers\":[\"x.io/a\"]}}"),
			 201);
	assert_int_equal(ask(f, "DELETE", "/api/v1/namespaces/a", ""), 200);
	assert_int_equal(ask(f, "GET", "/api/v1/namespaces/a", ""), 200);
	assert_string_equal(json_str_at(f->answer, "status", "phase"), "Terminating");
	assert_int_equal(ask(f, "POST", "/api/v1/namespaces/a/configmaps",
			     "{\"metadata\":{\"name\":\"y\"}}"),
			 403);
	assert_int_equal(ask_as(f, "PATCH", "/api/v1/namespaces/a/configmaps/x",
				"application/merge-patch+json",
				"{\"metadata\":{\"finalizers\":[]}}"),
			 200);
	assert_int_equal(ask(f, "GET", "/api/v1/namespaces/a", ""), 404);
}

TEST_WITH(deletes_collections_by_selector, setup, teardown)
{
	struct fixture *f = *state;

	create_map(f, "x", "{\"app\":\"a\"}");
	create_map(f, "y", "{\"app\":\"b\"}");
	assert_int_equal(ask(f, "DELETE", CMS "?labelSelector=app%3Da", ""), 200);
	assert_int_equal(ask(f, "GET", CMS, ""), 200);
	assert_int_equal(items(f), 1);
}

/* ---- pods ------------------------------------------------------------------------------------ */

static void create_pod(struct fixture *f, const char *name)
{
	auto_free char *body =
		str_printf("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"a\":\"b\"}},"
			   "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\","
			   "\"resources\":{\"limits\":{\"x.io/vf\":\"1\"}}}]}}",
			   name);

	assert_int_equal(ask(f, "POST", PODS, body), 201);
}

/* nodeStatusStrategy: rights to nodes/status label Nodes, and do not cordon them. */
TEST_WITH(labels_a_node_with_its_status_and_does_not_cordon_it, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(
		ask(f, "POST", "/api/v1/nodes",
		    "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\",\"c\":\"d\"}}}"),
		201);
	assert_int_equal(ask_as(f, "PATCH", "/api/v1/nodes/n/status",
				"application/merge-patch+json",
				"{\"metadata\":{\"labels\":{\"a\":null,\"e\":\"f\"}},"
				"\"spec\":{\"unschedulable\":true}}"),
			 200);
	assert_int_equal(ask(f, "GET", "/api/v1/nodes/n", ""), 200);
	assert_null(json_at(f->answer, "metadata", "labels", "a"));
	assert_string_equal(json_str_at(f->answer, "metadata", "labels", "c"), "d");
	assert_string_equal(json_str_at(f->answer, "metadata", "labels", "e"), "f");
	assert_null(json_at(f->answer, "spec", "unschedulable"));
}

TEST_WITH(binds_a_pod_once, setup, teardown)
{
	struct fixture *f = *state;

	create_pod(f, "p");
	assert_string_equal(json_str_at(f->answer, "status", "phase"), "Pending");
	assert_int_equal(ask(f, "POST", PODS "/p/binding", "{\"target\":{\"name\":\"n\"}}"), 201);
	assert_int_equal(ask(f, "POST", PODS "/p/binding", "{\"target\":{\"name\":\"m\"}}"), 409);
	assert_int_equal(ask(f, "GET", PODS "?fieldSelector=spec.nodeName%3Dn", ""), 200);
	assert_int_equal(items(f), 1);
}

TEST_WITH(waits_for_the_node_of_a_pod_that_goes, setup, teardown)
{
	struct fixture *f = *state;

	create_pod(f, "p");
	assert_int_equal(ask(f, "POST", PODS "/p/binding", "{\"target\":{\"name\":\"n\"}}"), 201);
	assert_int_equal(ask(f, "DELETE", PODS "/p", ""), 200);
	assert_int_equal(
		json_integer_value(json_at(f->answer, "metadata", "deletionGracePeriodSeconds")),
		30);
	assert_int_equal(ask(f, "DELETE", PODS "/p", "{\"gracePeriodSeconds\":0}"), 200);
	assert_int_equal(ask(f, "GET", PODS "/p", ""), 404);
}

TEST_WITH(evicts_as_far_as_budgets_allow, setup, teardown)
{
	struct fixture *f = *state;

	create_pod(f, "p");
	assert_int_equal(ask_as(f, "PATCH", PODS "/p/status", "application/merge-patch+json",
				"{\"status\":{\"phase\":\"Running\"}}"),
			 200);
	assert_int_equal(ask(f, "POST", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
			     "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"minAvailable\":1,"
			     "\"selector\":{\"matchLabels\":{\"a\":\"b\"}}}}"),
			 201);
	assert_int_equal(ask(f, "POST", PODS "/p/eviction", "{}"), 429);
	assert_int_equal(ask_as(f, "PATCH",
				"/apis/policy/v1/namespaces/default/poddisruptionbudgets/b",
				"application/merge-patch+json", "{\"spec\":{\"minAvailable\":0}}"),
			 200);
	assert_int_equal(ask(f, "POST", PODS "/p/eviction", "{}"), 201);
	assert_int_equal(ask(f, "GET", PODS "/p", ""), 404);
}

TEST_WITH(says_why_there_is_no_log, setup, teardown)
{
	struct fixture *f = *state;

	create_pod(f, "p");
	assert_int_equal(ask(f, "GET", PODS "/p/log", ""), 400);
	assert_non_null(strstr(json_str_at(f->answer, "message"), "do not run"));
}

/* ---- other kinds ----------------------------------------------------------------------------- */

TEST_WITH(shows_events_in_both_groups, setup, teardown)
{
	struct fixture *f = *state;

	assert_int_equal(ask(f, "POST", "/api/v1/namespaces/default/events",
			     "{\"metadata\":{\"name\":\"e\"},\"message\":\"hello\","
			     "\"involvedObject\":{\"name\":\"p\",\"kind\":\"Pod\"}}"),
			 201);
	assert_int_equal(ask(f, "GET", "/apis/events.k8s.io/v1/namespaces/default/events/e", ""),
			 200);
	assert_string_equal(json_str_at(f->answer, "note"), "hello");
	assert_string_equal(json_str_at(f->answer, "apiVersion"), "events.k8s.io/v1");
	assert_string_equal(json_str_at(f->answer, "regarding", "name"), "p");
}

TEST_WITH(scales, setup, teardown)
{
	static const char path[] = "/apis/apps/v1/namespaces/default/deployments";
	struct fixture *f = *state;
	auto_free char *scale = str_printf("%s/d/scale", path);

	assert_int_equal(
		ask(f, "POST", path,
		    "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"selector\":{\"matchLabels\":"
		    "{\"a\":\"b\"}},\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
		    "\"image\":\"i\"}]}}}}"),
		201);
	assert_int_equal(json_integer_value(json_at(f->answer, "spec", "replicas")), 1);
	assert_int_equal(ask_as(f, "PATCH", scale, "application/merge-patch+json",
				"{\"spec\":{\"replicas\":3}}"),
			 200);
	assert_string_equal(json_str_at(f->answer, "kind"), "Scale");
	assert_int_equal(ask(f, "GET", scale, ""), 200);
	assert_int_equal(json_integer_value(json_at(f->answer, "spec", "replicas")), 3);
	assert_string_equal(json_str_at(f->answer, "status", "selector"), "a=b");
}

TEST_WITH(knows_its_own_tokens, setup, teardown)
{
	static const char reviews[] = "/apis/authentication.k8s.io/v1/tokenreviews";
	struct fixture *f = *state;
	auto_free char *body = NULL;

	assert_int_equal(ask(f, "POST", "/api/v1/namespaces/default/serviceaccounts",
			     "{\"metadata\":{\"name\":\"s\"}}"),
			 201);
	assert_int_equal(ask(f, "POST", "/api/v1/namespaces/default/serviceaccounts/s/token", "{}"),
			 201);
	body = str_printf("{\"spec\":{\"token\":\"%s\"}}",
			  json_str_at(f->answer, "status", "token"));
	assert_int_equal(ask(f, "POST", reviews, body), 201);
	assert_string_equal(json_str_at(f->answer, "status", "user", "username"),
			    "system:serviceaccount:default:s");
	assert_int_equal(ask(f, "POST", reviews, "{\"spec\":{\"token\":\"other\"}}"), 201);
	assert_false(json_is_true(json_at(f->answer, "status", "authenticated")));
}
