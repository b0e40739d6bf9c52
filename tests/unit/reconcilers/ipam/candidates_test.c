/* SPDX-License-Identifier: Apache-2.0 */
/* Which pools a pod may choose from, and how many names and patterns are read. */
#include "tests/support/test.h"

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/ipam/allocate/allocate_internal.h"
#include "reconcilers/ipam/candidates.h"
#include "reconcilers/ipam/foresight.h"
#include "tests/support/yaml.h"

static const struct ipam_settings settings = {.ipv4 = true, .ns = "kube-system"};

static json_t *world_of(const char *const *pools, size_t n)
{
	json_t *world = json_object(), *all = json_need_object(world, "spiderippools");

	for (size_t i = 0; i < n; i++)
		json_put(all, pools[i],
			 json_pack("{s:{s:s}, s:{s:i}}", "metadata", "name", pools[i], "spec",
				   "ipVersion", 4));
	return world;
}

static json_t *world_of_many(size_t n)
{
	json_t *world = json_object(), *all = json_need_object(world, "spiderippools");

	for (size_t i = 0; i < n; i++) {
		auto_free char *name = str_printf("pool-%zu", i);

		json_put(all, name,
			 json_pack("{s:{s:s}, s:{s:i}}", "metadata", "name", name, "spec",
				   "ipVersion", 4));
	}
	return world;
}

/* The names for net1, each once, or the reason of the error. */
static char *found(const json_t *world, const char *annotation, const char *text, json_t *memo,
		   const char *nic)
{
	json_auto_t *pod = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "namespace", "ml",
				     "annotations", annotation, text);
	json_auto_t *ask = json_pack("{s:s}", "nic", nic), *wants = NULL;
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};
	json_t *name;
	size_t i;

	wants = candidates_find(world, pod, ask, &settings, memo, &err);
	if (!wants)
		return str_dup(err.reason);
	json_array_foreach (json_at(json_array_get(wants, 0), "ipv4"), i, name)
		strbuf_addf(&out, "%s%s", i ? " " : "", json_string_value(name));
	return strbuf_take(&out);
}

TEST(patterns_mean_what_shells_mean)
{
	static const char *const pools[] = {"a1", "a2", "ab", "abc", "b-a", "x.y"};
	static const struct {
		const char *pattern, *want;
	} cases[] = {
		{"a*", "a1 a2 ab abc"},
		{"*a", "b-a"},
		{"*", "a1 a2 ab abc b-a x.y"},
		{"**b*", "ab abc b-a"},
		{"a?", "a1 a2 ab"},
		{"a[0-9]", "a1 a2"},
		{"a[^0-9]", "ab"},
		{"a[12b]c", "abc"},
		{"a[b]*", "ab abc"},
		{"\\\\a*", "a1 a2 ab abc"},
		{"*-*", "b-a"},
		{"*.y", "x.y"},
		{"a[1", "PoolNotFound"},
		{"*[1", "WrongAnnotation"},
		{"*[]", "NoAddressForNic"},
		{"[a-b][!0-9]", "ab"},
		{"[[:alpha:]b-a]-*", "NoAddressForNic"},
		{"x[.]y", "x.y"},
		{"A*", "NoAddressForNic"},
		{"?", "NoAddressForNic"},
		{"b[-]a*", "b-a"},
	};
	json_auto_t *world = world_of(pools, ARRAY_LEN(pools));

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf("{\"ipv4\": [\"%s\"]}", cases[i].pattern);
		auto_free char *got = found(world, IPAM_ANNOTATION_POOL, text, NULL, "net1");

		assert_string_equal(got, cases[i].want);
	}
}

/* With fnmatch(3) this takes longer than anybody waits. */
TEST(many_stars_cost_no_more_than_one)
{
	auto_strbuf struct strbuf name = {0}, text = {0};
	json_auto_t *world = NULL;
	auto_free char *got = NULL;
	const char *pool;

	for (int i = 0; i < 250; i++)
		strbuf_adds(&name, "a");
	pool = strbuf_str(&name);
	world = world_of(&pool, 1);
	strbuf_adds(&text, "{\"ipv4\": [\"");
	for (int i = 0; i < 100; i++)
		strbuf_adds(&text, "*a");
	strbuf_adds(&text, "*b\"]}");
	got = found(world, IPAM_ANNOTATION_POOL, strbuf_str(&text), NULL, "net1");
	assert_string_equal(got, "NoAddressForNic");
}

