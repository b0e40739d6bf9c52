/*
 * Extended resources of the cluster: what is one, and when the first and the last node of it is
 * told.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <string.h>

#include "lib/json/json.h"
#include "reconcilers/sriov/node_resources.h"
#include "tests/support/yaml.h"

static struct strbuf told;

static void tell(void *arg, const char *name)
{
	strbuf_addf(&told, "%s ", name);
}

static void update(struct node_resources *resources, const char *old, const char *now,
		   const char *want)
{
	json_auto_t *before = old ? yaml(old) : NULL, *after = now ? yaml(now) : NULL;

	node_resources_update(resources, before, after, tell, NULL);
	assert_string_equal(strbuf_str(&told), want);
	strbuf_done(&told);
}

#define NODE(names) "{status: {allocatable: {" names "}}}"

static void the_first_and_the_last_node_are_told(void **state)
{
	auto_node_resources struct node_resources *resources = node_resources_new();

	update(resources, NULL, NODE("a/x: true, a/y: true"), "a/x a/y ");
	update(resources, NULL, NODE("a/x: true"), "");
	assert_true(node_resources_have(resources, "a/x"));
	update(resources, NODE("a/x: true, a/y: true"), NODE("a/x: true"), "a/y ");
	assert_false(node_resources_have(resources, "a/y"));
	update(resources, NODE("a/x: true"), NULL, "");
	update(resources, NODE("a/x: true"), "{metadata: {name: n}}", "a/x ");
	assert_false(node_resources_have(resources, "a/x"));
	/* Told of a node that was never heard of. */
	update(resources, NODE("a/x: true"), NULL, "");
}

static void extended_resources_are_told_from_others(void **state)
{
	json_auto_t *allocatable = yaml("{cpu: '4', memory: 1Ki, pods: '110', hugepages-2Mi: '0', "
					"spidernet.io/vf: '8', spidernet.io/none: '0', "
					"node.kubernetes.io/x: '1', kubernetes.io/y: '1', "
					"example.com/z: 1}");
	json_auto_t *none = yaml("{cpu: '4', a/b: '0'}");
	json_auto_t *want = yaml("{spidernet.io/vf: true, example.com/z: true}");
	json_auto_t *got = node_resources_of(allocatable);

	assert_true(json_same(got, want));
	assert_null(node_resources_of(none));
	assert_null(node_resources_of(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_and_the_last_node_are_told),
		cmocka_unit_test(extended_resources_are_told_from_others),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
