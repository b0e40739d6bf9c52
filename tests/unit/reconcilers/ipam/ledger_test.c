// SPDX-License-Identifier: Apache-2.0
/* Ledgers: what is free, what rests, whose records are whose. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/ipam/allocate/allocate.h"
#include "reconcilers/ipam/ledger.h"
#include "tests/support/yaml.h"

#define POOL                                                                                       \
	"metadata: {name: p}\n"                                                                    \
	"spec: {ipVersion: 4, subnet: 10.0.0.0/24, ips: [10.0.0.1-10.0.0.4], excludeIPs: "         \
	"[10.0.0.3]}\n"

#define HOLDER(pod_, uid_) (&(struct ledger_holder){(pod_), (uid_), "w1"})

static void assert_next(const struct ledger *ledger, const char *want)
{
	char address[IP_TEXT_SIZE] = "";

	if (!want) {
		assert_false(ledger_next(ledger, address));
		return;
	}
	assert_true(ledger_next(ledger, address));
	assert_string_equal(address, want);
}

TEST(hands_out_the_address_that_was_free_longest)
{
	json_auto_t *pool = yaml(POOL);
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_next(&ledger, "10.0.0.1");
	assert_true(ledger_take_this(&ledger, "10.0.0.1", HOLDER("ml/a", "u1")));
	assert_true(ledger_release(&ledger, "10.0.0.1", NULL, "u1", true));
	assert_next(&ledger, "10.0.0.2");
	assert_true(ledger_take_this(&ledger, "10.0.0.2", HOLDER("ml/b", "u2")));
	assert_true(ledger_take_this(&ledger, "10.0.0.4", HOLDER("ml/c", "u3")));
	assert_true(ledger_release(&ledger, "10.0.0.2", NULL, "u2", true));
	/* Both rest now: the one that was given back first. */
	assert_next(&ledger, "10.0.0.1");
	assert_true(ledger_take_this(&ledger, "10.0.0.1", HOLDER("ml/d", "u4")));
	assert_next(&ledger, "10.0.0.2");
	assert_true(ledger_take_this(&ledger, "10.0.0.2", HOLDER("ml/e", "u5")));
	assert_next(&ledger, NULL);
}

/* RFC 4291, 2.5.5.2: no node has them, and ip_parse() takes them for IPv4. */
TEST(hands_out_no_ipv4_address_in_ipv6)
{
	json_auto_t *pool = yaml("{metadata: {name: p}, spec: {ipVersion: 6, subnet: '::/64', ips: "
				 "['::fffe:ffff:ffff-::1:0:0:0']}}");
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_next(&ledger, "::fffe:ffff:ffff");
	assert_true(ledger_take_this(&ledger, "::fffe:ffff:ffff", HOLDER("ml/a", "u1")));
	assert_next(&ledger, "::1:0:0:0");
}

TEST(rests_over_a_write_and_a_read)
{
	json_auto_t *pool = yaml(POOL);
	auto_ledger struct ledger before = {0}, after = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &before, NULL), 0);
	assert_true(ledger_take_this(&before, "10.0.0.1", HOLDER("ml/a", "u1")));
	assert_true(ledger_release(&before, "10.0.0.1", NULL, "u1", true));
	json_put(pool, "status", ledger_status(&before));
	assert_int_equal(ledger_open(pool, NULL, NULL, &after, NULL), 0);
	assert_next(&after, "10.0.0.2");
}

TEST(gives_back_only_what_the_uid_has)
{
	json_auto_t *pool =
		yaml(POOL "status: {allocatedIPs: '{\"10.0.0.1\": {pod: ml/a, podUid: u1}}'}\n");
	auto_ledger struct ledger ledger = {0};

	json_put_str(json_object_get(pool, "status"), "allocatedIPs",
		     "{\"10.0.0.1\":{\"pod\":\"ml/a\",\"podUid\":\"u1\"}}");
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_false(ledger_release(&ledger, "10.0.0.1", NULL, "u2", true));
	assert_false(ledger_release(&ledger, "10.0.0.2", NULL, "u1", true));
	assert_false(ledger_take_this(&ledger, "10.0.0.1", HOLDER("ml/b", "u2")));
	assert_false(ledger.has_changed);
	assert_true(ledger_release(&ledger, "10.0.0.1", NULL, "u1", true));
	assert_true(ledger.has_changed);
}