static char *list_of(const char *form, size_t n)
{
	auto_strbuf struct strbuf text = {0};

	strbuf_adds(&text, "{\"ipv4\": [");
	for (size_t i = 0; i < n; i++) {
		auto_free char *name = str_printf("%zu", i);

		strbuf_addf(&text, "%s\"%s%s\"", i ? "," : "", form, name);
	}
	strbuf_adds(&text, "]}");
	return strbuf_take(&text);
}

static void ignore(void *arg, const char *pool)
{
}

/* Source 1 or 2 decides alone; a list that is too long is refused before it is looked at. */
TEST(patterns_of_networks_are_counted)
{
	json_auto_t *pod = yaml("metadata: {annotations: {}}");
	json_auto_t *named = yaml("metadata: {annotations: {ipam.spidernet.io/ippool: '{\"ipv4\": "
				  "[\"p\"]}'}}");
	json_auto_t *namespace = yaml("metadata: {annotations: {ipam.spidernet.io/"
				      "default-ipv4-ippool: '[\"[n]1\", \"n2\"]'}}");
	json_auto_t *asks = yaml("[{ipv4: ['a*', b], ipv6: ['c[0-9]']}, {ipv4: ['d?']}]");
	json_auto_t *large = json_array(), *too_many = json_pack("[{s:O}]", "ipv4", large);

	for (size_t i = 0; i <= LIMIT_POOL_NAMES; i++)
		json_array_append_new(large, json_string("*"));
	assert_int_equal(candidates_visit_names(pod, NULL, asks, ignore, NULL).patterns, 3);
	assert_int_equal(candidates_visit_names(pod, namespace, asks, ignore, NULL).patterns, 4);
	assert_int_equal(candidates_visit_names(named, namespace, asks, ignore, NULL).patterns, 0);
	assert_int_equal(candidates_visit_names(pod, NULL, too_many, ignore, NULL).patterns, 0);
	json_array_remove(large, 0);
	assert_int_equal(candidates_visit_names(pod, NULL, too_many, ignore, NULL).patterns,
			 LIMIT_POOL_PATTERNS);
	assert_true(candidates_visit_names(pod, NULL, too_many, ignore, NULL).is_open);
}

/* As the first source says them, which decides alone, for each NIC that asks. */
TEST(pools_to_choose_from_are_counted)
{
	static const struct {
		const char *pod, *namespace, *asks;
		size_t names, open_asks, masters;
	} cases[] = {
		{"", "", "[{nic: a, ipv4: [p, q]}, {nic: b, ipv6: [r]}]", 3, 0, 0},
		{"", "", "[{nic: a}, {nic: b, ipv4: ['p*']}, {nic: c, ipv4: [p]}]", 2, 2, 0},
		{"ipam.spidernet.io/ippool: '{\"ipv4\": [\"p\", \"q\"]}'", "",
		 "[{nic: a}, {nic: b}]", 4, 0, 0},
		{"ipam.spidernet.io/ippool: '{\"ipv4\": [\"p*\"]}'", "", "[{nic: a}, {nic: b}]", 2,
		 2, 0},
		{"", "ipam.spidernet.io/default-ipv4-ippool: '[\"p\"]'", "[{nic: a}, {nic: b}]", 2,
		 0, 0},
		{"ipam.spidernet.io/ippool: '{\"ipv4\": [\"p\"]}'",
		 "ipam.spidernet.io/default-ipv4-ippool: '[\"*\"]'", "[{nic: a}]", 1, 0, 0},
		{"", "", "[{nic: a, ipv4: [p], masterAddresses: [x, y]}, {nic: b, ipv4: [p]}]", 2,
		 0, 2},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *of_pod = str_printf("metadata: {annotations: {%s}}", cases[i].pod);
		auto_free char *of_namespace =
			str_printf("metadata: {annotations: {%s}}", cases[i].namespace);
		json_auto_t *pod = yaml(of_pod), *namespace = yaml(of_namespace);
		json_auto_t *asks = yaml(cases[i].asks);
		struct candidate_names meant =
			candidates_visit_names(pod, namespace, asks, ignore, NULL);

		assert_int_equal(meant.names, cases[i].names);
		assert_int_equal(meant.open_asks, cases[i].open_asks);
		assert_int_equal(meant.masters, cases[i].masters);
	}
}

