// SPDX-License-Identifier: Apache-2.0
/*
 * Pod injection: settings, groups, networks, resources, refusals; and who lacks what afterwards
 * (inject_check.h has golden cases).
 */
#include "tests/support/test.h"

#include <string.h>

#include "reconcilers/admission/inject_check.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "tests/fakes/json_patch.h"
#include "tests/fakes/review.h"
#include "tests/support/yaml.h"

#define RDMA    "cni.spidernet.io/rdma-resource-inject"
#define NETWORK "cni.spidernet.io/network-resource-inject"

#define CONFIG(name_, annotations_, spec_)                                                         \
	"spider/" name_ ": {metadata: {name: " name_                                               \
	", namespace: spider, annotations: {" annotations_ "}}, spec: {" spec_ "}}, "
#define LABELLED(name_, labels_, spec_)                                                            \
	"spider/" name_ ": {metadata: {name: " name_ ", namespace: spider, labels: {" labels_      \
	"}}, spec: {" spec_ "}}, "

/* clang-format off */
static const char world_text[] =
	"{env: {namespace: orbweaver-system, policyNamespaces: [spider]}, "
	"namespaces: {ml: {metadata: {name: ml}}, "
	"shared: {metadata: {name: shared, annotations: {" RDMA ": rails}}}}, "
	"spidermultusconfigs: {"
	/* In the order of their masters: a, b. */
	CONFIG("b", RDMA ": rails",
	       "cniType: macvlan, macvlan: {master: [ens2f0], rdmaResourceName: x/shared, "
	       "ippools: {ipv4: [p]}}")
	CONFIG("a", RDMA ": rails, multus.spidernet.io/cr-name: renamed",
	       "cniType: ipvlan, rdmaResourceName: x/shared, ippools: {ipv4: [p]}, "
	       "ipvlan: {master: [ens1f0]}")
	CONFIG("v1", RDMA ": vfs",
	       "cniType: sriov, sriov: {resourceName: x/vf, ippools: {ipv4: [p]}}")
	CONFIG("v2", RDMA ": vfs",
	       "cniType: ib-sriov, disableIPAM: true, ibsriov: {resourceName: x/vf}")
	CONFIG("plain", NETWORK ": plain",
	       "cniType: macvlan, macvlan: {master: [e0], ippools: {ipv4: [p]}}")
	CONFIG("named", RDMA ": named, multus.spidernet.io/cr-name: 'a,b'",
	       "cniType: ib-sriov, disableIPAM: true, ibsriov: {resourceName: x/vf}")
	CONFIG("r0", RDMA ": numbered, orbweaver.io/rail: '0'",
	       "cniType: macvlan, macvlan: {master: [ens0], rdmaResourceName: x/r0, "
	       "ippools: {ipv4: [p0]}}")
	CONFIG("r1", RDMA ": numbered, orbweaver.io/rail: '1'",
	       "cniType: macvlan, macvlan: {master: [ens1], rdmaResourceName: x/r1, "
	       "ippools: {ipv4: [p1]}}")
	CONFIG("r9", RDMA ": numbered, orbweaver.io/rail: '9'",
	       "cniType: sriov, sriov: {resourceName: x/r9, ippools: {ipv4: [p9]}}")
	CONFIG("rs", RDMA ": numbered",
	       "cniType: macvlan, macvlan: {master: [storage], rdmaResourceName: x/s, "
	       "ippools: {ipv4: [s]}}")
	CONFIG("rx", RDMA ": misnumbered, orbweaver.io/rail: 0-1",
	       "cniType: sriov, sriov: {resourceName: x/r9, ippools: {ipv4: [p9]}}")
	/* A label set by hand was never checked. */
	LABELLED("o", RDMA ": broken", "cniType: ovs, ovs: {bridge: b}")
	LABELLED("q", RDMA ": broken", "cniType: macvlan, macvlan: {master: [e0]}")
	"tenant/t: {metadata: {name: t, namespace: tenant, annotations: {" RDMA ": 'of-a-tenant'}}, "
	"spec: {cniType: ib-sriov, disableIPAM: true, ibsriov: {resourceName: x/vf}}}, "
	"spider/gone: {metadata: {name: gone, namespace: spider, deletionTimestamp: x, "
	"annotations: {" RDMA ": rails}}, spec: {cniType: macvlan, macvlan: {master: [e9]}}}}}";

