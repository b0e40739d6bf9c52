// SPDX-License-Identifier: Apache-2.0
/*
 * The webhook over TLS, answering from a mirror that a test has filled: what it says, when it says
 * nothing yet, what changes while it serves. What the verdicts are is tested with the reconcilers;
 * that API servers call it, on a real one.
 */
#include "lib/base/own_fd.h"
#include "tests/unit/http/client.h"
#include "tests/unit/operator/mirrored.h"

#include "lib/base/base64.h"
#include "lib/base/clock.h"
#include "operator/controllers/certificates.h"
#include "operator/server/webhook.h"
#include "reconcilers/admission/pod_inject.h"
#include "tests/fakes/review.h"

#define RDMA "cni.spidernet.io/rdma-resource-inject"

/* The server's clock: it stands still, so that no connection is too slow for it. */
int64_t clock_us(void)
{
	return 1000000;
}

struct fixture {
	struct mirrored_test mirrored;
	struct metrics *metrics;
	struct webhook *webhook;
	unsigned int port;
	SSL_CTX *tls;
	struct client *client;
	bool closed;
};

/* One that is free now: nobody else in a test takes ports in the meantime. */
static unsigned int free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(at);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	return ntohs(at.sin_port);
}

static void on_change(void *arg, const char *kind, const json_t *now)
{
	struct fixture *f = arg;

	webhook_changed(f->webhook, kind, now);
}

static int setup(void **state)
{
	struct fixture *f = mem_new(struct fixture);
	auto_free char *listen = NULL;
	struct err err = {0};

	mirrored_open(&f->mirrored);
	f->metrics = metrics_new();
	f->port = free_port();
	listen = str_printf("127.0.0.1:%u", f->port);
	f->webhook = webhook_new(f->mirrored.server.loop, listen, &(struct http_tls_policy){0},
				 f->metrics, &err);
	if (!f->webhook)
		fail_msg("%s", err.text);
	f->mirrored.changed = on_change;
	f->mirrored.arg = f;
	f->tls = SSL_CTX_new(TLS_client_method());
	f->client = client_new(f->mirrored.server.loop, f->port, f->tls);
	*state = f;
	return 0;
}

/* As above, with all caches complete. */
static int setup_synced(void **state)
{
	struct fixture *f = NULL;

	setup(state);
	f = *state;
	mirrored_sync(&f->mirrored);
	webhook_attach(f->webhook, &f->mirrored.sources);
	return 0;
}

static void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	client_free(f->client);
	f->mirrored.changed = NULL;
	webhook_close(f->webhook, on_closed, &f->closed);
	for (int i = 0; i < 1000 && !f->closed; i++)
		loop_turn(f->mirrored.server.loop, false);
	assert_true(f->closed);
	SSL_CTX_free(f->tls);
	mirrored_close(&f->mirrored);
	metrics_free(f->metrics);
	mem_free(f);
	return 0;
}

static int post(struct fixture *f, const char *path, const char *body)
{
	auto_free char *request =
		str_printf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
			   "Content-Length: %zu\r\n\r\n%s",
			   path, strlen(body), body);

	return client_ask(f->client, request);
}

/* Ask about an object in YAML; returns the response of the review, new. */
static json_t *ask(struct fixture *f, const char *path, const char *kind, const char *text)
{
	json_auto_t *object = mirrored_yaml(text);
	json_auto_t *review = review_new(kind, "CREATE", object, NULL);
	auto_free char *body = json_text(review);
	json_auto_t *answer = NULL;

	assert_int_equal(post(f, path, body), 200);
	answer = json_parse(f->client->body.data, f->client->body.len, NULL);
	assert_non_null(answer);
	assert_string_equal(json_str_at(answer, "response", "uid"), "8f1a");
	return json_incref(json_at(answer, "response"));
}

/* The patch of a response as text, "" when there is none. Returns new; free(). */
static char *patch_of(const json_t *response)
{
	const char *text = json_str_at(response, "patch");
	auto_strbuf struct strbuf bytes = {0};

	if (text)
		assert_int_equal(base64_decode(text, strlen(text), &bytes, NULL), 0);
	return strbuf_take(&bytes);
}

static void enable_injection(struct fixture *f, const char *settings)
{
	auto_free char *text = str_printf("{metadata: {name: " INJECT_CONFIG_MAP
					  ", namespace: spiderpool}, data: {conf.yml: '%s'}}",
					  settings);

	mirrored_put(&f->mirrored, MIRROR_SPIDERPOOL_CONF, text);
}