/* Users may write what an agent asks, and each is compared with each pool. */
TEST(addresses_of_a_pf_have_a_bound)
{
	json_auto_t *world = world_of_many(2), *pod = yaml("metadata: {namespace: ml}");
	json_auto_t *masters = json_array();
	json_auto_t *ask = json_pack("{s:s, s:[s], s:O}", "nic", "net1", "ipv4", "pool-1",
				     "masterAddresses", masters);
	json_auto_t *wants = NULL, *more = NULL;
	struct err err = {0};

	for (int i = 0; i < LIMIT_MASTER_ADDRESSES; i++)
		json_array_append_new(masters, json_string("10.0.0.1"));
	wants = candidates_find(world, pod, ask, &settings, NULL, &err);
	assert_int_equal(json_array_size(wants), 1);
	json_array_append_new(masters, json_string("10.0.0.1"));
	more = candidates_find(world, pod, ask, &settings, NULL, &err);
	assert_null(more);
	assert_string_equal(err.reason, "TooLarge");
}

TEST(names_and_patterns_have_a_bound)
{
	json_auto_t *world = world_of_many(100);
	auto_free char *names = list_of("pool-", LIMIT_POOL_NAMES);
	auto_free char *more_names = list_of("pool-", LIMIT_POOL_NAMES + 1);
	auto_free char *patterns = list_of("[x]", LIMIT_POOL_PATTERNS);
	auto_free char *more_patterns = list_of("[x]", LIMIT_POOL_PATTERNS + 1);
	const struct {
		const char *text;
		bool fits;
	} cases[] = {{names, true}, {more_names, false}, {patterns, true}, {more_patterns, false}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got =
			found(world, IPAM_ANNOTATION_POOL, cases[i].text, NULL, "net1");

		assert_int_equal(strcmp(got, "TooLarge") != 0, cases[i].fits);
	}
}

TEST(what_all_nics_may_choose_from_has_a_bound)
{
	json_auto_t *world = world_of_many(500), *memo = json_object();
	size_t fits = LIMIT_CANDIDATES / 500;

	for (size_t i = 0; i <= fits; i++) {
		auto_free char *nic = str_printf("net%zu", i + 1);
		auto_free char *got =
			found(world, IPAM_ANNOTATION_POOL, "{\"ipv4\": [\"*\"]}", memo, nic);

		assert_int_equal(strcmp(got, "TooLarge") == 0, i == fits);
	}
	/* The pattern was compared once, whatever the number of NICs. */
	assert_int_equal(json_object_size(json_at(memo, "patterns")), 1);
}

/* A bracket that is missing somewhere in a long annotation is found by its place alone. */
TEST(what_is_no_json_is_named_with_its_place)
{
	static const char *const texts[] = {
		"[{\"ipv4\": [\"a1\"}]",
		"[{\"interface\": \"net1\", \"ipv4\": [\"a-pool-with-a-name\", "
		"\"another-pool-with-a-name\", \"and-one-more-of-them\"}]"};
	static const char *const annotations[] = {IPAM_ANNOTATION_POOLS, IPAM_ANNOTATION_POOL,
						  IPAM_ANNOTATION_ROUTES, IPAM_ANNOTATION_NS_IPV4,
						  IPAM_ANNOTATION_NS_IPV6};
	json_auto_t *ask = json_pack("{s:s}", "nic", "net1");

	for (size_t i = 0; i < ARRAY_LEN(annotations) * ARRAY_LEN(texts); i++) {
		const char *name = annotations[i / ARRAY_LEN(texts)];
		const char *text = texts[i % ARRAY_LEN(texts)];
		json_auto_t *object = json_pack("{s:{s:s, s:s, s:{s:s}}}", "metadata", "name", "ml",
						"namespace", "ml", "annotations", name, text);
		json_auto_t *world = json_pack("{s:{s:O}}", "namespaces", "ml", object);
		auto_free char *place = str_printf("line 1, column %zu: ", strlen(text) - 1);
		json_auto_t *got = NULL;
		struct err err = {0};

		got = str_eq(name, IPAM_ANNOTATION_ROUTES)
			      ? allocation_routes(object, &err)
			      : candidates_find(world, object, ask, &settings, NULL, &err);
		if (got || !str_eq(err.reason, "WrongAnnotation") || !strstr(err.text, place))
			fail_msg("%s: %s", name, err.text);
	}
}