/* clang-format on */

static const char conf[] = "{data: {conf.yml: 'podResourceInject: {enabled: true}'}}";

#define ON_RAILS(list, group)                                                                      \
	"{metadata: {name: w, namespace: ml, labels: {orbweaver.io/rails: '" list                  \
	"'}, annotations: {" RDMA ": " group "}}, spec: {containers: [{name: c}]}}"

static json_t *answer_to(const char *settings_text, const json_t *review)
{
	json_auto_t *world = yaml(world_text), *config_map = yaml(settings_text);
	auto_inject_settings struct inject_settings settings = {0};
	auto_admission_request struct admission_request request = {0};
	struct err err = {0};

	assert_int_equal(inject_settings_read(config_map, &settings, &err), 0);
	assert_int_equal(admission_read(review, &request, &err), 0);
	return pod_inject(world, &settings, &request);
}

static json_t *review_of(const char *settings, const json_t *pod)
{
	json_auto_t *review = review_new(KIND_POD, "CREATE", pod, NULL);

	return answer_to(settings, review);
}

/*
 * The pod as it would be stored, or the message of the refusal; a second review has nothing to add.
 * Returns new.
 */
static json_t *inject(const char *settings, const char *text)
{
	json_t *pod = yaml(text);
	json_auto_t *answer = review_of(settings, pod), *patch = json_patch_of(answer);
	json_auto_t *again = NULL, *nothing = NULL;

	if (!json_is_true(json_at(answer, "response", "allowed"))) {
		json_decref(pod);
		return json_incref(json_at(answer, "response", "status", "message"));
	}
	assert_true(json_patch_apply(pod, patch));
	again = review_of(settings, pod);
	nothing = json_patch_of(again);
	assert_null(nothing);
	return pod;
}

#define POD(annotations, limits)                                                                   \
	"{metadata: {name: w, namespace: ml, annotations: {" annotations                           \
	"}}, spec: {containers: [{name: c, resources: {limits: {" limits "}}}]}}"