TEST(keeps_back_what_is_reserved)
{
	json_auto_t *pool = yaml(POOL);
	json_auto_t *reserved = yaml("{r: {spec: {ipVersion: 4, ips: [10.0.0.1-10.0.0.2]}},"
				     " six: {spec: {ipVersion: 6, ips: [nonsense]}}}");
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, reserved, NULL, &ledger, NULL), 0);
	assert_next(&ledger, "10.0.0.4");
	/* A record from before the reservation comes back to nobody. */
	assert_true(ledger_take_this(&ledger, "10.0.0.1", HOLDER("ml/a", "u1")));
	assert_true(ledger_release(&ledger, "10.0.0.1", NULL, "u1", true));
	assert_true(ledger_take_this(&ledger, "10.0.0.4", HOLDER("ml/b", "u2")));
	assert_next(&ledger, NULL);
}

TEST(fails_closed_when_something_cannot_be_read)
{
	static const struct {
		const char *pool, *reserved, *reason;
	} cases[] = {
		{"{metadata: {name: p}, spec: {}}", NULL, "NoSubnet"},
		{"{metadata: {name: p}, spec: {subnet: 10.0.0.0/33}}", NULL, "BadSubnet"},
		{"{metadata: {name: p}, spec: {ipVersion: 4, subnet: 10.0.0.0/24, ips: [], "
		 "excludeIPs: [x]}}",
		 NULL, "BadRange"},
		{"{metadata: {name: p}, spec: {ipVersion: 4, subnet: 10.0.0.0/24, ips: [], "
		 "excludeIPs: [7]}}",
		 NULL, "BadField"},
		{POOL, "{r: {spec: {ipVersion: 4, ips: [10.0.0.300]}}}", "BadReservedIP"},
		{POOL "status: {allocatedIPs: '{'}", NULL, "BadAllocationRecord"},
		{POOL "status: {allocatedIPs: ''}", NULL, "BadAllocationRecord"},
		{POOL "status: {allocatedIPs: '[]'}", NULL, "BadAllocationRecord"},
		{POOL "status: {allocatedIPs: '{\"x\": {}}'}", NULL, "BadAllocationRecord"},
		{POOL "status: {allocatedIPs: '{\"10.0.0.1\": 7}'}", NULL, "BadAllocationRecord"},
		{POOL "status: {allocatedIPs: '{\"fd00::1\": {}}'}", NULL, "BadAllocationRecord"},
		/* The nodes of such a text are not put into what is no record. */
		{POOL "status: {allocatedIPs: '{\"10.0.0.1\":5}', allocatedNodes: '03880fde a W'}",
		 NULL, "BadAllocationRecord"},
		/* Which of the two pods has it? */
		{"{metadata: {name: p}, spec: {ipVersion: 6, subnet: 'fd00::/64', ips: "
		 "['fd00::1-fd00::9']}, status: {allocatedIPs: '{\"fd00::1\": {}, \"FD00:0::1\": "
		 "{}}'}}",
		 NULL, "BadAllocationRecord"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pool = yaml(cases[i].pool);
		json_auto_t *reserved = yaml(cases[i].reserved);
		struct ledger ledger = {0};
		struct err err = {0};

		assert_int_equal(ledger_open(pool, reserved, NULL, &ledger, &err), -1);
		assert_string_equal(err.reason, cases[i].reason);
		assert_null(ledger.records);
	}
}

TEST(leaves_others_fields_of_the_status_alone)
{
	json_auto_t *pool =
		yaml(POOL "status: {totalIPCount: 3, conditions: [], allocatedIPCount: -1}");
	json_auto_t *want =
		yaml("{totalIPCount: 3, conditions: [], allocatedIPCount: 0, freeIPCount: 3}");
	json_auto_t *status = NULL;
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	status = ledger_status(&ledger);
	assert_true(json_same(status, want));
}

TEST(a_large_pool_costs_what_a_small_one_costs)
{
	json_auto_t *pool = yaml("metadata: {name: p}\n"
				 "spec: {ipVersion: 6, subnet: 'fd00::/64', ips: "
				 "['fd00::-fd00::ffff:ffff:ffff:ffff'],"
				 " excludeIPs: ['fd00::-fd00::ffff:ffff:ffff']}");
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_int_equal(ledger.free.len, 1);
	assert_next(&ledger, "fd00::1:0:0:0");
}

/* An hour before, and after. */
#define SEEN  "2026-07-08T09:00:00Z"
#define THEN  "2026-07-08T09:59:59Z"
#define LATER "2026-07-08T10:00:00Z"

TEST(nobody_gets_an_address_in_conflict_until_its_time_is_over)
{
	json_auto_t *pool = yaml(POOL), *status = NULL;
	auto_ledger struct ledger found = {0}, then = {0}, later = {0};

	assert_int_equal(ledger_open(pool, NULL, SEEN, &found, NULL), 0);
	ledger_note_conflict(&found, "10.0.0.1", "02:00:00:00:00:01", HOLDER("ml/a", "u1"), SEEN);
	/* Excluded, and not the pool's. */
	ledger_note_conflict(&found, "10.0.0.3", "02:00:00:00:00:01", HOLDER("ml/a", "u1"), SEEN);
	ledger_note_conflict(&found, "10.0.0.9", "02:00:00:00:00:01", HOLDER("ml/a", "u1"), SEEN);
	assert_true(found.has_changed);
	assert_next(&found, "10.0.0.2");
	status = ledger_status(&found);
	assert_int_equal(json_integer_value(json_at(status, "conflictIPCount")), 1);
	assert_int_equal(json_integer_value(json_at(status, "freeIPCount")), 2);
	json_put(pool, "status", json_incref(status));

	assert_int_equal(ledger_open(pool, NULL, THEN, &then, NULL), 0);
	assert_next(&then, "10.0.0.2");
	assert_int_equal(ledger_open(pool, NULL, LATER, &later, NULL), 0);
	/* It is the last one to be tried again. */
	assert_next(&later, "10.0.0.2");
	assert_true(ledger_take_this(&later, "10.0.0.2", HOLDER("ml/a", "u1")));
	assert_true(ledger_take_this(&later, "10.0.0.4", HOLDER("ml/b", "u2")));
	assert_next(&later, "10.0.0.1");
	json_decref(status);
	status = ledger_status(&later);
	assert_null(json_at(status, "conflictIPs"));
	assert_null(json_at(status, "conflictIPCount"));
}

TEST(who_has_an_address_in_conflict_keeps_it_and_nobody_gets_it_after)
{
	json_auto_t *pool = yaml(POOL);
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, NULL, SEEN, &ledger, NULL), 0);
	assert_true(ledger_take_this(&ledger, "10.0.0.1", HOLDER("ml/a", "u1")));
	ledger_note_conflict(&ledger, "10.0.0.1", "02:00:00:00:00:01", HOLDER("ml/a", "u1"), SEEN);
	assert_non_null(ledger_record(&ledger, "10.0.0.1"));
	assert_true(ledger_release(&ledger, "10.0.0.1", NULL, "u1", true));
	assert_next(&ledger, "10.0.0.2");
	assert_int_equal(json_array_size(ledger.resting), 0);
}

