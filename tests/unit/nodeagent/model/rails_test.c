// SPDX-License-Identifier: Apache-2.0
/* Which port of a node is which rail: each source of an order, gaps, and NICs that come and go. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/model/rails.h"
#include "tests/support/yaml.h"

#define NIC(name, bus)                                                                             \
	"{'pciAddress': '0000:" bus ":00.0', 'name': '" name "', 'altNames': ['" name "alt'], "    \
	"'host': {'rdma': ['mlx5_" bus "']}}, "
#define PLAIN "{'pciAddress': '0000:05:00.0', 'name': 'eno1', 'host': {'rdma': []}}, "
#define NEEDED                                                                                     \
	"{'pciAddress': '0000:06:00.0', 'name': 'eno2', 'host': {'rdma': ['mlx5_9'], "             \
	"'protected': 'carries the default route'}}, "
#define BOOT(boot, nics) "{'interfaces': [" nics "], 'node': {'bootId': '" boot "'}}"
#define SEEN(nics)       BOOT("one", nics)

/* The result of the look before; NULL: there was none. */
static json_t *last;

static int forget(void **state)
{
	json_decref(last);
	last = NULL;
	return 0;
}

/* Borrowed until the next call. */
static const json_t *decide(const char *observed_text, const char *wanted_text)
{
	json_auto_t *observed = yaml(observed_text), *wanted = yaml(wanted_text), *before = last;
	json_auto_t *unchanged = json_deep_copy(observed);

	last = rails_decide(observed, wanted, json_at(before, "rails"));
	assert_true(json_same(observed, unchanged));
	return last;
}

/*
 * "0 a, 1 b-": rails with names, a dash behind those that are missing; then the reasons of
 * problems. The field `rail` of interfaces agrees with the list.
 */
static void shows(const json_t *result, const char *want)
{
	auto_strbuf struct strbuf text = {0};
	const json_t *entry;
	int64_t there = 0;
	size_t i;

	json_array_foreach (json_at(result, "rails", "list"), i, entry) {
		const char *name = json_str_or(json_at(entry, "name"), "?");
		const json_t *port = json_find(json_at(result, "interfaces"), "name", name);
		bool is_missing = json_at(entry, "missing") != NULL;

		strbuf_addf(&text, "%s%lld %s%s", i ? ", " : "",
			    (long long)json_integer_value(json_at(entry, "rail")), name,
			    is_missing ? "-" : "");
		there += !is_missing;
		if (port && !is_missing)
			assert_true(json_same(json_at(port, "rail"), json_at(entry, "rail")));
	}
	assert_int_equal(json_integer_value(json_at(result, "rails", "count")), there);
	json_array_foreach (json_at(result, "rails", "problems"), i, entry)
		strbuf_addf(&text, " %s", json_str_at(entry, "reason"));
	assert_string_equal(strbuf_str(&text), want);
}

TEST_WITH(counts_rdma_ports_by_pci_address_where_nothing_gives_an_order, NULL, forget)
{
	const json_t *result =
		decide(SEEN(NIC("c", "af") PLAIN NEEDED NIC("b", "1b") NIC("a", "0b")), NULL);

	shows(result, "0 a, 1 b, 2 c");
	assert_string_equal(json_str_at(result, "rails", "from"), RAILS_BY_PCI);
	assert_null(json_at(json_find(json_at(result, "interfaces"), "name", "eno1"), "rail"));
	assert_null(json_at(json_find(json_at(result, "interfaces"), "name", "eno2"), "rail"));
}

TEST_WITH(sorts_domains_before_buses, NULL, forget)
{
	shows(decide("{'interfaces': [{'pciAddress': '0010:01:00.0', 'name': 'x', 'host': {'rdma': "
		     "['m']}}, {'pciAddress': '0000:81:00.0', 'name': 'y', 'host': {'rdma': "
		     "['n']}}]}",
		     NULL),
	      "0 y, 1 x");
}