TEST(a_pod_gets_no_more_networks_than_it_can_have)
{
	static const struct {
		size_t has;
		const char *want;
	} cases[] = {
		{LIMIT_NETWORKS - 2, NULL},
		{LIMIT_NETWORKS - 1,
		 "with those of the group, 65 networks, a pod can have at most 64"},
		{LIMIT_NETWORKS + 1, "65 networks, a pod can have at most 64"},
		{20000, "39999 bytes, at most 16384"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strbuf struct strbuf networks = {0};
		auto_free char *text = NULL;
		json_auto_t *pod = NULL;

		for (size_t k = 0; k < cases[i].has; k++)
			strbuf_adds(&networks, k ? ",a" : "a");
		text = str_printf("{metadata: {name: w, namespace: ml, annotations: {" RDMA
				  ": rails, k8s.v1.cni.cncf.io/networks: '%s'}}, spec: "
				  "{containers: [{name: c}]}}",
				  strbuf_str(&networks));
		pod = inject(conf, text);
		if (cases[i].want)
			assert_non_null(strstr(json_str_or(pod, ""), cases[i].want));
		else
			assert_true(json_is_object(pod));
	}
}

static void put_many(json_t *configs, const char *ns, int n)
{
	for (int i = 0; i < n; i++) {
		auto_free char *key = str_printf("%s/c%d", ns, i);
		auto_free char *text = str_printf("{metadata: {name: c%d, namespace: %s, "
						  "annotations: {" RDMA ": many}}, spec: {cniType: "
						  "ib-sriov, disableIPAM: true, ibsriov: "
						  "{resourceName: x/vf}}}",
						  i, ns);

		json_put(configs, key, yaml(text));
	}
}

/* A namespace's users choose how many; beyond the bound nothing is computed. */
TEST(a_group_has_no_more_configs_than_are_read)
{
	for (int n = LIMIT_CONFIGS; n <= LIMIT_CONFIGS + 1; n++) {
		json_auto_t *world = json_object(),
			    *configs = json_need_object(world, KIND_MULTUS_CONFIG);
		json_auto_t *pod = yaml(POD(RDMA ": many", "")), *answer = NULL;
		json_auto_t *review = review_new(KIND_POD, "CREATE", pod, NULL);
		json_auto_t *config_map = yaml(conf);
		auto_inject_settings struct inject_settings settings = {0};
		auto_admission_request struct admission_request request = {0};
		const char *message;

		json_incref(configs);
		put_many(configs, "ml", n);
		put_many(configs, "kube-system", LIMIT_CONFIGS);
		put_many(configs, "spiderpool", LIMIT_CONFIGS);
		put_many(configs, "strangers", LIMIT_CONFIGS + 1);
		assert_int_equal(inject_settings_read(config_map, &settings, NULL), 0);
		assert_int_equal(admission_read(review, &request, NULL), 0);
		answer = pod_inject(world, &settings, &request);
		message = json_str_at(answer, "response", "status", "message");
		assert_int_equal(strstr(message, "128 SpiderMultusConfigs") != NULL,
				 n > LIMIT_CONFIGS);
	}
}

TEST(a_pod_gets_all_of_its_group)
{
	static const struct {
		const char *pod, *networks, *limits;
	} cases[] = {
		{POD(RDMA ": rails", ""), "spider/renamed,spider/b", "{x/shared: '1'}"},
		{POD(RDMA ": vfs", ""), "spider/v2,spider/v1", "{x/vf: '2'}"},
		{POD(RDMA ": vfs", "x/vf: 3"), "spider/v2,spider/v1", "{x/vf: 3}"},
		{POD(NETWORK ": plain", ""), "spider/plain", "{}"},
		/* The first annotation counts, wherever it stands. */
		{POD(RDMA ": rails, " NETWORK ": plain", ""), "spider/renamed,spider/b",
		 "{x/shared: '1'}"},
		{"{metadata: {name: w, namespace: shared, annotations: {" NETWORK
		 ": plain}}, spec: {containers: [{name: c}]}}",
		 "spider/renamed,spider/b", "{x/shared: '1'}"},
		{"{metadata: {name: w, namespace: shared, annotations: {" RDMA
		 ": vfs}}, spec: {containers: [{name: c}]}}",
		 "spider/v2,spider/v1", "{x/vf: '2'}"},
		/* Networks of the rails that the pod names, and those of none. */
		{ON_RAILS("1.9", "numbered"), "spider/r1,spider/rs,spider/r9",
		 "{x/r1: '1', x/s: '1', x/r9: '1'}"},
		{ON_RAILS("train", "numbered"), "spider/r0,spider/r1,spider/rs,spider/r9",
		 "{x/r0: '1', x/r1: '1', x/s: '1', x/r9: '1'}"},
		/* Where no config has a rail the agent chooses. */
		{ON_RAILS("3", "rails"), "spider/renamed,spider/b", "{x/shared: '1'}"},
		/* What the user wrote stays, in front. */
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: 'other/net'", ""),
		 "other/net,spider/renamed,spider/b", "{x/shared: '1'}"},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: 'own@eth5, spider/b'", ""),
		 "own@eth5, spider/b,spider/renamed", "{x/shared: '1'}"},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: ' '", ""),
		 "spider/renamed,spider/b", "{x/shared: '1'}"},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: '[{\"name\":\"b\",\"namespace\":"
			  "\"spider\",\"interface\":\"r0\"}]'",
		     ""),
		 "[{\"interface\":\"r0\",\"name\":\"b\",\"namespace\":\"spider\"},{\"name\":"
		 "\"renamed\",\"namespace\":\"spider\"}]",
		 "{x/shared: '1'}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = inject(conf, cases[i].pod), *limits = yaml(cases[i].limits);
		const json_t *first = json_array_get(json_at(pod, "spec", "containers"), 0);
		const json_t *got = json_at(first, "resources", "limits");

		assert_string_equal(
			json_str_at(pod, "metadata", "annotations", "k8s.v1.cni.cncf.io/networks"),
			cases[i].networks);
		assert_true(json_same(got, limits) || (!got && !json_object_size(limits)));
	}
}

