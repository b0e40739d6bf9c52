// SPDX-License-Identifier: Apache-2.0
/*
 * Extended resources of the cluster: what is one, and when the first and the last node of it is
 * told.
 */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "reconcilers/sriov/node_names.h"
#include "tests/support/yaml.h"

static struct strbuf told;

static void tell(void *arg, const char *name)
{
	strbuf_addf(&told, "%s ", name);
}

static void update(struct node_names *names, const char *old, const char *now, const char *want)
{
	json_auto_t *before = old ? yaml(old) : NULL, *after = now ? yaml(now) : NULL;

	node_names_update(names, before, after, tell, NULL);
	assert_string_equal(strbuf_str(&told), want);
	strbuf_done(&told);
}

TEST(the_first_and_the_last_node_are_told)
{
	auto_node_names struct node_names *names = node_names_new();

	update(names, NULL, "{a/x: true, a/y: true}", "a/x a/y ");
	update(names, NULL, "{a/x: true}", "");
	assert_true(node_names_have(names, "a/x"));
	update(names, "{a/x: true, a/y: true}", "{a/x: true}", "a/y ");
	assert_false(node_names_have(names, "a/y"));
	update(names, "{a/x: true}", NULL, "");
	update(names, "{a/x: true}", "{}", "a/x ");
	assert_false(node_names_have(names, "a/x"));
	/* Told of a node that was never heard of. */
	update(names, "{a/x: true}", NULL, "");
}

TEST(extended_resources_are_told_from_others)
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

TEST(links_are_known_where_a_node_reports_them)
{
	json_auto_t *reports = yaml("{status: {links: [bond0, /reported, 7, ens1]}}");
	json_auto_t *none = yaml("{status: {links: []}}"), *silent = yaml("{status: {}}");
	json_auto_t *all = yaml("{bond0: true, ens1: true, /reported: true}");
	json_auto_t *only = yaml("{/reported: true}"), *unknown = yaml("{/unknown: true}");
	json_auto_t *got = node_links_of(reports), *got_none = node_links_of(none);
	json_auto_t *got_unknown = node_links_of(silent);

	assert_true(json_same(got, all));
	assert_true(json_same(got_none, only));
	assert_true(json_same(got_unknown, unknown));
	assert_null(node_links_of(NULL));
}

static void ignore(void *arg, const char *name)
{
}

TEST(a_link_type_counts_where_nodes_agree)
{
	json_auto_t *one = yaml(
		"{spec: {interfaces: [{pciAddress: '0000:af:00.0', vfGroups: [{resourceName: "
		"rail}, "
		"{deviceType: netdevice}]}]}, status: {interfaces: [{pciAddress: '0000:af:00.0', "
		"name: ibp175s0, altNames: [ib0], linkType: IB}, {name: ens1, linkType: ETH}, "
		"{name: odd, linkType: 7}, {linkType: ETH}]}}");
	json_auto_t *two = yaml("{status: {interfaces: [{name: ens1, linkType: IB}, "
				"{name: ib0, linkType: IB}]}}");
	json_auto_t *want =
		yaml("{ibp175s0/IB: true, ib0/IB: true, rail//IB: true, ens1/ETH: true}");
	json_auto_t *first = node_link_types_of(one), *second = node_link_types_of(two);
	auto_node_names struct node_names *names = node_names_new();

	assert_true(json_same(first, want));
	assert_null(node_link_types_of(NULL));
	node_names_update(names, NULL, first, ignore, NULL);
	assert_string_equal(node_names_link_type(names, "ens1"), "ETH");
	assert_string_equal(node_names_link_type(names, "rail/"), "IB");
	assert_null(node_names_link_type(names, "rail"));
	node_names_update(names, NULL, second, ignore, NULL);
	assert_null(node_names_link_type(names, "ens1"));
	assert_string_equal(node_names_link_type(names, "ib0"), "IB");
}

TEST(what_pods_can_have_is_told_from_what_is_not_known)
{
	json_auto_t *node = yaml("{status: {allocatable: {x.io/a: '4', x.io/b: 1Ki, "
				 "x.io/c: 1k, x.io/d: 3M, x.io/e: 1e3, x.io/f: k, x.io/g: '', "
				 "x.io/h: 9999E, x.io/i: 5}}}");
	json_auto_t *unknown = yaml("{metadata: {name: w1}}");

	assert_int_equal(node_allocatable(node, "x.io/a"), 4);
	assert_int_equal(node_allocatable(node, "x.io/c"), 1000);
	assert_int_equal(node_allocatable(node, "x.io/d"), 3000000);
	assert_int_equal(node_allocatable(node, "x.io/none"), 0);
	for (const char *name = "befghi"; *name; name++) {
		char resource[] = {'x', '.', 'i', 'o', '/', *name, 0};

		assert_int_equal(node_allocatable(node, resource), -1);
	}
	assert_int_equal(node_allocatable(unknown, "x.io/a"), -1);
	assert_int_equal(node_allocatable(NULL, "x.io/a"), -1);
}