static void add_rail(struct fixture *f, const char *name, const char *master)
{
	auto_free char *text =
		str_printf("{metadata: {name: %s, namespace: net, annotations: {" RDMA
			   ": g}}, spec: {cniType: "
			   "macvlan, macvlan: {master: [%s], rdmaResourceName: x.io/%s, ippools: "
			   "{ipv4: [p]}}}}",
			   name, master, name);

	mirrored_put(&f->mirrored, KIND_MULTUS_CONFIG, text);
}

static const char pod[] = "{metadata: {name: x, namespace: ml, annotations: {" RDMA ": g}}, "
			  "spec: {containers: [{name: c, image: i}]}}";

static void says_that_it_is_too_early(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(post(f, "/inject", "{}"), 503);
	webhook_attach(f->webhook, &f->mirrored.sources); /* nothing was listed yet */
	assert_int_equal(post(f, "/inject", "{}"), 503);
	mirrored_sync(&f->mirrored);
	assert_int_equal(post(f, "/inject", "{}"), 400);
}

static void injects_what_the_caches_say(void **state)
{
	struct fixture *f = *state;
	json_auto_t *before = NULL, *after = NULL, *patch = NULL;
	auto_free char *none = NULL, *text = NULL;

	add_rail(f, "b", "ens2");
	add_rail(f, "a", "ens1");
	before = ask(f, "/inject", KIND_POD, pod);
	assert_true(json_is_true(json_at(before, "allowed")));
	none = patch_of(before);
	assert_string_equal(none, ""); /* it is not enabled */
	enable_injection(f, "podResourceInject: {enabled: true}");
	after = ask(f, "/inject", KIND_POD, pod);
	text = patch_of(after);
	assert_non_null(strstr(text, "net/a,net/b"));
	assert_non_null(strstr(text, "x.io/a"));
	patch = json_parse(text, strlen(text), NULL);
	assert_true(json_is_array(patch));
}

/* The networks that a pod gets; NULL: it is refused. */
static void expect_networks(struct fixture *f, const char *text, const char *networks)
{
	json_auto_t *response = ask(f, "/inject", KIND_POD, text);
	auto_free char *patch = patch_of(response);
	auto_free char *quoted = str_printf("\"%s\"", networks ? networks : "");

	assert_int_equal(json_is_true(json_at(response, "allowed")), networks != NULL);
	if (networks && !strstr(patch, quoted))
		fail_msg("%s has not %s", patch, quoted);
}

/* Whatever it keeps from one pod to the next. */
static void each_pod_gets_what_the_caches_say_now(void **state)
{
	static const char other[] = "{metadata: {name: y, namespace: ml, annotations: {" RDMA
				    ": other}}, spec: {containers: [{name: c}]}}";
	static const char moved[] = "{metadata: {name: a, namespace: net, annotations: {" RDMA
				    ": other}}, spec: {cniType: macvlan, macvlan: {master: [ens1], "
				    "rdmaResourceName: x.io/a, ippools: {ipv4: [p]}}}}";
	struct fixture *f = *state;

	enable_injection(f, "podResourceInject: {enabled: true}");
	add_rail(f, "a", "ens1");
	expect_networks(f, pod, "net/a");
	expect_networks(f, pod, "net/a");
	expect_networks(f, other, NULL);
	add_rail(f, "b", "ens0");
	expect_networks(f, pod, "net/b,net/a");
	mirrored_put(&f->mirrored, KIND_MULTUS_CONFIG, moved);
	expect_networks(f, pod, "net/b");
	expect_networks(f, other, "net/a");
	expect_networks(f, pod, "net/b");
	mirrored_remove(&f->mirrored, KIND_MULTUS_CONFIG, "net/b");
	expect_networks(f, pod, NULL);
}

static void a_namespace_can_ask_for_its_pods(void **state)
{
	struct fixture *f = *state;
	json_auto_t *response = NULL;
	auto_free char *text = NULL;

	enable_injection(f, "podResourceInject: {enabled: true}");
	add_rail(f, "a", "ens1");
	mirrored_put(&f->mirrored, KIND_NAMESPACE,
		     "{metadata: {name: ml, annotations: {" RDMA ": g}}}");
	response = ask(f, "/inject", KIND_POD,
		       "{metadata: {name: x, namespace: ml}, spec: {containers: [{name: c}]}}");
	text = patch_of(response);
	assert_non_null(strstr(text, "net/a"));
}