TEST(a_pod_that_cannot_have_it_is_refused)
{
	static const struct {
		const char *pod, *said;
	} cases[] = {
		{POD(RDMA ": nowhere", ""), "Pod ml/w is invalid: metadata.annotations[" RDMA
					    "]: \"nowhere\" names no SpiderMultusConfig"},
		{POD(RDMA ": of-a-tenant", ""), "\"of-a-tenant\" names no SpiderMultusConfig that "
						"this pod may have: correct it, or "
						"give a SpiderMultusConfig in namespace ml or one "
						"of orbweaver-system, kube-system, "
						"spiderpool, spider the annotation"},
		{POD(RDMA ": ''", ""), "\"\" names no SpiderMultusConfig"},
		{POD(NETWORK ": rails", ""), "\"rails\" names no SpiderMultusConfig"},
		{POD(RDMA ": broken", ""),
		 "has SpiderMultusConfig spider/o in it, whose spec.cniType ovs is not given"},
		{POD(RDMA ": broken", ""), "SpiderMultusConfig spider/q in it, whose "
					   "spec.macvlan.rdmaResourceName is missing"},
		{ON_RAILS("0-2", "numbered"),
		 "metadata.labels[orbweaver.io/rails]: \"0-2\": \"numbered\" has networks of rails "
		 "0-1.9 and not of 2: correct the label"},
		{ON_RAILS("0-40", "rails"),
		 "metadata.labels[orbweaver.io/rails]: \"0-40\" is not a "
		 "list of rails from 0 to 31"},
		{POD(RDMA ": misnumbered", ""),
		 "whose metadata.annotations[orbweaver.io/rail] is not the index of a rail"},
		{POD(RDMA ": named", ""),
		 "SpiderMultusConfig spider/named in it, whose "
		 "metadata.annotations[multus.spidernet.io/cr-name] \"a,b\""},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: 'a,,b'", ""),
		 "metadata.annotations[k8s.v1.cni.cncf.io/networks]: \"a,,b\" is not a list"},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: '[{}]'", ""), "\"[{}]\" is not"},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: 'a/b/c'", ""), "is not a list"},
		{POD(RDMA ": rails, k8s.v1.cni.cncf.io/networks: 'a@'", ""), "is not a list"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *got = inject(conf, cases[i].pod);

		if (!strstr(json_str_or(got, "admitted"), cases[i].said))
			fail_msg("%s\n  %s", cases[i].pod, json_str_or(got, "admitted"));
	}
}

