// SPDX-License-Identifier: Apache-2.0
/*
 * tuning: what its configuration asks for, which sysctls are allowed, the steps with their way
 * back, and what CHECK compares.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/tuning.h"
#include "tests/support/yaml.h"

/* Up, promiscuous. */
static const char LINK[] =
	"{name: net1, mac: '02:00:00:00:00:01', mtu: 1500, txqlen: 1000, flags: 257}";

TEST(steps_are_as_the_configuration_asks_and_know_the_way_back)
{
	static const struct {
		const char *config, *args, *sysctls, *steps, *undo;
	} cases[] = {
		{"{}", NULL, "{}", "[]", "[]"},
		{"{sysctl: {net.ipv4.conf.IFNAME.rp_filter: '2', net.core.somaxconn: '9'}}", NULL,
		 "{net/ipv4/conf/net1/rp_filter: '1'}",
		 "[{in: pod, do: sysctl, path: net/ipv4/conf/net1/rp_filter, value: '2', was: '1'},"
		 " {in: pod, do: sysctl, path: net/core/somaxconn, value: '9'}]",
		 "[{in: pod, do: sysctl, path: net/ipv4/conf/net1/rp_filter, value: '1', was: "
		 "'2'}]"},
		{"{MTU: 1400, promisc: false, allmulti: true, txQLen: 0, mac: '02:00:00:00:00:0A'}",
		 NULL, "{}",
		 "[{in: pod, do: mac, dev: net1, mac: '02:00:00:00:00:0a',"
		 "  was: '02:00:00:00:00:01'},"
		 " {in: pod, do: link, dev: net1, mtu: 1400, txqlen: 0, allmulti: true,"
		 "  was: {mtu: 1500, txqlen: 1000, allmulti: false}}]",
		 "[{in: pod, do: link, dev: net1, mtu: 1500, txqlen: 1000, allmulti: false},"
		 " {in: pod, do: mac, dev: net1, mac: '02:00:00:00:00:01',"
		 "  was: '02:00:00:00:00:01'}]"},
		{"{mtu: 1400, promisc: true, sysctl: {net.a: '1'}, mac: '02:00:00:00:00:0a',"
		 " runtimeConfig: {mac: '02:00:00:00:00:0b'},"
		 " args: {cni: {MTU: 1300, sysctl: {net.a: '2'}, mac: '02:00:00:00:00:01'}}}",
		 "MAC=02:00:00:00:00:0c", "{net/a: '0'}",
		 "[{in: pod, do: sysctl, path: net/a, value: '2', was: '0'},"
		 " {in: pod, do: link, dev: net1, mtu: 1300, promisc: true,"
		 "  was: {mtu: 1500, promisc: true}}]",
		 "[{in: pod, do: link, dev: net1, mtu: 1500, promisc: true},"
		 " {in: pod, do: sysctl, path: net/a, value: '0', was: '2'}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *sysctls = yaml(cases[i].sysctls);
		json_auto_t *want = yaml(cases[i].steps), *back = yaml(cases[i].undo);
		json_auto_t *link = yaml(LINK), *steps = json_array(), *undo = NULL;
		auto_tuning_config struct tuning_config read = {0};

		assert_int_equal(tuning_config_read(config, cases[i].args, "net1", &read, NULL), 0);
		tuning_plan(&read, link, sysctls, steps);
		undo = steps_undo(steps);
		if (!json_same(steps, want))
			fail_msg("case %zu: %s", i, json_text(steps));
		if (!json_same(undo, back))
			fail_msg("case %zu, back: %s", i, json_text(undo));
	}
}

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *allowed, *says;
	} cases[] = {
		{"{sysctl: {kernel.panic: '1'}}", NULL, "\"kernel.panic\" must be one below net."},
		{"{sysctl: {net: '1'}}", NULL, "below net."},
		{"{sysctl: {net/../kernel/panic: '1'}}", NULL, "says nothing"},
		{"{sysctl: {net.a: 1}}", NULL, "net.a must have a value that is a string"},
		{"{sysctl: [net.a]}", NULL, "an object"},
		{"{mtu: -1}", NULL, "mtu is -1"},
		{"{txQLen: '5'}", NULL, "a number"},
		{"{allmulti: 1}", NULL, "true or false"},
		{"{mac: x}", NULL, "six octets"},
		{"{args: {cni: {mtu: x}}}", NULL, "a number"},
		{"{sysctl: {net.a: '1'}}", "^net\\.b$\n\n ^net.c ", "net.a is not among those"},
		{"{sysctl: {net.a: '1'}}", "(", "line 1 of /etc/cni/tuning/allowlist.conf"},
		{"{sysctl: {net.a: '1'}}", "", "net.a is not among those"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_tuning_config struct tuning_config read = {0};
		struct err err = {0};

		/* Dots are slashes: what is left of ".." is a file of this name, below net. */
		if (str_eq(cases[i].says, "says nothing")) {
			assert_int_equal(tuning_config_read(config, NULL, "net1", &read, &err), 0);
			assert_non_null(json_object_get(read.sysctls, "net/kernel/panic"));
			continue;
		}
		if (tuning_config_read(config, NULL, "net1", &read, &err) == 0 &&
		    tuning_check_allowed(&read, cases[i].allowed, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_int_equal(err.class, ERR_INVALID);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

TEST(sysctls_that_the_administrator_allows_are_set)
{
	static const struct {
		const char *config, *allowed;
	} cases[] = {
		{"{sysctl: {net.a: '1'}}", NULL},
		{"{sysctl: {net.a: '1', net.b: '1'}}", "net.b\nnet.a\n"},
		{"{sysctl: {net.ipv4.conf.IFNAME.log: '1'}}",
		 " ^net\\.ipv4\\.conf\\.IFNAME\\.[a-z_]+$ "},
		{"{mtu: 1400}", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_tuning_config struct tuning_config read = {0};

		assert_int_equal(tuning_config_read(config, NULL, "net1", &read, NULL), 0);
		assert_int_equal(tuning_check_allowed(&read, cases[i].allowed, NULL), 0);
	}
}

TEST(the_result_has_the_new_mac)
{
	json_auto_t *config = yaml("{mac: '02:00:00:00:00:0a'}");
	json_auto_t *result = yaml("{interfaces: [{name: br0, mac: x}, {name: net1, mac: x}]}");
	json_auto_t *want = yaml("{interfaces: [{name: br0, mac: x},"
				 " {name: net1, mac: '02:00:00:00:00:0a'}]}");
	auto_tuning_config struct tuning_config read = {0};

	assert_int_equal(tuning_config_read(config, NULL, "net1", &read, NULL), 0);
	tuning_put_mac(&read, "net1", result);
	assert_true(json_same(result, want));
}

TEST(check_names_what_is_different)
{
	static const struct {
		const char *config, *sysctls, *says;
	} cases[] = {
		{"{sysctl: {net.a: '1 2'}, mtu: 1500, txQLen: 1000, promisc: true, allmulti: false,"
		 " mac: '02:00:00:00:00:01'}",
		 "{net/a: \"1\\t2\"}", NULL},
		{"{sysctl: {net.a: '1'}}", "{net/a: '2'}", "net/a is 2, the network says 1"},
		{"{sysctl: {net.a: '1'}}", "{net/a: '10'}", "net/a is 10"},
		{"{mac: '02:00:00:00:00:02'}", "{}", "has MAC 02:00:00:00:00:01"},
		{"{mtu: 1400}", "{}", "mtu of net1 is 1500, the network says 1400"},
		{"{txQLen: 0}", "{}", "txqlen of net1 is 1000"},
		{"{allmulti: true}", "{}", "allmulti of net1 is false"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *sysctls = yaml(cases[i].sysctls);
		json_auto_t *link = yaml(LINK);
		auto_tuning_config struct tuning_config read = {0};
		struct err err = {0};
		int rc;

		assert_int_equal(tuning_config_read(config, NULL, "net1", &read, NULL), 0);
		rc = tuning_check(&read, link, sysctls, &err);
		if ((rc == 0) != !cases[i].says ||
		    (cases[i].says && !strstr(err.text, cases[i].says)))
			fail_msg("case %zu: says \"%s\"", i, err.text);
	}
}

/* Of two in one list, and of the first of them that is tried again. */
TEST(what_two_tunings_change_is_set_to_what_was_before_both)
{
	json_auto_t *earlier = yaml("[{in: pod, do: link, dev: net1, mtu: 1500},"
				    " {in: pod, do: sysctl, path: net/a, value: '0', was: '1'}]");
	json_auto_t *steps =
		yaml("[{in: pod, do: sysctl, path: net/a, value: '2', was: '1'},"
		     " {in: pod, do: sysctl, path: net/b, value: '3', was: '4'},"
		     " {in: pod, do: link, dev: net1, mtu: 1300, txqlen: 7, was: {mtu: 1400, "
		     "txqlen: 1000}}]");
	json_auto_t *want = yaml("[{in: pod, do: link, dev: net1, txqlen: 1000},"
				 " {in: pod, do: sysctl, path: net/b, value: '4', was: '3'},"
				 " {in: pod, do: link, dev: net1, mtu: 1500},"
				 " {in: pod, do: sysctl, path: net/a, value: '0', was: '1'}]");
	json_auto_t *both = tuning_undo(steps, earlier), *again = tuning_undo(steps, both);

	if (!json_same(both, want))
		fail_msg("%s", json_text(both));
	assert_true(json_same(again, want));
}