TEST(a_conflict_that_goes_on_is_written_once_in_half_its_time)
{
	json_auto_t *pool = yaml(POOL "status: {conflictIPs: [{ip: 10.0.0.1, mac: "
				      "'02:00:00:00:00:01', node: w1, seen: '" SEEN "'}]}\n");
	static const struct {
		const char *mac, *now;
		bool is_written;
	} rows[] = {
		{"02:00:00:00:00:01", "2026-07-08T09:29:59Z", false},
		{"02:00:00:00:00:02", "2026-07-08T09:29:59Z", true},
		{"02:00:00:00:00:01", "2026-07-08T09:30:00Z", true},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_ledger struct ledger ledger = {0};

		assert_int_equal(ledger_open(pool, NULL, rows[i].now, &ledger, NULL), 0);
		ledger_note_conflict(&ledger, "10.0.0.1", rows[i].mac, HOLDER("ml/a", "u1"),
				     rows[i].now);
		assert_int_equal(ledger.has_changed, rows[i].is_written);
		assert_int_equal(json_array_size(ledger.conflicts.entries), 1);
	}
}

/*
 * How many conflicts a pool with these addresses remembers of a pod of this name, which has another
 * address each time; of a name that ends in '-', one of each of many pods.
 */
static size_t remembered(const char *ips, const char *name)
{
	auto_free char *text = str_printf(
		"metadata: {name: p}\nspec: {ipVersion: 4, subnet: 10.0.0.0/16, ips: [%s]}\n", ips);
	json_auto_t *pool = yaml(text);
	auto_ledger struct ledger ledger = {0};
	size_t n = 0;

	assert_int_equal(ledger_open(pool, NULL, SEEN, &ledger, NULL), 0);
	for (int i = 0; i < 250; i++) {
		auto_free char *pod = str_printf("%s%.0d", name, str_ends(name, "-") ? i + 1 : 0);
		char address[IP_TEXT_SIZE];

		if (!ledger_next(&ledger, address))
			break;
		assert_true(ledger_take_this(&ledger, address, HOLDER(pod, "u1")));
		n += ledger_note_conflict(&ledger, address, "", HOLDER(pod, "u1"), SEEN);
		/* What is known costs nothing. */
		if (json_find(ledger.conflicts.entries, "ip", address))
			assert_true(ledger_note_conflict(&ledger, address, "", HOLDER("ml/x", "u1"),
							 SEEN));
	}
	assert_int_equal(json_array_size(ledger.conflicts.entries), n);
	return n;
}