TEST(other_pods_are_left_alone)
{
	static const struct {
		const char *settings, *pod;
		bool warned;
	} cases[] = {
		{conf, "{metadata: {name: w, namespace: ml}, spec: {containers: [{name: c}]}}",
		 false},
		{conf, POD("other: x", ""), false},
		{conf,
		 "{metadata: {name: w, namespace: kube-system, annotations: {" RDMA
		 ": rails}}, spec: {}}",
		 true},
		{conf,
		 "{metadata: {name: w, namespace: orbweaver-system, annotations: {" RDMA
		 ": nowhere}}, spec: {}}",
		 true},
		{"{data: {conf.yml: 'podResourceInject: {enabled: true, namespacesInclude: "
		 "[prod]}'}}",
		 POD(RDMA ": rails", ""), true},
		{"{data: {conf.yml: 'podResourceInject: {enabled: true, namespacesExclude: "
		 "[ml]}'}}",
		 POD(RDMA ": nowhere", ""), true},
		{"{data: {conf.yml: 'enableIPv4: true'}}", POD(RDMA ": rails", ""), true},
		{"{}", POD(RDMA ": rails", ""), true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = yaml(cases[i].pod);
		json_auto_t *answer = review_of(cases[i].settings, pod);

		assert_true(json_is_true(json_at(answer, "response", "allowed")));
		assert_null(json_at(answer, "response", "patch"));
		assert_int_equal(json_array_size(json_at(answer, "response", "warnings")),
				 cases[i].warned);
	}
}

/* What users and other webhooks wrote is not sent back. */
TEST(a_patch_says_only_what_is_added)
{
	static const struct {
		const char *pod, *patch;
	} cases[] = {
		{"{metadata: {name: w, namespace: ml, annotations: {" RDMA ": vfs}}, spec: "
		 "{initContainers: [{name: i}], containers: [{name: c, env: [{name: a, value: b}], "
		 "resources: {limits: {cpu: 1}}}, {name: d}]}}",
		 "[{op: add, path: /metadata/annotations/k8s.v1.cni.cncf.io~1networks, value: "
		 "'spider/v2,spider/v1'}, {op: add, path: "
		 "/spec/containers/0/resources/limits/x~1vf, value: '2'}]"},
		{"{metadata: {name: w, namespace: shared}, spec: {containers: [{name: c}]}}",
		 "[{op: add, path: /metadata/annotations, value: "
		 "{k8s.v1.cni.cncf.io/networks: 'spider/renamed,spider/b'}}, {op: add, path: "
		 "/spec/containers/0/resources, value: {limits: {x/shared: '1'}}}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = yaml(cases[i].pod), *want = yaml(cases[i].patch);
		json_auto_t *answer = review_of(conf, pod), *patch = json_patch_of(answer);
		auto_free char *got_text = json_text(patch), *want_text = json_text(want);

		assert_string_equal(got_text, want_text);
	}
}

/*
 * Controllers leave name and namespace to the server, which sends the latter beside the object
 * (before 1.21 only there).
 */
TEST(a_pod_without_name_and_namespace_is_one)
{
	json_auto_t *pod = yaml("{metadata: {generateName: w-, annotations: {" RDMA
				": rails, k8s.v1.cni.cncf.io/networks: b}}, spec: {containers: "
				"[{name: c}]}}");
	json_auto_t *review = review_new(KIND_POD, "CREATE", pod, NULL);
	json_auto_t *answer = NULL, *patch = NULL;

	json_put_str(json_at(review, "request"), "namespace", "spider");
	answer = answer_to(conf, review);
	patch = json_patch_of(answer);
	assert_true(json_patch_apply(pod, patch));
	/* Its own network is one of the group by the namespace of the request. */
	assert_string_equal(
		json_str_at(pod, "metadata", "annotations", "k8s.v1.cni.cncf.io/networks"),
		"b,spider/renamed");
	assert_null(json_at(pod, "metadata", "namespace"));
}

TEST(only_the_creation_of_a_pod_is_looked_at)
{
	static const struct {
		const char *operation, *subresource, *resource;
		bool patched;
	} cases[] = {
		{"CREATE", NULL, "pods", true},
		{"CREATE", "", "pods", true},
		{"UPDATE", NULL, "pods", false},
		{"UPDATE", "ephemeralcontainers", "pods", false},
		{"CREATE", "binding", "pods", false},
		{"DELETE", NULL, "pods", false},
		{"CONNECT", "exec", "pods", false},
		{"CREATE", NULL, "replicationcontrollers", false},
	};
	json_auto_t *pod = yaml(POD(RDMA ": rails", ""));

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *review = review_new(KIND_POD, cases[i].operation, pod, pod);
		json_t *request = json_at(review, "request");
		json_auto_t *answer = NULL;

		json_put_str(request, "subResource", cases[i].subresource);
		json_put_str(json_at(request, "resource"), "resource", cases[i].resource);
		answer = answer_to(conf, review);
		assert_true(json_is_true(json_at(answer, "response", "allowed")));
		assert_int_equal(json_at(answer, "response", "patch") != NULL, cases[i].patched);
	}
}

TEST(what_is_ignored_or_too_little_is_told)
{
	json_auto_t *few = yaml(POD(RDMA ": vfs", "x/vf: 1"));
	json_auto_t *both = yaml(POD(RDMA ": rails, " NETWORK ": plain", ""));
	json_auto_t *few_answer = review_of(conf, few), *both_answer = review_of(conf, both);
	const char *few_said =
		json_string_value(json_array_get(json_at(few_answer, "response", "warnings"), 0));
	const char *both_said =
		json_string_value(json_array_get(json_at(both_answer, "response", "warnings"), 0));

	assert_string_equal(few_said, "spec.containers: limit 1 of x/vf, the pod's networks "
				      "need 2: raise it, or remove it to have it set");
	assert_non_null(strstr(both_said, NETWORK "]: \"plain\" is ignored: " RDMA " rails"));
}

TEST(settings_are_read_with_defaults)
{
	static const char *const bad[] = {
		"{data: {conf.yml: '['}}",
		"{data: {conf.yml: '[]'}}",
		"{data: {conf.yml: 'podResourceInject: 5'}}",
		"{data: {conf.yml: 'podResourceInject: {enabled: 5}'}}",
		"{data: {conf.yml: 'podResourceInject: {namespacesInclude: ml}'}}",
	};
	auto_inject_settings struct inject_settings settings = {0}, absent = {0};
	json_auto_t *config_map =
		yaml("{data: {conf.yml: 'podResourceInject: {enabled: true, "
		     "namespacesInclude: [ml, sys], namespacesExclude: [sys]}'}}");
	json_auto_t *selector = NULL, *want = NULL;
	struct err err = {0};

	assert_int_equal(inject_settings_read(NULL, &absent, &err), 0);
	assert_false(absent.enabled);
	assert_true(inject_settings_cover(&absent, "own", "ml"));
	assert_false(inject_settings_cover(&absent, "own", "own"));
	assert_false(inject_settings_cover(&absent, "own", "istio-system"));

	assert_int_equal(inject_settings_read(config_map, &settings, &err), 0);
	assert_true(inject_settings_cover(&settings, "own", "ml"));
	assert_false(inject_settings_cover(&settings, "own", "sys"));
	assert_false(inject_settings_cover(&settings, "own", "other"));
	selector = inject_settings_selector(&settings, "own");
	want = yaml(
		"{matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: "
		"[sys, kube-system, own]}, {key: kubernetes.io/metadata.name, operator: In, "
		"values: [ml, sys]}]}");
	assert_true(json_same(selector, want));

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_auto_t *wrong = yaml(bad[i]);

		assert_int_equal(inject_settings_read(wrong, &settings, &err), -1);
		assert_string_equal(err.reason, i == 0 ? "BadYaml" : "BadConfig");
		assert_non_null(strstr(err.text, "ConfigMap spiderpool-conf: data[conf.yml]"));
		assert_true(settings.enabled);
	}
}

