// SPDX-License-Identifier: Apache-2.0
/* Templates of variables: how they are read, which pods get them, and what they leave alone. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "reconcilers/admission/pod_environment.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/kinds.h"
#include "tests/fakes/json_patch.h"
#include "tests/fakes/review.h"
#include "tests/support/yaml.h"

#define RDMA   "cni.spidernet.io/rdma-resource-inject"
#define DEVICE "k8s.v1.cni.cncf.io/resourceName"

/* clang-format off */
static const char world_text[] =
	"{env: {namespace: orbweaver-system, policyNamespaces: [spider]}, "
	"namespaces: {ml: {metadata: {name: ml}}, "
	"jobs: {metadata: {name: jobs, labels: {orbweaver.io/environment: nccl}}}, "
	"lost: {metadata: {name: lost, labels: {orbweaver.io/environment: gone}}}}, "
	"spidermultusconfigs: {"
	"spider/v1: {metadata: {name: v1, namespace: spider, annotations: {" RDMA ": vfs}}, "
	"spec: {cniType: ib-sriov, disableIPAM: true, ibsriov: {resourceName: x/vf}}}, "
	"spider/v2: {metadata: {name: v2, namespace: spider, annotations: {" RDMA ": vfs}}, "
	"spec: {cniType: ib-sriov, disableIPAM: true, ibsriov: {resourceName: x/vf}}}}, "
	"network-attachment-definitions: {"
	"ml/rail: {metadata: {name: rail, namespace: ml, annotations: {" DEVICE ": x/vf}}}, "
	"jobs/rail: {metadata: {name: rail, namespace: jobs, annotations: {" DEVICE ": x/vf}}}, "
	"ml/plain: {metadata: {name: plain, namespace: ml}}}}";
/* clang-format on */

#define CONF "conf.yml: 'podResourceInject: {enabled: true}'"
/* YAML in YAML in C. */
#define TEMPLATES(text_) "{data: {" CONF ", environment.yml: '" text_ "'}}"
#define ANSWER           "{nccl: {A: \"={interfaces}\", B: \"{interface}\", C: 106}}"
#define GOOD             TEMPLATES(ANSWER)

static json_t *answer_to(const char *settings_text, const json_t *pod)
{
	json_auto_t *world = yaml(world_text), *config_map = yaml(settings_text);
	json_auto_t *review = review_new(KIND_POD, "CREATE", pod, NULL);
	auto_inject_settings struct inject_settings settings = {0};
	auto_admission_request struct admission_request request = {0};

	assert_int_equal(inject_settings_read(config_map, &settings, NULL), 0);
	assert_int_equal(admission_read(review, &request, NULL), 0);
	return pod_inject(world, &settings, &request);
}

/*
 * The pod as it would be stored. *ret_warning: new, "" for none. A second review has nothing to
 * add. Returns new.
 */
static json_t *inject(const char *settings, const char *text, char **ret_warning)
{
	json_t *pod = yaml(text);
	json_auto_t *answer = answer_to(settings, pod), *patch = json_patch_of(answer);
	json_auto_t *again = NULL, *nothing = NULL;
	const json_t *warnings = json_at(answer, "response", "warnings");

	assert_true(json_is_true(json_at(answer, "response", "allowed")));
	*ret_warning = str_dup(json_str_or(json_array_get(warnings, 0), ""));
	if (patch)
		assert_true(json_patch_apply(pod, patch));
	again = answer_to(settings, pod);
	nothing = json_patch_of(again);
	assert_null(nothing);
	return pod;
}

#define NETWORKS(text_) "k8s.v1.cni.cncf.io/networks: '" text_ "'"
#define ASKS(name_)     POD_ENVIRONMENT_NAME ": '" name_ "'"
#define POD_IN(ns_, annotations_, spec_)                                                           \
	"{metadata: {name: w, namespace: " ns_ ", annotations: {" annotations_ "}}, spec: {" spec_ \
	"}}"