/* Users may write that others have an address, too. */
TEST(conflicts_of_one_pod_and_of_one_namespace_have_a_bound)
{
	assert_int_equal(remembered("10.0.0.1-10.0.0.254", "ml/a"), IP_CONFLICTS_OF_POD);
	assert_int_equal(remembered("10.0.0.1-10.0.3.254", "ml/p-"), IP_CONFLICTS_OF_NAMESPACE_MAX);
	assert_int_equal(remembered("10.0.0.1-10.0.0.80", "ml/p-"), 10);
	assert_int_equal(remembered("10.0.0.1-10.0.0.10", "ml/p-"), IP_CONFLICTS_OF_NAMESPACE_MIN);
}

TEST(conflicts_of_one_pod_keep_no_other_from_saying_theirs)
{
	json_auto_t *pool =
		yaml(POOL "status: {conflictIPs: [{ip: 10.0.0.1, pod: ml/a, seen: '" SEEN
			  "'}, {ip: 10.0.0.2, seen: '" SEEN "'}]}\n");
	auto_ledger struct ledger ledger = {0};

	assert_int_equal(ledger_open(pool, NULL, SEEN, &ledger, NULL), 0);
	ledger.conflicts.share = 1;
	assert_false(ledger_note_conflict(&ledger, "10.0.0.4", "", HOLDER("ml/b", "u1"), SEEN));
	assert_true(ledger_note_conflict(&ledger, "10.0.0.4", "", HOLDER("mla/b", "u1"), SEEN));
	assert_int_equal(json_array_size(ledger.conflicts.entries), 3);
}

#define NAMESPACE_30 "namespace-of-thirty-characters"
#define POD_38       "deployment-of-a-team-5d9c7b6f4d-x2x7q1"
#define NODE_41      "ip-10-200-113-204.eu-central-1.compute.in"

/* A pool with n records of ordinary length; status as the API server has it. */
static json_t *pool_with(size_t n)
{
	json_auto_t *records = json_object();
	auto_free char *text = NULL;

	for (size_t i = 0; i < n; i++) {
		auto_free char *address = str_printf("10.1.%zu.%zu", 100 + i / 150, 100 + i % 150);

		json_put(records, address,
			 json_pack("{s:s, s:s, s:s}", "pod", NAMESPACE_30 "/" POD_38, "podUid",
				   "00000000-0000-0000-0000-000000000000", "node", NODE_41));
	}
	text = json_text(records);
	return json_pack("{s:{s:s}, s:{s:i, s:s, s:[s]}, s:{s:s}}", "metadata", "name", "p", "spec",
			 "ipVersion", 4, "subnet", "10.0.0.0/8", "ips", "10.1.0.1-10.200.0.1",
			 "status", "allocatedIPs", text);
}