/* Which networks have devices is read of definitions, also where they need nothing else. */
static void variables_name_the_interfaces_with_devices(void **state)
{
	struct fixture *f = *state;
	json_auto_t *response = NULL;
	auto_free char *text = NULL;

	mirrored_put(&f->mirrored, MIRROR_SPIDERPOOL_CONF,
		     "{metadata: {name: " INJECT_CONFIG_MAP ", namespace: spiderpool}, data: "
		     "{conf.yml: 'podResourceInject: {enabled: true}', environment.yml: "
		     "'{nccl: {NCCL_SOCKET_IFNAME: \"={interfaces}\"}}'}}");
	mirrored_put(&f->mirrored, KIND_NAD,
		     "{metadata: {name: a, namespace: ml, annotations: "
		     "{k8s.v1.cni.cncf.io/resourceName: x.io/vf}}}");
	mirrored_put(&f->mirrored, KIND_NAMESPACE,
		     "{metadata: {name: ml, labels: {orbweaver.io/environment: nccl}}}");
	response = ask(f, "/inject", KIND_POD,
		       "{metadata: {name: x, namespace: ml, annotations: "
		       "{k8s.v1.cni.cncf.io/networks: 'other,a'}}, "
		       "spec: {containers: [{name: c}]}}");
	text = patch_of(response);
	assert_non_null(strstr(text, "\"=net2\""));
}

static void keeps_the_last_settings_that_could_be_read(void **state)
{
	struct fixture *f = *state;
	json_auto_t *kept = NULL, *changed = NULL;
	auto_free char *with = NULL, *without = NULL;

	add_rail(f, "a", "ens1");
	enable_injection(f, "podResourceInject: {enabled: true}");
	enable_injection(f, "podResourceInject: {enabled: maybe}");
	kept = ask(f, "/inject", KIND_POD, pod);
	with = patch_of(kept);
	assert_non_null(strstr(with, "net/a"));
	enable_injection(f, "podResourceInject: {enabled: true, namespacesExclude: [ml]}");
	changed = ask(f, "/inject", KIND_POD, pod);
	without = patch_of(changed);
	assert_string_equal(without, "");
	assert_int_equal(json_array_size(json_at(changed, "warnings")), 1);
}

static void put_switches(struct fixture *f, const char *json)
{
	auto_free char *text = str_printf("{metadata: {name: nri-control-switches, namespace: "
					  "spiderpool}, data: {config.json: '%s'}}",
					  json);

	mirrored_put(&f->mirrored, MIRROR_SWITCHES, text);
}

/* The patch that a pod gets that must be allowed. Returns new; free(). */
static char *patch_for(struct fixture *f, const char *text)
{
	json_auto_t *response = ask(f, "/inject", KIND_POD, text);

	assert_true(json_is_true(json_at(response, "allowed")));
	return patch_of(response);
}

/* Definitions come from the cache, and the switches count at once. */
static void a_pod_gets_what_its_networks_need(void **state)
{
	static const char named[] = "{metadata: {name: x, namespace: ml, annotations: "
				    "{k8s.v1.cni.cncf.io/networks: a}}, spec: {containers: "
				    "[{name: c, resources: {limits: {x.io/vf: '1'}}}]}}";
	static const char labelled[] = "{metadata: {name: x, namespace: ml, labels: {l: 'true'}}, "
				       "spec: {containers: [{name: c}]}}";
	struct fixture *f = *state;
	json_auto_t *missing = NULL;
	auto_free char *kept = NULL, *added = NULL, *still = NULL, *injected = NULL;

	enable_injection(f,
			 "podResourceInject: {enabled: true, networkResources: {enabled: true}}");
	missing = ask(f, "/inject", KIND_POD, named);
	assert_true(json_is_false(json_at(missing, "allowed")));
	assert_non_null(strstr(json_str_at(missing, "status", "message"),
			       "NetworkAttachmentDefinition ml/a does not exist"));
	mirrored_put(&f->mirrored, KIND_NAD,
		     "{metadata: {name: a, namespace: ml, annotations: "
		     "{k8s.v1.cni.cncf.io/resourceName: x.io/vf}}}");
	kept = patch_for(f, named);
	assert_null(strstr(kept, "x.io~1vf"));
	put_switches(f, "{\"features\": {\"enableHonorExistingResources\": true}, "
			"\"user-defined-injections\": {\"l\": {\"path\": "
			"\"/metadata/annotations\", \"value\": "
			"{\"k8s.v1.cni.cncf.io/networks\": \"a\"}}}}");
	added = patch_for(f, named);
	assert_non_null(strstr(added, "\"/spec/containers/0/resources/limits/x.io~1vf\",\"value\":"
				      "\"2\""));
	/* Switches that cannot be read, and new settings, leave the last ones. */
	put_switches(f, "{");
	enable_injection(f, "podResourceInject: {enabled: true, networkResources: {enabled: true, "
			    "hugePageDownApi: true}}");
	still = patch_for(f, named);
	assert_non_null(strstr(still, "\"value\":\"2\""));
	injected = patch_for(f, labelled);
	assert_non_null(strstr(injected, "x.io/vf"));
}