TEST_WITH(a_policy_puts_its_nics_first, NULL, forget)
{
	/* By name, alternative name and address; names of other nodes are passed over. */
	shows(decide(SEEN(NIC("a", "0b") NIC("b", "1b") NIC("c", "af") NIC("d", "b0")),
		     "{'from': 'SriovNetworkNodePolicy x/y', 'order': ['other', 'c', 'balt', "
		     "'c', '0000:b0:00.0']}"),
	      "0 c, 1 b, 2 d, 3 a");
	assert_string_equal(json_str_at(last, "rails", "from"), "SriovNetworkNodePolicy x/y");
	/* Also one without RDMA, and one that the node needs: the administrator knows. */
	forget(NULL);
	shows(decide(SEEN(NIC("a", "0b") PLAIN NEEDED), "{'from': 'x', 'order': ['eno2', 'eno1']}"),
	      "0 eno2, 1 eno1, 2 a");
}

TEST_WITH(an_exact_list_is_the_numbers, NULL, forget)
{
	shows(decide(SEEN(NIC("a", "0b") NIC("b", "1b") NIC("c", "af")),
		     "{'from': 'P', 'exact': true, 'order': ['c', 'a']}"),
	      "0 c, 1 a");
	assert_null(json_at(json_find(json_at(last, "interfaces"), "name", "b"), "rail"));
}

TEST_WITH(an_address_may_be_spelled_as_tools_print_it, NULL, forget)
{
	shows(decide(SEEN(NIC("a", "0b") NIC("b", "1b")),
		     "{'from': 'P', 'exact': true, 'order': ['00000000:1B:00.0', '0000:0B:00.0', "
		     "'0000:1b:00.0', '00000000:AF:00.0']}"),
	      "0 b, 1 a, 3 ?- RailTwice RailNotFound");
	assert_string_equal(
		json_str_at(json_array_get(json_at(last, "rails", "list"), 2), "pciAddress"),
		"0000:af:00.0");
}

TEST_WITH(says_what_is_wrong_in_an_exact_list, NULL, forget)
{
	const json_t *problems;

	shows(decide(SEEN(NIC("a", "0b") NIC("b", "1b")),
		     "{'from': 'pool x', 'exact': true, 'order': ['a', 'ens9', 'aalt', 'b', "
		     "'0000:99:00.0']}"),
	      "0 a, 1 ens9-, 3 b, 4 ?- RailNotFound RailTwice RailNotFound");
	problems = json_at(last, "rails", "problems");
	assert_string_equal(json_str_at(json_array_get(problems, 0), "message"),
			    "rail 1: \"ens9\" of pool x is not a NIC of the node; bring the NIC "
			    "back, or name the one that it has there");
	assert_string_equal(json_str_at(json_array_get(problems, 1), "message"),
			    "rail 2: \"aalt\" of pool x is NIC a, which is rail 0 already; list "
			    "each NIC once");
	assert_string_equal(json_str_at(json_array_get(problems, 2), "pf"), "0000:99:00.0");
}

TEST_WITH(the_others_keep_their_rails_when_a_nic_vanishes, NULL, forget)
{
	static const char *const orders[] = {NULL, "{'from': 'P', 'order': ['a', 'b', 'c']}"};

	for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
		forget(NULL);
		decide(SEEN(NIC("a", "0b") NIC("b", "1b") NIC("c", "af")), orders[i]);
		for (int k = 0; k < 2; k++)
			shows(decide(SEEN(NIC("a", "0b") NIC("c", "af")), orders[i]),
			      "0 a, 1 b-, 2 c RailMissing");
		shows(decide(SEEN(NIC("a", "0b") NIC("b", "1b") NIC("c", "af")), orders[i]),
		      "0 a, 1 b, 2 c");
		/* Also one whose RDMA device is away, or that the node has come to need. */
		shows(decide("{'interfaces': [" NIC("a", "0b") "{'pciAddress': '0000:1b:00.0', "
							       "'name': 'b', 'host': {'rdma': [], "
							       "'protected': 'x'}}, " NIC(
								       "c", "af") "], 'node': "
										  "{'bootId': "
										  "'one'}}",
			     orders[i]),
		      "0 a, 1 b, 2 c");
		/* A boot is when machines are rebuilt. */
		shows(decide(BOOT("two", NIC("a", "0b") NIC("c", "af")), orders[i]), "0 a, 1 c");
	}
}

