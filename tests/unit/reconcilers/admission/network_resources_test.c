// SPDX-License-Identifier: Apache-2.0
/*
 * Resources, node labels and /etc/podnetinfo for pods that name networks themselves, and the
 * settings of that.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "reconcilers/admission/pod_edit.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/limits.h"
#include "tests/fakes/json_patch.h"
#include "tests/fakes/review.h"
#include "tests/support/yaml.h"

#define RDMA "cni.spidernet.io/rdma-resource-inject"

#define NAD(ns_, name_, annotations_)                                                              \
	ns_ "/" name_ ": {metadata: {name: " name_ ", namespace: " ns_                             \
	    ", annotations: {" annotations_ "}}}, "
#define RESOURCE(value_) "k8s.v1.cni.cncf.io/resourceName: " value_
#define ON(value_)       "k8s.v1.cni.cncf.io/nodeSelector: '" value_ "'"

/* clang-format off */
static const char world_text[] =
	"{env: {namespace: orbweaver-system, policyNamespaces: [spider]}, "
	"namespaces: {ml: {metadata: {name: ml}}}, "
	"spidermultusconfigs: {spider/v1: {metadata: {name: v1, namespace: spider, annotations: "
	"{" RDMA ": vfs}}, spec: {cniType: ib-sriov, disableIPAM: true, ibsriov: {resourceName: "
	"x/vf}}}}, "
	"network-attachment-definitions: {"
	NAD("ml", "a", RESOURCE("x/vf"))
	NAD("ml", "b", RESOURCE("x/vf") ", " ON("master=eno3"))
	NAD("ml", "c", ON(" rack "))
	NAD("ml", "d", ON("master=eno4"))
	NAD("ml", "plain", "other: x")
	NAD("ml", "two", "first: x/f, second: x/s")
	NAD("spider", "v1", RESOURCE("x/vf"))
	NAD("kube-system", "only", RESOURCE("x/system"))
	NAD("kube-system", "a", RESOURCE("x/default"))
	NAD("ml", "cpu", RESOURCE("cpu"))
	NAD("ml", "native", RESOURCE("kubernetes.io/x"))
	NAD("ml", "spaced", RESOURCE("'x/a b'"))
	NAD("ml", "twice", ON("a=b=c"))
	NAD("ml", "odd", ON("a b=c"))
	NAD("ml", "none", RESOURCE("''"))
	"}}";
/* clang-format on */

#define SETTINGS(more)                                                                             \
	"{data: {conf.yml: 'podResourceInject: {enabled: true, networkResources: {enabled: "       \
	"true" more "}}'}}"
#define PLAIN  SETTINGS("")
#define ADDING SETTINGS(", honorExistingResources: true")

/* JSON in YAML in C. */
#define SWITCHES(json_) "{data: {config.json: '" json_ "'}}"

static json_t *answer_to(const char *settings_text, const char *switches_text, const json_t *pod)
{
	json_auto_t *world = yaml(world_text), *config_map = yaml(settings_text);
	json_auto_t *switches = switches_text ? yaml(switches_text) : NULL;
	json_auto_t *review = review_new(KIND_POD, "CREATE", pod, NULL);
	auto_inject_settings struct inject_settings settings = {0};
	auto_admission_request struct admission_request request = {0};
	struct err err = {0};

	assert_int_equal(inject_settings_read(config_map, &settings, &err), 0);
	assert_int_equal(inject_switches_read(switches, &settings.switches, &err), 0);
	assert_int_equal(admission_read(review, &request, &err), 0);
	return pod_inject(world, &settings, &request);
}

/*
 * The pod as it would be stored, or the message of the refusal; a second review has nothing to add.
 * Returns new.
 */
static json_t *inject(const char *settings, const char *switches, const char *text)
{
	json_t *pod = yaml(text);
	json_auto_t *answer = answer_to(settings, switches, pod), *patch = json_patch_of(answer);
	json_auto_t *again = NULL, *nothing = NULL;

	if (!json_is_true(json_at(answer, "response", "allowed"))) {
		json_decref(pod);
		return json_incref(json_at(answer, "response", "status", "message"));
	}
	if (patch)
		assert_true(json_patch_apply(pod, patch));
	again = answer_to(settings, switches, pod);
	nothing = json_patch_of(again);
	assert_null(nothing);
	return pod;
}