TEST(a_pod_has_no_more_items_than_nics)
{
	json_auto_t *world = world_of_many(1);
	auto_strbuf struct strbuf text = {0};
	auto_free char *got = NULL;

	strbuf_adds(&text, "[{}");
	for (int i = 0; i < LIMIT_NETWORKS + 1; i++)
		strbuf_adds(&text, ",{}");
	strbuf_adds(&text, "]");
	got = found(world, IPAM_ANNOTATION_POOLS, strbuf_str(&text), NULL, "net1");
	assert_string_equal(got, "TooLarge");
}

/* ---- what a definition says is read once ----------------------------------------------------- */

static json_t *asks_for(const json_t *nad, struct err *err)
{
	json_auto_t *world = json_pack("{s:{s:O}}", "network-attachment-definitions", "ml/a", nad);
	json_auto_t *pod = json_pack("{s:{s:s, s:{s:s}}}", "metadata", "namespace", "ml",
				     "annotations", "k8s.v1.cni.cncf.io/networks", "a,a");
	json_auto_t *unknown = NULL;

	return foresee(world, pod, &settings, &unknown, err);
}

TEST(a_definition_is_read_at_the_door)
{
	json_auto_t *nad = json_pack(
		"{s:{s:s, s:s}, s:{s:s}}", "metadata", "name", "a", "namespace", "ml", "spec",
		"config",
		"{\"ipam\": {\"type\": \"spiderpool\", \"default_ipv4_ippool\": [\"p\"]}}");
	json_auto_t *before = asks_for(nad, NULL), *after = NULL;

	foresight_project(nad);
	/* Whoever parses it again finds nothing. */
	json_put_str(json_at(nad, "spec"), "config", "");
	after = asks_for(nad, NULL);
	assert_int_equal(json_array_size(before), 2);
	assert_true(json_same(before, after));
}

/* As the plugin reads it on the node: the leader would give an address of another pool. */
TEST(keys_of_a_definition_may_be_in_any_case)
{
	static const char *const configs[] = {
		"{\"ipam\": {\"type\": \"spiderpool\", \"Default_IPv4_IPPool\": [\"p\"]}}",
		"{\"IPAM\": {\"Type\": \"spiderpool\", \"DEFAULT_IPV4_IPPOOL\": [\"p\"],"
		" \"default_ipv6_ippool\": null}}",
		"{\"plugins\": [{\"Ipam\": {\"type\": \"spiderpool\", \"default_ipv4_ippool\":"
		" [\"q\"], \"Default_ipv4_ippool\": [\"p\"]}}]}",
	};

	for (size_t i = 0; i < ARRAY_LEN(configs); i++) {
		json_auto_t *nad = json_pack("{s:{s:s, s:s}, s:{s:s}}", "metadata", "name", "a",
					     "namespace", "ml", "spec", "config", configs[i]);
		json_auto_t *asks = asks_for(nad, NULL);
		const json_t *ask = json_find(asks, "network", "ml/a");

		assert_non_null(ask);
		assert_string_equal(json_string_value(json_array_get(json_at(ask, "ipv4"), 0)),
				    "p");
	}
}

TEST(a_definition_that_is_too_large_is_named)
{
	auto_strbuf struct strbuf nodes = {0};
	json_auto_t *marked =
		json_pack("{s:{s:s}, s:{s:i}}", "metadata", "name", "a", "spec", "config", 1400000);
	json_auto_t *nad = NULL;

	strbuf_adds(&nodes, "{\"a\":[{}");
	for (int i = 0; i < LIMIT_JSON_NODES; i++)
		strbuf_adds(&nodes, ",{}");
	strbuf_adds(&nodes, "]}");
	nad = json_pack("{s:{s:s}, s:{s:s}}", "metadata", "name", "a", "spec", "config",
			strbuf_str(&nodes));
	for (int i = 0; i < 4; i++) {
		struct err err = {0};
		json_auto_t *asks = asks_for(i % 2 ? nad : marked, &err);

		assert_null(asks);
		assert_string_equal(err.reason, "TooLarge");
		assert_non_null(strstr(err.text, "ml/a, spec.config"));
		foresight_project(i % 2 ? nad : marked);
	}
}
