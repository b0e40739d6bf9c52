// SPDX-License-Identifier: Apache-2.0
/* The annotation of networks in both grammars. */
#include "tests/support/test.h"

#include "lib/json/json.h"
#include "reconcilers/core/limits.h"
#include "reconcilers/core/networks.h"

/* "ns/name@interface ns/name@interface", or the error's text in parentheses. */
static char *parsed(const char *text)
{
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};
	json_auto_t *list = networks_parse(text, "ml", &err);
	json_t *network;
	size_t i;

	if (!list)
		return str_printf("(%s)", err.reason);
	json_array_foreach (list, i, network)
		strbuf_addf(&out, "%s%s/%s@%s", i ? " " : "", json_str_at(network, "namespace"),
			    json_str_at(network, "name"), json_str_at(network, "interface"));
	return strbuf_take(&out);
}

TEST(reads_both_grammars)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{"", ""},
		{" \n", ""},
		{"rail1", "ml/rail1@net1"},
		{"rail1, kube-system/rail2@roce0 ,rail3",
		 "ml/rail1@net1 kube-system/rail2@roce0 ml/rail3@net3"},
		{"[{\"name\":\"rail1\"},{\"name\":\"r.2\",\"namespace\":\"x\",\"interface\":\"a\"}"
		 "]",
		 "ml/rail1@net1 x/r.2@a"},
		{"[{\"name\":\"r\",\"mac\":\"02:00:00:00:00:01\",\"infiniband-guid\":"
		 "\"02:00:00:00:00:00:00:01\"}]",
		 "ml/r@net1"},
		{"[{\"name\":\"r\",\"interfaceRequest\":\"roce0\",\"mac\":\"02-00-00-00-00-01\"}]",
		 "ml/r@roce0"},
		{"[]", ""},
		/* Keys in any case, the last one counts, null for nothing, as Go decodes. */
		{"[{\"Name\":\"r\",\"NameSpace\":\"x\",\"INTERFACE\":\"a\"}]", "x/r@a"},
		{"[{\"name\":\"r\",\"namespace\":\"x\",\"Namespace\":\"y\"}]", "y/r@net1"},
		{"[{\"name\":\"r\",\"namespace\":null,\"ips\":null,\"mac\":null}]", "ml/r@net1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = parsed(cases[i].text);

		assert_string_equal(got, cases[i].want);
	}
}

/* `n` times `item`, `between` them, in `around`. */
static char *many(const char *around, const char *item, const char *between, size_t n)
{
	auto_strbuf struct strbuf text = {0};

	if (*around)
		strbuf_addf(&text, "%c", around[0]);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&text, "%s%s", i ? between : "", item);
	if (*around)
		strbuf_addf(&text, "%c", around[1]);
	return strbuf_take(&text);
}

TEST(reads_no_more_networks_than_a_pod_can_have)
{
	static const struct {
		const char *around, *item, *between;
		size_t most;
	} cases[] = {
		{"", "net-0", ",", LIMIT_NETWORKS},
		{"", "a", " , ", LIMIT_NETWORKS},
		{"[]", "{\"name\":\"a\"}", ",", LIMIT_NETWORKS},
		/* Blanks, and JSON that is no list of networks. */
		{"", " ", "", LIMIT_ANNOTATION_BYTES},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t more = 0; more < 2; more++) {
			auto_free char *text = many(cases[i].around, cases[i].item,
						    cases[i].between, cases[i].most + more);
			auto_free char *got = parsed(text);

			assert_int_equal(strcmp(got, "(TooLarge)") == 0, more);
		}
	}
}

TEST(builds_nothing_from_json_that_is_too_large)
{
	auto_free char *empty = many("[]", "{}", ",", 2000);
	auto_free char *deep = many("", "[", "", 5000);
	auto_free char *got_empty = parsed(empty), *got_deep = parsed(deep);

	assert_string_equal(got_empty, "(TooLarge)");
	assert_string_equal(got_deep, "(TooLarge)");
}

TEST(numbers_behind_networks_that_every_pod_has)
{
	struct err err = {0};
	json_auto_t *list = networks_parse_from("rail1,rail2@a,rail3", "ml", 4, &err);

	assert_string_equal(json_str_at(json_array_get(list, 0), "interface"), "net4");
	assert_string_equal(json_str_at(json_array_get(list, 1), "interface"), "a");
	assert_string_equal(json_str_at(json_array_get(list, 2), "interface"), "net6");
}

TEST(refuses_what_no_network_can_be)
{
	static const char *const cases[] = {
		"Rail1",
		"-rail",
		"a//b",
		"rail1@",
		"rail1@an-interface-too-long",
		"rail1@a/b",
		"rail1@a@b",
		",",
		"a,,b",
		"r.2",
		"a b",
		"a\tb",
		"a,b c",
		"ml/a b@eth1",
		"[",
		"{\"name\":\"r\"}",
		"[{}]",
		"[7]",
		"[{\"name\":\"\"}]",
		"[{\"name\":\"r\",\"interface\":\"a b\"}]",
		"[{\"name\":\"r\",\"mac\":\"02:00\"}]",
		"[{\"name\":\"r\",\"mac\":\"02:00:00:00:00:0g\"}]",
		"[{\"name\":\"r\",\"infiniband-guid\":\"02:00:00:00:00:01\"}]",
		"[{\"name\":\"r\",\"Mac\":\"02:00\"}]",
		/* Values of another type: a setting that is asked for must not be missing. */
		"[{\"name\":7}]",
		"[{\"name\":\"r\",\"namespace\":7}]",
		"[{\"name\":\"r\",\"interface\":[\"a\"]}]",
		"[{\"name\":\"r\",\"mac\":2}]",
		"[{\"name\":\"r\",\"ips\":\"10.0.0.1\"}]",
		"[{\"name\":\"r\",\"default-route\":\"10.0.0.1\"}]",
		"[{\"name\":\"r\",\"cni-args\":[]}]",
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got = parsed(cases[i]);

		assert_string_equal(got, "(BadNetworks)");
	}
}

TEST(keeps_what_else_an_element_says)
{
	json_auto_t *list =
		networks_parse("[{\"name\":\"r\",\"ips\":[\"10.0.0.1/24\"]}]", "ml", NULL);

	assert_string_equal(
		json_string_value(json_array_get(json_at(json_array_get(list, 0), "ips"), 0)),
		"10.0.0.1/24");
}

TEST(tells_of_a_blank_that_stands_for_a_comma)
{
	struct err err = {0};

	assert_null(networks_parse("net-a, net-b net-c", "ml", &err));
	assert_string_equal(err.text, "network 2: \"net-b net-c\" has a blank within; separate "
				      "networks by commas");
}

TEST(tells_line_and_column_of_json_that_cannot_be_read)
{
	struct err err = {0};

	assert_null(networks_parse("[{\"name\":\"a\"},\n {\"name\" \"b\"}]", "ml", &err));
	assert_non_null(strstr(err.text, "line 2"));
}