static void judges_by_the_objects_that_are_there(void **state)
{
	static const char pool[] = "{metadata: {name: second}, spec: {subnet: 10.0.0.0/24, ips: "
				   "[10.0.0.5]}}";
	struct fixture *f = *state;
	json_auto_t *alone = ask(f, "/validate", KIND_IP_POOL, pool);
	json_auto_t *refused = NULL;

	assert_true(json_is_true(json_at(alone, "allowed")));
	mirrored_put(&f->mirrored, KIND_IP_POOL,
		     "{metadata: {name: first, creationTimestamp: '2026-01-01T00:00:00Z'}, spec: "
		     "{subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.9]}}");
	refused = ask(f, "/validate", KIND_IP_POOL, pool);
	assert_true(json_is_false(json_at(refused, "allowed")));
	assert_non_null(strstr(json_str_at(refused, "status", "message"), "first"));
}

static void fills_in_defaults(void **state)
{
	struct fixture *f = *state;
	json_auto_t *response =
		ask(f, "/default", KIND_IP_POOL,
		    "{metadata: {name: p}, spec: {subnet: 10.0.0.0/24, ips: [10.0.0.5]}}");
	auto_free char *text = patch_of(response);

	assert_non_null(strstr(text, "ipVersion"));
}

static void bytes_of_any_kind_get_an_answer(void **state)
{
	static const struct {
		const char *path, *body;
		int status;
	} cases[] = {
		{"/inject", "", 400},       {"/inject", "{", 400},
		{"/inject", "[]", 400},     {"/inject", "{\"request\": {\"uid\": 1}}", 400},
		{"/validate", "null", 400}, {"/elsewhere", "{}", 404},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (post(f, cases[i].path, cases[i].body) != cases[i].status)
			fail_msg("case %zu: %d", i, f->client->status);
	assert_int_equal(client_ask(f->client, "GET /inject HTTP/1.1\r\nHost: x\r\n\r\n"), 405);
	assert_int_equal(metric_get(metric_counter(f->metrics, "orbweaver_admission_requests_total",
						   "", "path,kind,verdict"),
				    "/inject", "", "unreadable"),
			 4);
}

/* {"a":[{},{},…]} of this many objects; free(). */
static char *many_objects(size_t n)
{
	struct strbuf text = {0};

	strbuf_adds(&text, "{\"a\":[{}");
	for (size_t i = 1; i < n; i++)
		strbuf_adds(&text, ",{}");
	strbuf_adds(&text, "]}");
	return strbuf_take(&text);
}

static void reviews_that_would_take_much_memory_are_not_read(void **state)
{
	static const char *const paths[] = {"/validate", "/default", "/inject"};
	struct fixture *f = *state;
	auto_free char *heavy = many_objects(WEBHOOK_WEIGHT_MAX / 3 + 1);
	auto_free char *light = many_objects(WEBHOOK_WEIGHT_MAX / 3 - 1);
	auto_free char *long_pod = str_printf("\"%0*d\"", WEBHOOK_POD_BODY_MAX, 0);

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		assert_int_equal(post(f, paths[i], heavy), 413);
		assert_non_null(strstr(strbuf_str(&f->client->body), "at most 20000 are read"));
		assert_int_equal(
			metric_get(metric_counter(f->metrics, "orbweaver_admission_requests_total",
						  "", "path,kind,verdict"),
				   paths[i], "", "too heavy"),
			1);
		/* Read, and found to be no review. */
		assert_int_equal(post(f, paths[i], light), 400);
	}
	assert_int_equal(post(f, "/validate", long_pod), 400);
	assert_int_equal(post(f, "/inject", long_pod), 413);
}