#define NETWORKS(text) "k8s.v1.cni.cncf.io/networks: '" text "'"
#define DEFAULT(text)  "v1.multus-cni.io/default-network: '" text "'"
#define POD(annotations, resources)                                                                \
	"{metadata: {name: w, namespace: ml, annotations: {" annotations                           \
	"}}, spec: {containers: [{name: c, resources: {" resources "}}]}}"

static void same_as(const json_t *got, const char *want_text, const char *pod)
{
	json_auto_t *want = yaml(want_text);
	auto_free char *text = got ? json_text(got) : str_dup("nothing");

	if (!json_same(got, want))
		fail_msg("%s:\n  %s, not %s", pod, text, want_text);
}

TEST(each_reference_asks_for_one_unit)
{
	static const struct {
		const char *settings, *pod, *resources;
	} cases[] = {
		{PLAIN, POD(NETWORKS("a"), ""), "{limits: {x/vf: '1'}, requests: {x/vf: '1'}}"},
		{PLAIN, POD(NETWORKS("a, ml/b@net5,a"), "limits: {cpu: 1}"),
		 "{limits: {cpu: 1, x/vf: '3'}, requests: {x/vf: '3'}}"},
		{PLAIN,
		 POD(NETWORKS("[{\"name\":\"a\"},{\"name\":\"v1\",\"namespace\":\"spider\"}]"), ""),
		 "{limits: {x/vf: '2'}, requests: {x/vf: '2'}}"},
		{PLAIN, POD(NETWORKS("plain"), ""), "{}"},
		{PLAIN, POD(NETWORKS("none"), ""), "{}"},
		/* What some container has already stays as it is. */
		{PLAIN, POD(NETWORKS("a,b"), "limits: {x/vf: 1}"), "{limits: {x/vf: 1}}"},
		{PLAIN, POD(NETWORKS("a"), "requests: {x/vf: 5}"), "{requests: {x/vf: 5}}"},
		/* Unless it is to be added to. */
		{ADDING, POD(NETWORKS("a,b"), "limits: {x/vf: '1'}, requests: {x/vf: '1'}"),
		 "{limits: {x/vf: '3'}, requests: {x/vf: '3'}}"},
		{ADDING, POD(NETWORKS("a"), ""), "{limits: {x/vf: '1'}, requests: {x/vf: '1'}}"},
		{ADDING, POD(NETWORKS("a"), "limits: {x/vf: 1k}"), "{limits: {x/vf: 1k}}"},
		/* Multus looks for a default network in kube-system. */
		{PLAIN, POD(DEFAULT("only"), ""),
		 "{limits: {x/system: '1'}, requests: {x/system: '1'}}"},
		{PLAIN, POD(DEFAULT("a"), ""),
		 "{limits: {x/default: '1'}, requests: {x/default: '1'}}"},
		{PLAIN, POD(DEFAULT("ml/a") ", " NETWORKS("b"), ""),
		 "{limits: {x/vf: '2'}, requests: {x/vf: '2'}}"},
		{PLAIN, POD(DEFAULT("b"), ""), "{limits: {x/vf: '1'}, requests: {x/vf: '1'}}"},
		{PLAIN, POD(DEFAULT("a,b"), ""), "{}"},
		/* The group's own networks count once, by the group's rule. */
		{PLAIN, POD(RDMA ": vfs, " NETWORKS("a"), ""),
		 "{limits: {x/vf: '2'}, requests: {x/vf: '2'}}"},
		{PLAIN, POD(RDMA ": vfs", ""), "{limits: {x/vf: '1'}}"},
		{ADDING, POD(RDMA ": vfs, " NETWORKS("a"), ""),
		 "{limits: {x/vf: '2'}, requests: {x/vf: '2'}}"},
		{SETTINGS(", resourceNameKeys: [first, second]"), POD(NETWORKS("two,a"), ""),
		 "{limits: {x/f: '1', x/s: '1'}, requests: {x/f: '1', x/s: '1'}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = inject(cases[i].settings, NULL, cases[i].pod);
		const json_t *first = json_array_get(json_at(pod, "spec", "containers"), 0);

		same_as(json_at(first, "resources"), cases[i].resources, cases[i].pod);
	}
}

TEST(a_pod_gets_the_labels_of_its_networks_nodes)
{
	static const struct {
		const char *pod, *selector;
	} cases[] = {
		{POD(NETWORKS("b,c"), ""), "{master: eno3, rack: ''}"},
		{"{metadata: {name: w, namespace: ml, annotations: {" NETWORKS(
			 "b") "}}, spec: {nodeSelector: {zone: z, master: eno9}, containers: "
			      "[{name: c}]}}",
		 "{zone: z, master: eno3}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = inject(PLAIN, NULL, cases[i].pod);

		same_as(json_at(pod, "spec", "nodeSelector"), cases[i].selector, cases[i].pod);
	}
}

TEST(a_pod_whose_networks_cannot_be_is_refused)
{
	static const struct {
		const char *pod, *said;
	} cases[] = {
		{POD(NETWORKS("gone"), ""),
		 "Pod ml/w is invalid: metadata.annotations[k8s.v1.cni.cncf.io/networks]: "
		 "NetworkAttachmentDefinition ml/gone does not exist: create it before the pod"},
		{POD(DEFAULT("gone"), ""),
		 "metadata.annotations[v1.multus-cni.io/default-network]: "
		 "NetworkAttachmentDefinition kube-system/gone does not exist"},
		{POD(NETWORKS("a,,b"), ""), "network 2 must be [NAMESPACE/]NAME[@INTERFACE]"},
		{POD(NETWORKS("[{}]"), ""), "network 1 has no name"},
		{POD(NETWORKS("[1"), ""), "neither a JSON array"},
		{POD(NETWORKS("cpu"), ""),
		 "NetworkAttachmentDefinition ml/cpu, annotation k8s.v1.cni.cncf.io/resourceName: "
		 "\"cpu\" is not an extended resource"},
		{POD(NETWORKS("native"), ""), "\"kubernetes.io/x\" is not an extended resource"},
		{POD(NETWORKS("spaced"), ""), "\"x/a b\" is not an extended resource"},
		{POD(NETWORKS("twice"), ""), "\"a=b=c\" is not one label: write LABEL=VALUE"},
		{POD(NETWORKS("odd"), ""), "\"a b=c\" is not one label"},
		{POD(NETWORKS("b,d"), ""),
		 "ml/d, annotation k8s.v1.cni.cncf.io/nodeSelector: \"master=eno4\" contradicts "
		 "another network of the pod"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *got = inject(PLAIN, NULL, cases[i].pod);

		if (!strstr(json_str_or(got, "admitted"), cases[i].said))
			fail_msg("%s\n  %s", cases[i].pod, json_str_or(got, "admitted"));
	}
}

TEST(a_pod_names_no_more_networks_than_it_can_have)
{
	static const struct {
		size_t networks;
		const char *said;
	} cases[] = {
		{LIMIT_NETWORKS, NULL},
		{LIMIT_NETWORKS + 1, "65 networks, a pod can have at most 64"},
		{20000, "39999 bytes, at most 16384"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strbuf struct strbuf networks = {0};
		auto_free char *text = NULL;
		json_auto_t *pod = NULL;

		for (size_t k = 0; k < cases[i].networks; k++)
			strbuf_adds(&networks, k ? ",a" : "a");
		text = str_printf("{metadata: {name: w, namespace: ml, annotations: "
				  "{k8s.v1.cni.cncf.io/networks: '%s'}}, spec: {containers: "
				  "[{name: c}]}}",
				  strbuf_str(&networks));
		pod = inject(PLAIN, NULL, text);
		if (cases[i].said)
			assert_non_null(strstr(json_str_or(pod, ""), cases[i].said));
		else
			assert_string_equal(
				json_str_at(json_array_get(json_at(pod, "spec", "containers"), 0),
					    "resources", "limits", "x/vf"),
				"64");
	}
}

/* Without the setting, and where no pod is looked at, nothing changes and nothing is refused. */
TEST(other_pods_are_left_alone)
{
	static const struct {
		const char *settings, *pod;
	} cases[] = {
		{"{data: {conf.yml: 'podResourceInject: {enabled: true}'}}",
		 POD(NETWORKS("a,gone"), "")},
		{"{data: {conf.yml: 'podResourceInject: {networkResources: {enabled: true}}'}}",
		 POD(NETWORKS("a,gone"), "")},
		{PLAIN, POD("other: x", "")},
		{PLAIN, POD(NETWORKS(""), "")},
		{PLAIN, "{metadata: {name: w, namespace: kube-system, annotations: {" NETWORKS(
				"gone") "}}, spec: {containers: [{name: c}]}}"},
		{PLAIN, "{metadata: {name: w, namespace: orbweaver-system, annotations: {" NETWORKS(
				"gone") "}}, spec: {containers: [{name: c}]}}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = yaml(cases[i].pod);
		json_auto_t *answer = answer_to(cases[i].settings, NULL, pod);

		assert_true(json_is_true(json_at(answer, "response", "allowed")));
		assert_null(json_at(answer, "response", "patch"));
		assert_null(json_at(answer, "response", "warnings"));
	}
}

TEST(what_was_added_is_noted_in_the_pod)
{
	static const char noted[] =
		POD(NETWORKS("a,b") ", " INJECTED_RESOURCES_ANNOTATION ": '{\"x/vf\": 1}'",
		    "limits: {x/vf: 4}");
	static const char odd[] = POD(NETWORKS("a") ", " INJECTED_RESOURCES_ANNOTATION
						    ": '{\"x/vf\": -9223372036854775808}'",
				      "limits: {x/vf: 4}");
	json_auto_t *pod = inject(ADDING, NULL, POD(NETWORKS("a"), "limits: {x/vf: 4}"));
	json_auto_t *more = inject(ADDING, NULL, noted), *one = inject(ADDING, NULL, odd);

	assert_string_equal(
		json_str_at(pod, "metadata", "annotations", INJECTED_RESOURCES_ANNOTATION),
		"{\"x/vf\":1}");
	/* Another network came in between. */
	assert_string_equal(json_str_at(json_array_get(json_at(more, "spec", "containers"), 0),
					"resources", "limits", "x/vf"),
			    "5");
	assert_string_equal(json_str_at(json_array_get(json_at(one, "spec", "containers"), 0),
					"resources", "limits", "x/vf"),
			    "5");
}

TEST(containers_see_what_the_pod_has)
{
	static const char text[] =
		"{metadata: {name: w, namespace: ml, labels: {l: v}, annotations: {" NETWORKS(
			"a") "}}, spec: {containers: [{name: c, resources: {limits: "
			     "{hugepages-1Gi: 2Gi, x/vf: 1}, requests: {hugepages-1Gi: 2Gi, "
			     "hugepages-2Mi: 0}}}, {name: d, volumeMounts: [{name: own, mountPath: "
			     "/etc/podnetinfo}]}]}}";
	json_auto_t *plain = inject(PLAIN, NULL, text);
	json_auto_t *huge = inject(SETTINGS(", hugePageDownApi: true"), NULL, text);
	json_auto_t *off =
		inject(SETTINGS(", hugePageDownApi: true"),
		       SWITCHES("{\"features\": {\"enableHugePageDownApi\": false}}"), text);
	json_t *containers = json_at(plain, "spec", "containers");

	same_as(json_at(plain, "spec", "volumes"),
		"[{name: podnetinfo, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: "
		"metadata.labels}}, {path: annotations, fieldRef: {fieldPath: "
		"metadata.annotations}}]}}]",
		text);
	same_as(json_at(json_array_get(containers, 0), "volumeMounts"),
		"[{name: podnetinfo, mountPath: /etc/podnetinfo, readOnly: true}]", text);
	/* The path is taken. */
	same_as(json_at(json_array_get(containers, 1), "volumeMounts"),
		"[{name: own, mountPath: /etc/podnetinfo}]", text);
	assert_null(json_at(json_array_get(containers, 0), "env"));
	assert_true(json_same(off, plain));
	same_as(json_array_get(json_at(json_array_get(json_at(huge, "spec", "volumes"), 0),
				       "downwardAPI", "items"),
			       2),
		"{path: hugepages_1G_request_c, resourceFieldRef: {resource: "
		"requests.hugepages-1Gi, containerName: c, divisor: 1Mi}}",
		text);
	same_as(json_array_get(json_at(json_array_get(json_at(huge, "spec", "volumes"), 0),
				       "downwardAPI", "items"),
			       3),
		"{path: hugepages_1G_limit_c, resourceFieldRef: {resource: "
		"limits.hugepages-1Gi, containerName: c, divisor: 1Mi}}",
		text);
	same_as(json_at(json_array_get(json_at(huge, "spec", "containers"), 0), "env"),
		"[{name: CONTAINER_NAME, value: c}]", text);
	assert_null(json_at(json_array_get(json_at(huge, "spec", "containers"), 1), "env"));
}

TEST(a_label_asks_for_annotations)
{
	static const char switches[] = SWITCHES(
		"{\"user-defined-injections\": {\"net.example/rails\": {\"op\": \"add\", \"path\": "
		"\"/metadata/annotations\", \"value\": {\"k8s.v1.cni.cncf.io/networks\": "
		"\"a\"}}, \"net.example/group\": {\"path\": \"/metadata/annotations\", "
		"\"value\": {\"" RDMA "\": \"vfs\"}}}}");
#define LABELLED(labels, annotations)                                                              \
	"{metadata: {name: w, namespace: ml, labels: {" labels "}, annotations: {" annotations     \
	"}}, spec: {containers: [{name: c}]}}"
	static const struct {
		const char *pod, *networks, *limits;
	} cases[] = {
		{LABELLED("net.example/rails: 'True'", ""), "a", "{x/vf: '1'}"},
		{LABELLED("net.example/rails: 'true'", NETWORKS("plain")), "a", "{x/vf: '1'}"},
		{LABELLED("net.example/rails: 'false'", NETWORKS("plain")), "plain", NULL},
		{LABELLED("net.example/group: 'true'", ""), "spider/v1", "{x/vf: '1'}"},
		{LABELLED("net.example/group: 'true', net.example/rails: 'true'", ""),
		 "a,spider/v1", "{x/vf: '2'}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = inject(PLAIN, switches, cases[i].pod);
		const json_t *first = json_array_get(json_at(pod, "spec", "containers"), 0);

		assert_string_equal(
			json_str_at(pod, "metadata", "annotations", "k8s.v1.cni.cncf.io/networks"),
			cases[i].networks);
		if (cases[i].limits)
			same_as(json_at(first, "resources", "limits"), cases[i].limits,
				cases[i].pod);
		else
			assert_null(json_at(first, "resources"));
	}
}

TEST(what_is_too_little_or_replaced_is_told)
{
	static const struct {
		const char *settings, *pod, *said;
	} cases[] = {
		{PLAIN, POD(NETWORKS("a,b"), "limits: {x/vf: 1}"),
		 "limit 1 of x/vf, the pod's networks need 2"},
		{ADDING, POD(NETWORKS("a"), "limits: {x/vf: 1k}"),
		 "quantity of x/vf is not a plain number"},
		{PLAIN,
		 "{metadata: {name: w, namespace: ml, annotations: {" NETWORKS(
			 "b") "}}, spec: {nodeSelector: {master: eno9}, containers: [{name: c}]}}",
		 "spec.nodeSelector: master=eno9 is replaced: the pod's networks need master=eno3"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = yaml(cases[i].pod);
		json_auto_t *answer = answer_to(cases[i].settings, NULL, pod);
		const json_t *first = json_array_get(json_at(answer, "response", "warnings"), 0);

		if (!strstr(json_str_or(first, "nothing"), cases[i].said))
			fail_msg("%s\n  %s", cases[i].pod, json_str_or(first, "nothing"));
	}
}

TEST(switches_overrule_settings)
{
	static const struct {
		const char *settings, *switches;
		bool adds, hugepages;
	} cases[] = {
		{PLAIN, NULL, false, false},
		{ADDING, NULL, true, false},
		{ADDING, "{}", true, false},
		{ADDING, SWITCHES("{\"other\": 5}"), true, false},
		{ADDING, SWITCHES("{\"features\": {\"enableHonorExistingResources\": false}}"),
		 false, false},
		{PLAIN,
		 SWITCHES("{\"features\": {\"enableHonorExistingResources\": true, "
			  "\"enableHugePageDownApi\": true, \"unknown\": 1}}"),
		 true, true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config_map = yaml(cases[i].settings);
		json_auto_t *switches = cases[i].switches ? yaml(cases[i].switches) : NULL;
		auto_inject_settings struct inject_settings settings = {0};

		assert_int_equal(inject_settings_read(config_map, &settings, NULL), 0);
		assert_int_equal(inject_switches_read(switches, &settings.switches, NULL), 0);
		assert_int_equal(inject_settings_add(&settings), cases[i].adds);
		assert_int_equal(inject_settings_hugepages(&settings), cases[i].hugepages);
	}
}

TEST(bad_settings_name_the_field)
{
	static const struct {
		const char *settings, *said;
	} settings_cases[] = {
		{SETTINGS(", resourceNameKeys: [a b]"),
		 "podResourceInject.networkResources.resourceNameKeys[0]: \"a b\" is not the key"},
		{SETTINGS(", resourceNameKeys: x"), "resourceNameKeys"},
		{SETTINGS(", hugePageDownApi: 1"), "hugePageDownApi"},
		{"{data: {conf.yml: 'podResourceInject: {networkResources: []}'}}",
		 "networkResources"},
	};
	static const struct {
		const char *switches, *said;
	} switches_cases[] = {
		{SWITCHES("{"), "ConfigMap nri-control-switches: data[config.json]: "},
		{SWITCHES("[]"), "must be an object"},
		{SWITCHES("{\"features\": []}"), "features"},
		{SWITCHES("{\"features\": {\"enableHonorExistingResources\": \"yes\"}}"),
		 "features.enableHonorExistingResources"},
		{SWITCHES("{\"user-defined-injections\": {\"a b\": {}}}"),
		 "user-defined-injections[a b]: must be a label"},
		{SWITCHES("{\"user-defined-injections\": {\"a\": 5}}"), "must be a label"},
		{SWITCHES("{\"user-defined-injections\": {\"a\": {\"path\": \"/spec\"}}}"),
		 "op \"add\" of path \"/spec\" is not possible"},
		{SWITCHES("{\"user-defined-injections\": {\"a\": {\"op\": \"remove\", \"path\": "
			  "\"/metadata/annotations\"}}}"),
		 "op \"remove\""},
		{SWITCHES("{\"user-defined-injections\": {\"a\": {\"path\": "
			  "\"/metadata/annotations\", \"value\": {\"b\": 1}}}}"),
		 "user-defined-injections[a].value[b]: must be an annotation"},
	};
	auto_inject_settings struct inject_settings settings = {0};
	json_t *untouched = NULL;

	for (size_t i = 0; i < ARRAY_LEN(settings_cases); i++) {
		json_auto_t *config_map = yaml(settings_cases[i].settings);
		struct err err = {0};

		assert_int_equal(inject_settings_read(config_map, &settings, &err), -1);
		assert_string_equal(err.reason, "BadConfig");
		if (!strstr(err.text, settings_cases[i].said))
			fail_msg("%s", err.text);
	}
	for (size_t i = 0; i < ARRAY_LEN(switches_cases); i++) {
		json_auto_t *config_map = yaml(switches_cases[i].switches);
		struct err err = {0};

		assert_int_equal(inject_switches_read(config_map, &untouched, &err), -1);
		assert_string_equal(err.reason, "BadConfig");
		if (!strstr(err.text, switches_cases[i].said))
			fail_msg("%s", err.text);
	}
	assert_null(untouched);
}

TEST(there_are_not_too_many_injections)
{
	json_t *injections = json_object();
	json_auto_t *document = json_pack("{s:o}", "user-defined-injections", injections);

	for (int i = 0; i <= INJECT_INJECTIONS_MAX; i++) {
		auto_free char *label = str_printf("l%d", i), *text = NULL;
		json_auto_t *config_map = NULL, *switches = NULL;
		struct err err = {0};

		json_put(injections, label, json_pack("{s:s}", "path", "/metadata/annotations"));
		text = json_text(document);
		config_map = json_pack("{s:{s:s}}", "data", "config.json", text);
		assert_int_equal(inject_switches_read(config_map, &switches, &err),
				 i < INJECT_INJECTIONS_MAX ? 0 : -1);
		assert_int_equal(strstr(err.text, "has 65, at most 64 are possible") != NULL,
				 i == INJECT_INJECTIONS_MAX);
	}
}
