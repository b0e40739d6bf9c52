// SPDX-License-Identifier: Apache-2.0
/* Selectors of query strings; refusals begin as kube-apiserver words them. */
#include "tests/unit/cli/simulate/objects.h"

#include "cli/simulate/objects/selector.h"

static const struct selector_kind pods = {.group = "", .kind = "Pod", .namespaced = true};
static const struct selector_kind nodes = {.group = "", .kind = "Node"};
static const struct selector_kind events = {.group = "", .kind = "Event", .namespaced = true};

static const char pod[] =
	"{'metadata':{'name':'p','namespace':'n','labels':{'app':'web','tier':'','x.y/z':'1'}},"
	"'spec':{'nodeName':'gpu-1'},'status':{'phase':'Running'}}";

struct selector_case {
	const char *text;
	bool matches;
};

TEST(labels_are_selected_as_kubectl_writes_them)
{
	static const struct selector_case cases[] = {
		{"app=web", true},
		{"app==web", true},
		{"app!=web", false},
		{"none!=web", true},
		{"app in (web, db)", true},
		{"app in (db)", false},
		{"app notin (db)", true},
		{"none notin (db)", true},
		{"app notin (web,db)", false},
		{"app", true},
		{"none", false},
		{"!none", true},
		{"! app", false},
		{"app=web,tier=", true},
		{"tier in ()", true},
		{" app = web , x.y/z=1 ", true},
		{"app=web,x.y/z=2", false},
		{"in in (a)", false},
		{"", true},
	};
	json_auto_t *object = parse(pod);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		auto_selector struct selector *selector =
			selector_new(&pods, cases[i].text, NULL, &err);

		print_message("%s\n", cases[i].text);
		assert_string_equal(err.text, "");
		assert_int_equal(selector_matches(selector, object), cases[i].matches);
	}
}

TEST(fields_are_selected_by_kind)
{
	static const struct selector_case cases[] = {
		{"metadata.name=p", true},       {"metadata.name=q", false},
		{"metadata.namespace=n", true},  {"spec.nodeName=gpu-1,status.phase!=Failed", true},
		{"spec.nodeName==gpu-2", false}, {"spec.nodeName!=", true},
		{"status.podIP=", true},         {"spec.hostNetwork=false", true},
	};
	json_auto_t *object = parse(pod);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};
		auto_selector struct selector *selector =
			selector_new(&pods, NULL, cases[i].text, &err);

		print_message("%s\n", cases[i].text);
		assert_string_equal(err.text, "");
		assert_int_equal(selector_matches(selector, object), cases[i].matches);
	}
}

TEST(values_of_fields_have_escapes)
{
	json_auto_t *event = parse("{'reason':'a,b=c','source':{'component':'kubelet'}}");
	auto_selector struct selector *selector =
		selector_new(&events, NULL, "reason=a\\,b\\=c,source=kubelet", NULL);

	assert_true(selector_matches(selector, event));
}

TEST(custom_resources_name_their_own_fields)
{
	json_auto_t *selectable = parse("[{'jsonPath':'.status.current.node'}]");
	const struct selector_kind kind = {
		.group = "example.com", .kind = "Widget", .selectable = selectable};
	json_auto_t *object = parse("{'status':{'current':{'node':'n1'}}}");
	auto_selector struct selector *selector =
		selector_new(&kind, NULL, "status.current.node=n1", NULL);

	assert_true(selector_matches(selector, object));
}

TEST(faults_are_named)
{
	static const struct {
		const char *labels, *fields, *text;
	} cases[] = {
		{"a in b", NULL, "unable to parse requirement: found 'b', expected: '('"},
		{"a>>", NULL,
		 "unable to parse requirement: found '>', expected: '=', '!=', '==', 'in', "
		 "'notin'"},
		{"a b", NULL,
		 "unable to parse requirement: found 'b', expected: '=', '!=', '==', 'in', "
		 "'notin'"},
		{",", NULL,
		 "unable to parse requirement: found ',', expected: !, identifier, or 'end of "
		 "string'"},
		{"a=!", NULL, "unable to parse requirement: found '!', expected: identifier"},
		{"a,", NULL,
		 "unable to parse requirement: found '', expected: identifier after ','"},
		{"a in (b", NULL, "unable to parse requirement: found '', expected: ',' or ')'"},
		{"-a=b", NULL,
		 "unable to parse requirement: invalid label key \"-a\": must be NAME or "
		 "DOMAIN/NAME of letters, digits, '-', '_', '.', at most 63 in NAME"},
		{NULL, "spec.vlan=3", "field label not supported: spec.vlan"},
		{NULL, "metadata.namespace=x", "field label not supported: metadata.namespace"},
		{NULL, "metadata.name",
		 "invalid selector: 'metadata.name'; must be PATH=VALUE or PATH!=VALUE"},
		{NULL, "metadata.name=a\\b",
		 "invalid selector: 'metadata.name=a\\b'; only \\\\, \\, and \\= are escapes"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(selector_new(&nodes, cases[i].labels, cases[i].fields, &err));
		assert_string_equal(err.text, cases[i].text);
		assert_string_equal(err.reason, "BadRequest");
	}
}