TEST(knows_what_its_text_takes_as_it_is_sent)
{
	static const struct ledger_holder holder = {"ns/pod", "u-1", "node"};
	json_auto_t *pool = pool_with(100), *status = NULL;
	auto_ledger struct ledger ledger = {0};
	auto_free char *sent = NULL;

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_true(ledger_take_this(&ledger, "10.1.0.1", &holder));
	ledger_pass_on(&ledger, "10.1.0.1", &holder);
	assert_true(ledger_take_this(&ledger, "10.1.0.2", &holder));
	assert_true(ledger_release(&ledger, "10.1.0.2", NULL, "u-1", true));
	status = ledger_status(&ledger);
	sent = json_dumps(json_at(status, "allocatedIPs"), JSON_ENCODE_ANY);
	/* Two quotes, two braces, and a comma less. */
	assert_int_equal(ledger.bytes, strlen(sent) - 3);
}

/* The same pool as this program writes it: a large one has its nodes apart. */
static json_t *written_pool_with(size_t records)
{
	json_auto_t *pool = pool_with(records);
	auto_ledger struct ledger ledger = {0};
	json_t *written = json_deep_copy(pool);

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	json_put(written, "status", ledger_status(&ledger));
	return written;
}

static size_t sent_len(const json_t *value)
{
	return json_dumpb(value, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
}

/* With ordinary names: namespace 30, pod 38, node 41 characters. */
TEST(ten_thousand_records_fit_into_an_object)
{
	json_auto_t *pool = written_pool_with(10000), *again = NULL;
	auto_ledger struct ledger ledger = {0};
	const char *text = json_str_at(pool, "status", "allocatedIPs");

	assert_true(sent_len(pool) < 1536 * 1024);
	assert_null(strstr(text, "\"node\""));
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_int_equal(json_object_size(ledger.records), 10000);
	assert_string_equal(json_str_at(ledger_record(&ledger, "10.1.100.100"), "node"), NODE_41);
	assert_false(ledger_is_full(&ledger));
	again = ledger_status(&ledger);
	assert_string_equal(json_str_at(again, "allocatedIPs"), text);
	assert_string_equal(json_str_at(again, "allocatedNodes"),
			    json_str_at(pool, "status", "allocatedNodes"));
}

/* A namespace of 31 characters, and 100 nodes instead of one. */
TEST(ten_thousand_records_on_a_hundred_nodes_fit)
{
	json_auto_t *pool = pool_with(1), *records = json_object(), *status = NULL;
	auto_ledger struct ledger ledger = {0}, again = {0};
	auto_free char *text = NULL;

	for (int i = 0; i < 10000; i++) {
		auto_free char *address = str_printf("10.128.%d.%d", 1 + i / 256, i % 256);
		auto_free char *node =
			str_printf("gpu-worker-%03d.rack7.dc2.example.internal", i * 7 % 100);

		json_put(records, address,
			 json_pack("{s:s, s:s, s:s}", "pod", NAMESPACE_30 "s/" POD_38, "podUid",
				   "00000000-0000-0000-0000-000000000000", "node", node));
	}
	text = json_text(records);
	json_put_str(json_at(pool, "status"), "allocatedIPs", text);
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_false(ledger_is_full(&ledger));
	status = ledger_status(&ledger);
	json_put(pool, "status", json_incref(status));
	assert_true(sent_len(pool) < 1536 * 1024);
	assert_int_equal(ledger_open(pool, NULL, NULL, &again, NULL), 0);
	assert_true(json_equal(again.records, records));
}

/* So many nodes a cluster can have. */
TEST(keeps_each_of_5000_nodes_and_what_is_not_judged)
{
	static const char pod[] = NAMESPACE_30 "/" POD_38,
			  uid[] = "11111111-0000-0000-0000-000000000000";
	json_auto_t *pool = pool_with(7000);
	auto_ledger struct ledger ledger = {0}, again = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	for (int i = 0; i < 5000; i++) {
		auto_free char *address = str_printf("10.1.%d.%d", 100 + i / 150, 100 + i % 150);
		auto_free char *node = str_printf("node-%d", i);

		ledger_pass_on(&ledger, address, &(struct ledger_holder){pod, uid, node});
	}
	ledger_mark_unjudged(&ledger, "10.1.139.249");
	json_put(pool, "status", ledger_status(&ledger));
	assert_non_null(json_at(pool, "status", "allocatedNodes"));
	assert_int_equal(ledger_open(pool, NULL, NULL, &again, NULL), 0);
	for (int i = 0; i < 5000; i++) {
		auto_free char *address = str_printf("10.1.%d.%d", 100 + i / 150, 100 + i % 150);
		auto_free char *node = str_printf("node-%d", i);

		assert_string_equal(
			json_str_or(json_at(ledger_record(&again, address), "node"), "none"), node);
	}
	assert_true(ledger_is_unjudged(&again, "10.1.139.249"));
}

/* They write records as they know them. */
TEST(nodes_apart_are_not_believed_after_spiderpool_has_written)
{
	json_auto_t *pool = written_pool_with(6000);
	json_t *status = json_at(pool, "status");
	json_auto_t *records = json_parse(json_str_at(status, "allocatedIPs"),
					  strlen(json_str_at(status, "allocatedIPs")), NULL);
	auto_free char *text = NULL;
	auto_ledger struct ledger ledger = {0};

	assert_non_null(json_at(status, "allocatedNodes"));
	json_object_del(records, "10.1.100.100");
	json_put(records, "10.9.9.9", json_pack("{s:s, s:s}", "pod", "ns/p", "podUid", "u"));
	text = json_text(records);
	json_put_str(status, "allocatedIPs", text);
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_int_equal(json_object_size(ledger.records), 6000);
	assert_null(json_at(ledger_record(&ledger, "10.1.100.101"), "node"));
}

TEST(one_that_is_small_again_has_its_nodes_in_its_records)
{
	json_auto_t *pool = written_pool_with(5200), *status = NULL;
	auto_ledger struct ledger ledger = {0};

	assert_non_null(json_at(pool, "status", "allocatedNodes"));
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	for (int i = 100; i < 200; i++)
		for (int j = 100; j < 110; j++) {
			auto_free char *address = str_printf("10.1.%d.%d", j, i);

			(void)ledger_release(&ledger, address, NULL,
					     "00000000-0000-0000-0000-000000000000", false);
		}
	status = ledger_status(&ledger);
	assert_null(json_at(status, "allocatedNodes"));
	assert_non_null(strstr(json_str_at(status, "allocatedIPs"), NODE_41));
}

TEST(is_full_before_the_server_refuses_it)
{
	json_auto_t *pool = written_pool_with(10000), *full = written_pool_with(10200);
	auto_ledger struct ledger ledger = {0}, no_room = {0};

	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	assert_int_equal(ledger_open(full, NULL, NULL, &no_room, NULL), 0);
	assert_false(ledger_is_full(&ledger));
	assert_true(ledger_is_full(&no_room));
	assert_true(sent_len(full) < 1536 * 1024 - 8192);
	/* What is given back makes room. */
	for (int i = 0; i < 80; i++) {
		auto_free char *address = str_printf("10.1.100.%d", 100 + i);

		assert_true(ledger_release(&no_room, address, NULL,
					   "00000000-0000-0000-0000-000000000000", false));
	}
	assert_false(ledger_is_full(&no_room));
}

/* Users choose the names of pods: the longest that Kubernetes has. docs/ipam.md has the number. */
TEST(the_longest_names_leave_room_for_3800_addresses)
{
	char names[63 + 1 + 253 + 1], uid[37], address[IP_TEXT_SIZE];
	const struct ledger_holder holder = {names, uid, NODE_41};
	json_auto_t *pool = pool_with(0), *status = NULL;
	auto_ledger struct ledger ledger = {0};
	int n = 0;

	memset(names, 'n', sizeof(names) - 1);
	names[sizeof(names) - 1] = '\0';
	names[63] = '/';
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	for (; !ledger_is_full(&ledger); n++) {
		(void)snprintf(address, sizeof(address), "10.%d.%d.%d", 110 + n / 10000,
			       100 + n / 100 % 100, 100 + n % 100);
		(void)snprintf(uid, sizeof(uid), "%036d", n);
		assert_true(ledger_take_this(&ledger, address, &holder));
	}
	assert_in_range(n, 3800, 3900);
	status = ledger_status(&ledger);
	json_put(pool, "status", json_incref(status));
	assert_true(sent_len(pool) < 1536 * 1024 - 2048);
}

/* Users write endpoints: what pods are said to have must not make a ledger too large either. */
TEST(records_of_claims_end_before_the_server_refuses_them)
{
	json_auto_t *text = yaml("{env: {now: '2026-01-01T00:00:00Z'}, "
				 "network-attachment-definitions: {ml/net: {spec: "
				 "{config: '{\"ipam\": {\"type\": \"spiderpool\", "
				 "\"default_ipv4_ippool\": [\"p\"]}}'}}}}");
	json_auto_t *asks = json_pack("[{s:s, s:[s]}]", "nic", "net1", "ipv4", "p");
	static const struct ipam_settings settings = {.ipv4 = true};
	json_t *pools = json_object();
	struct books *books;

	json_put(text, KIND_IP_POOL, pools);
	json_put(pools, "p", written_pool_with(10200));
	books = books_new(text);
	for (int i = 0; i < 100; i++) {
		auto_free char *uid = str_printf("%036d", i);
		json_auto_t *pod =
			json_pack("{s:{s:s, s:s, s:s}, s:{s:s}}", "metadata", "name", "a",
				  "namespace", "ml", "uid", uid, "spec", "nodeName", NODE_41);
		json_auto_t *endpoint =
			json_pack("{s:{s:{s:s, s:[{s:s, s:o, s:s}]}}}", "status", "current", "uid",
				  uid, "ips", "interface", "net1", "ipv4",
				  json_fmt("10.1.1.%d/8", i + 1), "ipv4Pool", "p");

		ipam_record(books, pod, endpoint, asks, &settings);
	}
	{
		auto_plan struct plan plan = {0};
		json_t *pool = json_object_get(pools, "p");

		books_plan(books, &plan);
		json_put(pool, "status",
			 json_incref(json_at(json_array_get(plan.ops, 0), "status")));
		assert_non_null(strstr(json_str_at(pool, "status", "allocatedIPs"), "ml/a"));
		assert_true(sent_len(pool) < 1536 * 1024 - 2048);
	}
	books_free(books);
}

/* Of 256 addresses that rest, as many as there is room for. */
TEST(addresses_that_rest_do_not_make_it_too_large)
{
	json_auto_t *pool = written_pool_with(10190), *status = NULL;
	json_t *resting = json_array();
	auto_ledger struct ledger ledger = {0};
	size_t n;

	for (int i = 0; i < 256; i++)
		json_array_append_new(resting, json_fmt("10.111.111.%d", i));
	for (int i = 0; i < 256; i++)
		json_array_append_new(resting, json_fmt("10.111.112.%d", i));
	json_put(json_at(pool, "status"), "releasedIPs", resting);
	assert_int_equal(ledger_open(pool, NULL, NULL, &ledger, NULL), 0);
	status = ledger_status(&ledger);
	n = json_array_size(json_at(status, "releasedIPs"));
	assert_in_range(n, 1, 511);
	assert_string_equal(
		json_string_value(json_array_get(json_at(status, "releasedIPs"), n - 1)),
		"10.111.112.255");
	assert_true(sent_len(status) < 1536 * 1024 - 4096);
}

/* Users size the spec; kubectl keeps a copy of it in an annotation. */
TEST(a_long_spec_leaves_less_room)
{
	json_auto_t *pool = pool_with(0), *large = pool_with(0);
	json_t *ranges = json_array();

	for (int i = 0; i < 1000; i++)
		json_array_append_new(ranges, json_fmt("10.%d.%d.1-10.%d.%d.200", i / 250, i % 250,
						       i / 250, i % 250));
	json_put(json_at(large, "spec"), "ips", ranges);
	assert_true(ip_pool_ledger_room(large) + 2 * sent_len(ranges) < ip_pool_ledger_room(pool));
}

/* waits: a pod has waited for an hour. */
static void expect_degraded(size_t records, bool waits, const char *reason)
{
	json_auto_t *pool = written_pool_with(records);
	json_auto_t *world = json_pack("{s:{s:O}, s:{s:s}}", KIND_IP_POOL, "p", pool, "env", "now",
				       "2026-01-31T10:00:00Z");
	auto_plan struct plan plan = {0};
	const json_t *status = NULL;
	json_t *op;
	size_t i;

	if (waits)
		json_put(json_need_object(world, BOX_SHORT_POOL), "p",
			 json_pack("{s:i, s:{s:s}}", "pods", 1, "since", "u-1",
				   "2026-01-31T09:00:00Z"));
	assert_int_equal(ip_pool_reconcile(world, "p", &plan, NULL), 0);
	json_array_foreach (plan.ops, i, op)
		if (json_at(op, "status", "conditions"))
			status = json_at(op, "status");
	assert_string_equal(
		json_str_at(json_find(json_at(status, "conditions"), "type", "Degraded"), "reason"),
		reason);
	assert_string_equal(
		json_str_at(json_find(json_at(status, "conditions"), "type", "Ready"), "status"),
		"True");
}

TEST(a_pool_says_that_its_ledger_fills)
{
	expect_degraded(0, false, "AsExpected");
	expect_degraded(7900, false, "AsExpected");
	expect_degraded(7900, true, "PoolExhausted");
	expect_degraded(8200, false, "LedgerFilling");
	expect_degraded(10200, false, "LedgerFull");
	/* More addresses would not help. */
	expect_degraded(10200, true, "LedgerFull");
}

/* The next pool that the pod names serves. */
TEST(a_full_ledger_hands_on_to_the_next_pool)
{
	json_auto_t *full = written_pool_with(10200);
	json_auto_t *next = json_pack("{s:{s:s}, s:{s:i, s:s, s:[s]}}", "metadata", "name", "q",
				      "spec", "ipVersion", 4, "subnet", "192.168.0.0/24", "ips",
				      "192.168.0.10-192.168.0.20");
	json_auto_t *world = json_pack("{s:{s:O, s:O}, s:{s:s}}", KIND_IP_POOL, "p", full, "q",
				       next, "env", "now", "2026-01-31T10:00:00Z");
	json_auto_t *pod = json_pack("{s:{s:s, s:s, s:s}, s:{s:s}}", "metadata", "name", "a",
				     "namespace", "ml", "uid", "u-a", "spec", "nodeName", "w1");
	const struct ipam_settings settings = {.ipv4 = true, .ns = "kube-system"};

	for (int i = 0; i < 2; i++) {
		json_auto_t *asks =
			i ? json_pack("[{s:s, s:[s]}]", "nic", "net1", "ipv4", "p")
			  : json_pack("[{s:s, s:[s,s]}]", "nic", "net1", "ipv4", "p", "q");
		auto_books struct books *books = books_new(world);
		json_auto_t *status = NULL;
		struct err err = {0};
		int got = ipam_allocate(books, pod, NULL, asks, &settings, &status, &err);

		assert_int_equal(got, i ? -1 : 0);
		if (i)
			assert_string_equal(err.reason, "LedgerFull");
		else
			assert_string_equal(
				json_str_at(json_array_get(json_at(status, "current", "ips"), 0),
					    "ipv4Pool"),
				"q");
	}
}

static json_t *overlapping_pool(const char *name, int generation, const char *created)
{
	return json_pack("{s:{s:s, s:i, s:s}, s:{s:i, s:s, s:[s]}, s:{s:i, s:[{s:s, s:s, s:i}]}}",
			 "metadata", "name", name, "generation", generation, "creationTimestamp",
			 created, "spec", "ipVersion", 4, "subnet", "10.6.0.0/24", "ips",
			 "10.6.0.10-10.6.0.20", "status", "allocatedIPCount", 0, "conditions",
			 "type", "Ready", "status", "True", "observedGeneration", 1);
}

/*
 * The other pool's agents read that pool alone: they would not see what is given here. A leader
 * compares them.
 */
TEST(without_a_leader_a_changed_pool_that_overlaps_gives_nothing)
{
	json_auto_t *world = json_pack("{s:{s:o, s:o}, s:{s:s}}", KIND_IP_POOL, "a",
				       overlapping_pool("a", 2, "2026-01-01T00:00:00Z"), "b",
				       overlapping_pool("b", 1, "2026-01-02T00:00:00Z"), "env",
				       "now", "2026-01-31T10:00:00Z");

	for (int i = 0; i < 3; i++) {
		auto_books struct books *books = NULL;
		struct err err = {0};
		int may;

		json_put_bool(json_at(world, "env"), "withoutLeader", i > 0);
		if (i == 2)
			json_object_del(json_at(world, KIND_IP_POOL), "b");
		books = books_new(world);
		may = books_may_take(books, books_open(books, "a", NULL), &err);
		assert_int_equal(may, i == 1 ? -1 : 0);
		if (i == 1)
			assert_string_equal(err.reason, "PoolNotJudged");
	}
}