#define ONE                      "containers: [{name: c}]"
#define POD(annotations_, spec_) POD_IN("ml", annotations_, spec_)

/* "A=…;B=…" of the i-th container, new. */
static char *environment_of(const json_t *pod, size_t i)
{
	auto_strbuf struct strbuf text = {0};
	const json_t *variable;
	size_t k;

	json_array_foreach (json_at(json_array_get(json_at(pod, "spec", "containers"), i), "env"),
			    k, variable)
		strbuf_addf(&text, "%s%s=%s", k > 0 ? ";" : "", json_str_at(variable, "name"),
			    json_str_or(json_at(variable, "value"), "?"));
	return strbuf_take(&text);
}

TEST(a_container_gets_the_variables_of_the_template)
{
	static const struct {
		const char *pod, *environment;
	} cases[] = {
		{POD(ASKS("nccl") ", " NETWORKS("rail,rail"), ONE), "A==net1,net2;B=net1;C=106"},
		/* The interfaces with devices, under their own names and numbers. */
		{POD(ASKS("nccl") ", " NETWORKS("plain,rail,rail@mlx0"), ONE),
		 "A==net2,mlx0;B=net2;C=106"},
		/* Where no network names a resource they may come with the pod: all count. */
		{POD(ASKS("nccl") ", " NETWORKS("plain,other/unknown"), ONE),
		 "A==net1,net2;B=net1;C=106"},
		/* Networks of a group are there before. */
		{POD(ASKS("nccl") ", " RDMA ": vfs", ONE), "A==net1,net2;B=net1;C=106"},
		{POD(ASKS("nccl") ", " RDMA ": vfs, " NETWORKS("plain"), ONE),
		 "A==net2,net3;B=net2;C=106"},
		/* The namespace's label, and a pod that wants nothing of it. */
		{POD_IN("jobs", NETWORKS("rail"), ONE), "A==net1;B=net1;C=106"},
		{POD_IN("jobs", ASKS("none") ", " NETWORKS("rail"), ONE), ""},
		{POD_IN("jobs", ASKS("") ", " NETWORKS("rail"), ONE), ""},
		/* A pod that does not ask. */
		{POD(NETWORKS("rail"), ONE), ""},
		/* What the container has stays, with a value of whatever kind. */
		{POD(ASKS("nccl") ", " NETWORKS("rail"),
		     "containers: [{name: c, env: [{name: A, value: mine}, {name: C, valueFrom: "
		     "{}}]}]"),
		 "A=mine;C=?;B=net1"},
		{POD(ASKS("nccl") ", " NETWORKS("rail"),
		     "containers: [{name: c, envFrom: [{prefix: B, configMapRef: {name: x}}]}]"),
		 "A==net1;C=106"},
		{POD(ASKS("nccl") ", " NETWORKS("rail"),
		     "containers: [{name: c, envFrom: [{secretRef: {name: x}}]}]"),
		 ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *warning = NULL, *environment = NULL;
		json_auto_t *pod = inject(GOOD, cases[i].pod, &warning);

		environment = environment_of(pod, 0);
		if (!str_eq(environment, cases[i].environment))
			fail_msg("%s: %s", cases[i].pod, environment);
	}
}

TEST(all_containers_but_init_containers_get_them)
{
	auto_free char *warning = NULL, *first = NULL, *second = NULL;
	json_auto_t *pod =
		inject(GOOD,
		       POD(ASKS("nccl") ", " NETWORKS("rail"),
			   "initContainers: [{name: i}], containers: [{name: c}, {name: d}]"),
		       &warning);

	first = environment_of(pod, 0);
	second = environment_of(pod, 1);
	assert_string_equal(first, "A==net1;B=net1;C=106");
	assert_string_equal(second, first);
	assert_null(json_at(json_array_get(json_at(pod, "spec", "initContainers"), 0), "env"));
	assert_string_equal(warning, "");
}

TEST(what_cannot_be_leaves_the_pod_as_it_is)
{
	static const struct {
		const char *settings, *pod, *said;
	} cases[] = {
		{GOOD, POD(ASKS("other") ", " NETWORKS("rail"), ONE),
		 "metadata.annotations[orbweaver.io/environment]: \"other\" in ConfigMap "
		 "spiderpool-conf, data[environment.yml], does not exist"},
		{"{data: {" CONF "}}", POD(ASKS("nccl"), ONE), "does not exist"},
		{GOOD, POD_IN("lost", "", ONE),
		 "metadata.namespace: its label orbweaver.io/environment: \"gone\""},
		/* Names reach no other ConfigMap. */
		{GOOD, POD(ASKS("../ml/mine"), ONE), "does not exist"},
		{TEMPLATES("{nccl: {A: [1]}}"), POD(ASKS("nccl"), ONE),
		 "cannot be used: A is an array, must be text: write it in quotes: the pod gets"},
		{TEMPLATES("{nccl: ["), POD(ASKS("nccl"), ONE), "cannot be used: "},
		{GOOD, POD(ASKS("nccl"), ONE), "it asks for no networks"},
		{GOOD, POD(ASKS("nccl") ", " NETWORKS("rail@a$(B)"), ONE),
		 "interface \"a$(B)\" cannot stand in a list"},
		{GOOD,
		 POD(ASKS("nccl") ", " NETWORKS("[{\"name\":\"rail\",\"interface\":\"a,b\"}]"),
		     ONE),
		 "interface \"a,b\" cannot stand in a list"},
		{GOOD, POD(ASKS("nccl") ", " NETWORKS("rail"), "hostNetwork: true, " ONE),
		 "remove hostNetwork"},
		{"{data: {conf.yml: ''}}", POD(ASKS("nccl"), ONE), "it is off for namespace ml"},
		/* Most pods of a namespace may have no networks. */
		{GOOD, POD_IN("jobs", "", ONE), ""},
		{GOOD, POD_IN("jobs", NETWORKS("rail"), "hostNetwork: true, " ONE), ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *warning = NULL, *environment = NULL;
		json_auto_t *pod = inject(cases[i].settings, cases[i].pod, &warning);

		environment = environment_of(pod, 0);
		if (*environment || (*cases[i].said ? !strstr(warning, cases[i].said) : *warning))
			fail_msg("%s: %s: %s", cases[i].pod, environment, warning);
	}
}

TEST(variables_that_an_envfrom_may_set_are_counted)
{
	auto_free char *warning = NULL;
	json_auto_t *pod = inject(GOOD,
				  POD(ASKS("nccl") ", " NETWORKS("rail"),
				      "containers: [{name: c, envFrom: [{secretRef: {name: x}}]}]"),
				  &warning);

	assert_non_null(pod);
	if (!strstr(warning, "3 variables are not set in container c, whose envFrom may have them"))
		fail_msg("%s", warning);
}

TEST(a_pod_of_many_containers_is_not_blown_up)
{
	auto_strbuf struct strbuf containers = {0}, templates = {0};
	auto_free char *warning = NULL, *environment = NULL, *text = NULL;
	json_auto_t *pod = NULL;

	strbuf_adds(&templates, "{data: {" CONF ", environment.yml: '{nccl: {A: \"");
	for (int i = 0; i < POD_ENVIRONMENT_VALUE_BYTES; i++)
		strbuf_addc(&templates, 'x');
	strbuf_adds(&templates, "\"}}'}}");
	for (int i = 0; i <= POD_ENVIRONMENT_POD_BYTES / POD_ENVIRONMENT_VALUE_BYTES; i++)
		strbuf_addf(&containers, "%s{name: c%d}", i ? ", " : "", i);
	text = str_printf("{metadata: {name: w, namespace: ml, annotations: {" ASKS(
				  "nccl") "}}, spec: {containers: [%s]}}",
			  strbuf_str(&containers));
	pod = inject(strbuf_str(&templates), text, &warning);
	environment = environment_of(pod, 0);
	assert_string_equal(environment, "");
	if (!strstr(warning, "at most 65536 are possible"))
		fail_msg("%s", warning);
}

TEST(a_fault_is_one_template_s)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{"{nccl: {A: a}}", NULL},
		{"{nccl: {A: a}, bad: {A: true}}",
		 "data[environment.yml]: bad: A is a boolean, must be text: write it in quotes"},
		{"{nccl: {A: a}, bad: {1A: a}}", "bad: \"1A\" is not the name of a variable"},
		{"{nccl: {A: a}, bad: {A-B: a}}", "\"A-B\" is not the name"},
		{"{nccl: {A: a}, bad: {A: \"{rails}\"}}",
		 "A: \"{rails}\" is not known: write {interfaces} or {interface}"},
		{"{nccl: {A: a}, bad: {A: \"{interface\"}}", "is not known"},
		{"{nccl: {A: a}, bad: {A: \"{interfaces}}\"}}", "is not known"},
		{"{nccl: {A: a}, bad: [x]}", "bad: is an array, must be variables"},
		{"{nccl: {A: a}, none: {A: a}}", "none: its name must be one that a label can"},
		{"{nccl: {A: a}, \"a b\": {A: a}}", "its name must be"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config_map =
			json_pack("{s:{s:s}}", "data", POD_ENVIRONMENT_KEY, cases[i].text);
		json_auto_t *templates = pod_environment_templates(config_map);
		auto_free char *problem = pod_environment_problem(templates);

		assert_string_equal(json_str_at(templates, "nccl", "variables", "A"), "a");
		if (!cases[i].said ? problem != NULL : !problem || !strstr(problem, cases[i].said))
			fail_msg("%s: %s", cases[i].text, problem ? problem : "nothing");
	}
}

/* The text as a whole: nothing is read of what is too large. */
TEST(a_text_without_end_is_refused)
{
	static const struct {
		const char *before, *each, *after, *said;
		int n;
	} cases[] = {
		{"{nccl: {A: \"", "x", "\"}}", "bytes, can have 16384", 16383},
		{"{nccl: {A: \"", "x", "\"}}", "nccl: A has 1025 bytes, a value can have 1024",
		 POD_ENVIRONMENT_VALUE_BYTES + 1},
		{"{", "t%d: {A: a},", "}", "has 33 templates, can have 32",
		 POD_ENVIRONMENT_TEMPLATES + 1},
		{"{nccl: {", "V%d: a,", "}}", "nccl: has 33 variables, can have 32",
		 POD_ENVIRONMENT_VARIABLES + 1},
		{"[", "a,", "]", "must be templates by their names", 1},
		{"{\"\": {A: a}", "", "}", "must be templates by their names", 1},
		{"{", "", "", "line", 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_strbuf struct strbuf text = {0};
		json_auto_t *config_map = NULL, *templates = NULL;
		auto_free char *problem = NULL;

		strbuf_adds(&text, cases[i].before);
		for (int n = 0; n < cases[i].n; n++) {
			const char *number = strstr(cases[i].each, "%d");

			if (number)
				strbuf_addf(&text, "%c%d%s", cases[i].each[0], n, number + 2);
			else
				strbuf_adds(&text, cases[i].each);
		}
		strbuf_adds(&text, cases[i].after);
		config_map = json_pack("{s:{s:s}}", "data", POD_ENVIRONMENT_KEY, strbuf_str(&text));
		templates = pod_environment_templates(config_map);
		problem = pod_environment_problem(templates);
		if (!problem || !strstr(problem, cases[i].said))
			fail_msg("%zu: %s", i, problem ? problem : "nothing");
	}
}

TEST(a_config_map_without_templates_has_none)
{
	static const char *const texts[] = {"{}", "{data: {}}", "{data: {environment.yml: ''}}",
					    "{data: {environment.yml: '# later'}}",
					    "{data: {environment.yml: 5}}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		json_auto_t *config_map = yaml(texts[i]);

		assert_null(pod_environment_templates(config_map));
	}
	assert_null(pod_environment_templates(NULL));
}