static json_t *secret_new(const char *certificate, const char *key)
{
	auto_strbuf struct strbuf cert64 = {0}, key64 = {0};

	base64_encode(certificate, strlen(certificate), &cert64);
	base64_encode(key, strlen(key), &key64);
	return json_pack("{s:{s:s, s:s}, s:{s:s, s:s}}", "metadata", "name", CERTIFICATES_SECRET,
			 "namespace", "orbweaver-system", "data", "tls.crt", strbuf_str(&cert64),
			 "tls.key", strbuf_str(&key64));
}

static void expect_served(struct fixture *f, const char *name)
{
	struct client *c = client_new(f->mirrored.server.loop, f->port, f->tls);
	X509 *cert = SSL_get1_peer_certificate(c->ssl);
	char served[64] = "";

	X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, served,
				  sizeof(served));
	assert_string_equal(served, name);
	X509_free(cert);
	client_free(c);
}

static void serves_with_the_certificate_of_the_secret(void **state)
{
	struct fixture *f = *state;
	auto_free char *certificate = NULL, *key = NULL, *other = NULL, *other_key = NULL;
	json_auto_t *good = NULL, *mixed = NULL;

	make_certificate("first", &certificate, &key);
	make_certificate("second", &other, &other_key);
	good = secret_new(certificate, key);
	mixed = secret_new(other, key);
	expect_served(f, "orbweaver webhook (provisional)");
	webhook_changed(f->webhook, MIRROR_CERTIFICATE, good);
	expect_served(f, "first");
	/* A key of another certificate, and no Secret at all, change nothing. */
	webhook_changed(f->webhook, MIRROR_CERTIFICATE, mixed);
	expect_served(f, "first");
	webhook_changed(f->webhook, MIRROR_CERTIFICATE, NULL);
	expect_served(f, "first");
}

static void answers_among_many_configs(void **state)
{
	enum { CONFIGS = 1000, PODS = 100 };
	struct fixture *f = *state;

	enable_injection(f, "podResourceInject: {enabled: true}");
	for (int i = 0; i < CONFIGS; i++) {
		auto_free char *config = str_printf(
			"{metadata: {name: c%d, namespace: net, annotations: {" RDMA ": g%d}}, "
			"spec: {cniType: macvlan, macvlan: {master: [ens%d], rdmaResourceName: "
			"x.io/r%d, ippools: {ipv4: [p]}}}}",
			i, i / 8, i % 8, i % 8);

		mirrored_put(&f->mirrored, KIND_MULTUS_CONFIG, config);
	}
	for (int i = 0; i < PODS; i++) {
		auto_free char *asking = str_printf(
			"{metadata: {name: x, namespace: ml, annotations: {" RDMA ": g%d}}, "
			"spec: {containers: [{name: c, image: i}]}}",
			i % (CONFIGS / 8));
		json_auto_t *response = ask(f, "/inject", KIND_POD, asking);

		assert_non_null(json_at(response, "patch"));
	}
	assert_int_equal(metric_get(metric_counter(f->metrics, "orbweaver_admission_requests_total",
						   "", "path,kind,verdict"),
				    "/inject", "pods", "patched"),
			 PODS);
}

#define webhook_unit_test(f, setup) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		webhook_unit_test(says_that_it_is_too_early, setup),
		webhook_unit_test(injects_what_the_caches_say, setup_synced),
		webhook_unit_test(each_pod_gets_what_the_caches_say_now, setup_synced),
		webhook_unit_test(a_namespace_can_ask_for_its_pods, setup_synced),
		webhook_unit_test(variables_name_the_interfaces_with_devices, setup_synced),
		webhook_unit_test(keeps_the_last_settings_that_could_be_read, setup_synced),
		webhook_unit_test(a_pod_gets_what_its_networks_need, setup_synced),
		webhook_unit_test(judges_by_the_objects_that_are_there, setup_synced),
		webhook_unit_test(fills_in_defaults, setup_synced),
		webhook_unit_test(bytes_of_any_kind_get_an_answer, setup_synced),
		webhook_unit_test(reviews_that_would_take_much_memory_are_not_read, setup_synced),
		webhook_unit_test(serves_with_the_certificate_of_the_secret, setup_synced),
		webhook_unit_test(answers_among_many_configs, setup_synced),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