TEST(only_pods_that_ask_are_kept)
{
	json_auto_t *asks = yaml(
		"{apiVersion: v1, kind: Pod, metadata: {name: w, namespace: ml, uid: "
		"u, resourceVersion: '5', labels: {a: b, orbweaver.io/rails: '0'}, annotations: "
		"{" RDMA ": rails, big: x}}, spec: {volumes: [], containers: [{name: c, image: "
		"i, resources: {limits: {x/y: '1'}, requests: {x/y: '1'}}}, {name: "
		"d}]}, status: {phase: Running, podIP: 10.0.0.1}}");
	json_auto_t *want = yaml(
		"{metadata: {name: w, namespace: ml, uid: u, resourceVersion: '5', "
		"annotations: {" RDMA
		": rails}, labels: {orbweaver.io/rails: '0'}}, spec: {containers: [{resources: "
		"{limits: {x/y: '1'}}}, {resources: {}}]}, status: {phase: "
		"Running}}");
	json_auto_t *over = yaml("{metadata: {annotations: {" RDMA ": rails}}, status: {phase: "
				 "Succeeded}}");
	json_auto_t *other = yaml("{metadata: {annotations: {a: b}}, status: {phase: Running}}");

	assert_true(inject_check_wants(asks));
	assert_false(inject_check_wants(over));
	assert_false(inject_check_wants(other));
	inject_check_project(asks);
	assert_true(json_same(asks, want));
	assert_true(inject_check_wants(asks));
}
