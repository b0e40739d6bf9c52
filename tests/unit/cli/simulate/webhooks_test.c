// SPDX-License-Identifier: Apache-2.0
/* Which webhooks are asked about a write. */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/api/webhooks.h"
#include "lib/json/json.h"

static const struct resource pods = {.group = "",
				     .version = "v1",
				     .plural = "pods",
				     .kind = "Pod",
				     .flags = RESOURCE_NAMESPACED};
static const struct resource nodes = {
	.group = "", .version = "v1", .plural = "nodes", .kind = "Node"};

#define RULE(operations_, resources_, more_)                                                       \
	"{'rules':[{'operations':[" operations_                                                    \
	"],'apiGroups':[''],'apiVersions':['v1'],'resources':[" resources_ "]}]" more_ "}"

/* JSON with single quotes. */
static json_t *parse(const char *text)
{
	char copy[1024];
	json_t *value;

	assert_true(strlen(text) < sizeof(copy));
	memcpy(copy, text, strlen(text) + 1);
	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	value = json_parse(copy, strlen(copy), NULL);
	assert_non_null(value);
	return value;
}

static bool matches(const char *hook, const struct admission *admission, const char *ns)
{
	json_auto_t *webhook = parse(hook), *namespace = ns ? parse(ns) : NULL;

	return webhooks_match(webhook, admission, namespace);
}

static void compares_operations_and_resources(void **state)
{
	static const struct {
		const char *hook;
		const char *subresource;
		bool want;
	} cases[] = {
		{RULE("'CREATE'", "'pods'", ""), NULL, true},
		{RULE("'UPDATE'", "'pods'", ""), NULL, false},
		{RULE("'*'", "'pods'", ""), NULL, true},
		{RULE("'CREATE'", "'*'", ""), NULL, true},
		{RULE("'CREATE'", "'*/*'", ""), NULL, true},
		{RULE("'CREATE'", "'nodes'", ""), NULL, false},
		{RULE("'CREATE'", "'pod'", ""), NULL, false},
		{RULE("'CREATE'", "'pods/status'", ""), NULL, false},
		{RULE("'CREATE'", "'pods'", ""), "status", false},
		{RULE("'CREATE'", "'pods/status'", ""), "status", true},
		{RULE("'CREATE'", "'pods/*'", ""), "status", true},
		{RULE("'CREATE'", "'*/status'", ""), "status", true},
		{RULE("'CREATE'", "'*/scale'", ""), "status", false},
		{"{'rules':[]}", NULL, false},
		{"{}", NULL, false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct admission admission = {.resource = &pods,
						    .operation = "CREATE",
						    .subresource = cases[i].subresource};

		if (matches(cases[i].hook, &admission, NULL) != cases[i].want)
			fail_msg("case %zu: %s", i, cases[i].hook);
	}
}

static void compares_the_scope(void **state)
{
	static const char hook[] = "{'rules':[{'operations':['*'],'apiGroups':['*'],'apiVersions':"
				   "['*'],'resources':['*'],'scope':'Cluster'}]}";
	const struct admission of_pod = {.resource = &pods, .operation = "CREATE"};
	const struct admission of_node = {.resource = &nodes, .operation = "CREATE"};

	assert_false(matches(hook, &of_pod, NULL));
	assert_true(matches(hook, &of_node, NULL));
}

static void compares_labels_of_namespace_and_object(void **state)
{
	static const char by_ns[] =
		RULE("'CREATE'", "'pods'", ",'namespaceSelector':{'matchLabels':{'a':'b'}}");
	static const char by_object[] =
		RULE("'CREATE'", "'pods'", ",'objectSelector':{'matchLabels':{'a':'b'}}");
	json_auto_t *labelled = parse("{'metadata':{'labels':{'a':'b'}}}");
	json_auto_t *other = parse("{'metadata':{}}");
	struct admission admission = {.resource = &pods, .operation = "CREATE", .object = other};

	assert_true(matches(by_ns, &admission, "{'metadata':{'labels':{'a':'b'}}}"));
	assert_false(matches(by_ns, &admission, "{'metadata':{'labels':{'a':'c'}}}"));
	assert_false(matches(by_object, &admission, NULL));
	/* An update that takes the label away is asked about, too. */
	admission.old = labelled;
	assert_true(matches(by_object, &admission, NULL));
}

static void asks_in_a_dry_run_only_who_says_that_it_may(void **state)
{
	const struct admission admission = {
		.resource = &pods, .operation = "CREATE", .is_dry_run = true};

	assert_false(
		matches(RULE("'CREATE'", "'pods'", ",'sideEffects':'Some'"), &admission, NULL));
	assert_true(matches(RULE("'CREATE'", "'pods'", ",'sideEffects':'None'"), &admission, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compares_operations_and_resources),
		cmocka_unit_test(compares_the_scope),
		cmocka_unit_test(compares_labels_of_namespace_and_object),
		cmocka_unit_test(asks_in_a_dry_run_only_who_says_that_it_may),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