TEST_WITH(another_order_forgets_what_was_there, NULL, forget)
{
	decide(SEEN(NIC("a", "0b") NIC("b", "1b")), NULL);
	shows(decide(SEEN(NIC("b", "1b")), "{'from': 'P', 'order': ['b']}"), "0 b");
}

TEST_WITH(a_policy_is_renamed_while_a_nic_is_away, NULL, forget)
{
	static const char *const orders[] = {
		"{'from': 'SriovNetworkNodePolicy x/rail0 and 2 more', 'order': ['c', 'b', 'a']}",
		"{'from': 'SriovNetworkNodePolicy x/first and 2 more', 'order': ['c', 'b', 'a']}",
		/* Deleted, then there again by another name. */
		"{'from': 'SriovNetworkNodePolicy x/rail1 and 1 more', 'order': ['b', 'a']}",
		"{'from': 'SriovNetworkNodePolicy x/first and 2 more', 'order': ['c', 'b', 'a']}",
	};
	static const char *const rails[] = {
		"0 c, 1 b-, 2 a RailMissing",
		"0 c, 1 b-, 2 a RailMissing",
		"0 b-, 1 a, 2 c RailMissing",
		"0 c, 1 b-, 2 a RailMissing",
	};

	decide(SEEN(NIC("a", "0b") NIC("b", "1b") NIC("c", "af")), orders[0]);
	for (size_t i = 0; i < ARRAY_LEN(orders); i++)
		shows(decide(SEEN(NIC("a", "0b") NIC("c", "af")), orders[i]), rails[i]);
}

TEST_WITH(a_nic_that_is_renamed_keeps_its_rail, NULL, forget)
{
	static const char order[] = "{'from': 'P', 'order': ['b', 'a']}";

	decide(SEEN(NIC("a", "0b") NIC("b", "1b")), order);
	for (int i = 0; i < 2; i++) {
		shows(decide(SEEN(NIC("a", "0b") NIC("z", "1b")), order), "0 b, 1 a");
		assert_int_equal(
			json_integer_value(json_at(
				json_find(json_at(last, "interfaces"), "name", "z"), "rail")),
			0);
	}
	/* Another NIC that is called so now is what the policy names. */
	shows(decide(SEEN(NIC("b", "0b") NIC("z", "1b")), order), "0 b, 1 z");
}

TEST_WITH(gaps_of_an_exact_list_are_not_counted_without_it, NULL, forget)
{
	decide(SEEN(NIC("a", "0b")),
	       "{'from': 'P', 'exact': true, 'order': ['0000:99:00.0', 'a']}");
	shows(last, "0 ?-, 1 a RailNotFound");
	shows(decide(SEEN(NIC("a", "0b") NIC("b", "1b")), "{'from': 'Q', 'order': ['b']}"),
	      "0 b, 1 a");
}

TEST_WITH(a_nic_that_is_away_for_a_moment_has_its_rail, NULL, forget)
{
	decide(SEEN(NIC("a", "0b") NIC("b", "1b")), NULL);
	shows(decide("{'interfaces': [" NIC("b", "1b") "], 'missing': [" NIC(
			     "a", "0b") "], 'node': {'bootId': 'one'}}",
		     NULL),
	      "0 a, 1 b");
	assert_int_equal(
		json_integer_value(json_at(json_array_get(json_at(last, "missing"), 0), "rail")),
		0);
}

TEST_WITH(a_node_has_at_most_so_many, NULL, forget)
{
	json_auto_t *observed = json_pack("{s:[]}", "interfaces"), *result = NULL;

	for (int i = 0; i <= RAILS_MAX; i++)
		json_array_append_new(json_at(observed, "interfaces"),
				      json_pack("{s:o, s:o, s:{s:[s]}}", "pciAddress",
						json_fmt("0000:%02x:00.0", (unsigned int)i), "name",
						json_fmt("n%d", i), "host", "rdma", "m"));
	result = rails_decide(observed, NULL, NULL);
	assert_int_equal(json_integer_value(json_at(result, "rails", "count")), RAILS_MAX);
	assert_string_equal(
		json_str_at(json_array_get(json_at(result, "rails", "problems"), 0), "reason"),
		"RailsTooMany");
	assert_int_equal(json_array_size(json_at(result, "rails", "problems")), 1);
}
