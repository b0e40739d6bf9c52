// SPDX-License-Identifier: Apache-2.0
/* ifacer: what its configuration asks for, and the steps from whatever is there to that. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/bond_options.h"
#include "nodeagent/cni/plan/ifacer.h"
#include "tests/support/yaml.h"

#define BOTH "interfaces: [eth1, eth2]"

TEST(what_is_missing_is_made_and_nothing_twice)
{
	static const struct {
		const char *config, *links, *steps;
	} cases[] = {
		{"{interfaces: [eth1]}", "[]", "[]"},
		{"{" BOTH ", vlanID: 5}", "[]", "[]"},
		{"{Interfaces: [eth1], vlanID: 5}", "[{index: 3, name: eth1}]",
		 "[{in: host, do: link, dev: eth1, shared: true, up: true},"
		 " {in: host, do: upper, dev: eth1.5, shared: true, kind: vlan, lower: 3, vlan: 5},"
		 " {in: host, do: link, dev: eth1.5, shared: true, up: true}]"},
		{"{interfaces: [eth1], vlanID: 5}",
		 "[{index: 3, name: eth1, flags: 1},"
		 " {index: 4, name: eth1.5, kind: vlan, vlan: 5, lower: 3}]",
		 "[{in: host, do: link, dev: eth1.5, shared: true, up: true}]"},
		{"{" BOTH ", vlanID: 5, bond: {mode: 4, options: 'miimon=100; lacp_rate=1;'}}",
		 "[{index: 3, name: eth1}, {index: 4, name: eth2}]",
		 "[{in: host, do: bond, dev: sp_bond0, shared: true, options: ["
		 "{number: 1, bits: 8, value: 4}, {number: 3, bits: 32, value: 100},"
		 " {number: 21, bits: 8, value: 1}]}]"},
		{"{" BOTH ", bond: {mode: 1, options: 'primary=eth2;miimon=100'}}",
		 "[{index: 3, name: eth1}, {index: 4, name: eth2}]",
		 "[{in: host, do: bond, dev: sp_bond0, shared: true, options: ["
		 "{number: 1, bits: 8, value: 1}, {number: 11, bits: 32, value: 4},"
		 " {number: 3, bits: 32, value: 100}]}]"},
		{"{" BOTH ", vlanID: 5, bond: {name: b0}}",
		 "[{index: 3, name: eth1, flags: 1}, {index: 4, name: eth2, master: 9},"
		 " {index: 9, name: b0, kind: bond}]",
		 "[{in: host, do: link, dev: eth1, shared: true, up: false},"
		 " {in: host, do: link, dev: eth1, shared: true, master: 9},"
		 " {in: host, do: link, dev: eth2, shared: true, up: true},"
		 " {in: host, do: link, dev: b0, shared: true, up: true},"
		 " {in: host, do: upper, dev: b0.5, shared: true, kind: vlan, lower: 9, vlan: 5},"
		 " {in: host, do: link, dev: b0.5, shared: true, up: true}]"},
		{"{" BOTH ", bond: {name: b0}}",
		 "[{index: 3, name: eth1, flags: 1, master: 9},"
		 " {index: 4, name: eth2, flags: 1, master: 9},"
		 " {index: 9, name: b0, kind: bond, flags: 1}]",
		 "[]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *links = yaml(cases[i].links);
		json_auto_t *want = yaml(cases[i].steps), *steps = json_array();
		json_auto_t *host = json_pack("{s:O}", "links", links);
		auto_ifacer_config struct ifacer_config read = {0};

		assert_int_equal(ifacer_config_read(config, &read, NULL), 0);
		assert_int_equal(ifacer_plan(&read, host, steps, NULL), 0);
		if (!json_same(steps, want))
			fail_msg("case %zu: %s", i, json_text(steps));
	}
}

TEST(what_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *links, *says;
	} cases[] = {
		{"{}", "[]", "a list of 1 to 32"},
		{"{interfaces: eth1}", "[]", "a list of 1 to 32"},
		{"{interfaces: [5]}", "[]", "interfaces[0]"},
		{"{interfaces: [a/b]}", "[]", "interfaces[0]"},
		{"{interfaces: [eth1], vlanID: 4095}", "[]", "from 0 to 4094"},
		{"{interfaces: [a2345678901], vlanID: 4094}", "[]", "a2345678901.4094"},
		{"{" BOTH ", bond: {mode: 7}}", "[]", "from 0 to 6"},
		{"{" BOTH ", bond: {name: ' '}}", "[]", "bond.name"},
		{"{" BOTH ", bond: {}}", "[{index: 3, name: eth1}]", "interfaces has eth2"},
		{"{" BOTH ", bond: {mode: 7, options: 'primary=eth1'}}", "[]", "from 0 to 6"},
		{"{" BOTH ", bond: {mode: 1, options: 'primary=eth3'}}",
		 "[{index: 3, name: eth1}, {index: 4, name: eth2}]",
		 "bond.options has eth3, which the node lacks"},
		{"{interfaces: [eth1], vlanID: 5}", "[]", "interfaces has eth1"},
		{"{" BOTH ", bond: {}}", "[{index: 9, name: sp_bond0, kind: team}]", "not a bond"},
		{"{" BOTH ", bond: {}}",
		 "[{index: 3, name: eth1, master: 7}, {index: 4, name: eth2}]",
		 "ifacer: eth1 is a port"},
		{"{interfaces: [eth1], vlanID: 5}",
		 "[{index: 3, name: eth1}, {name: eth1.5, kind: vlan, vlan: 6, lower: 3}]",
		 "not VLAN 5 of eth1"},
		{"{interfaces: [eth1], vlanID: 5}",
		 "[{index: 3, name: eth1}, {name: eth1.5, kind: veth}]", "not VLAN 5 of eth1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *links = yaml(cases[i].links);
		json_auto_t *host = json_pack("{s:O}", "links", links), *steps = json_array();
		auto_ifacer_config struct ifacer_config read = {0};
		struct err err = {0};

		if (ifacer_config_read(config, &read, &err) == 0 &&
		    ifacer_plan(&read, host, steps, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_int_equal(err.class, ERR_INVALID);
		assert_int_equal(json_array_size(steps), 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

TEST(what_a_failure_left_down_is_set_up_again)
{
	json_auto_t *config = yaml("{interfaces: [a, b, c, d, e], bond: {}}");
	json_auto_t *before = yaml("{links: [{index: 1, name: a, flags: 1}, {index: 2, name: b},"
				   " {index: 3, name: c, flags: 1}, {index: 4, name: d, flags: 1},"
				   " {index: 5, name: e, flags: 1}]}");
	/* As it was; was down; is a port by now; has another name; is gone. */
	json_auto_t *now = yaml("{links: [{index: 1, name: a, flags: 1}, {index: 2, name: b},"
				" {index: 3, name: c, master: 9}, {index: 4, name: new}]}");
	json_auto_t *want =
		yaml("[{in: host, do: link, dev: new, shared: true, up: true, index: 4}]");
	json_auto_t *steps = json_array();
	auto_ifacer_config struct ifacer_config read = {0};

	assert_int_equal(ifacer_config_read(config, &read, NULL), 0);
	ifacer_plan_back(&read, before, now, steps);
	if (!json_same(steps, want))
		fail_msg("%s", json_text(steps));
}

TEST(a_bond_takes_the_options_that_spiderpool_s_takes)
{
	static const struct {
		int mode;
		const char *text, *options, *ignored;
	} cases[] = {
		{1, "primary=eth0;miimon=100",
		 "[{number: 11, device: eth0}, {number: 3, bits: 32, value: 100}]", "[]"},
		{4, "lacp_rate=1;xmit_hash_policy=1;ad_select=1;min_links=1;MIIMON=50",
		 "[{number: 21, bits: 8, value: 1}, {number: 14, bits: 8, value: 1},"
		 " {number: 22, bits: 8, value: 1}, {number: 18, bits: 32, value: 1},"
		 " {number: 3, bits: 32, value: 50}]",
		 "[]"},
		{4,
		 "ad_actor_system=02:00:00:00:00:09;ad_actor_sys_prio=9;ad_user_port_key=7;"
		 "up_delay=5;downdelay=6",
		 "[{number: 26, mac: '02:00:00:00:00:09'}, {number: 24, bits: 16, value: 9},"
		 " {number: 25, bits: 16, value: 7}, {number: 4, bits: 32, value: 5},"
		 " {number: 5, bits: 32, value: 6}]",
		 "[]"},
		{1, "arp_interval=200;arp_ip_target=[\"10.0.0.1\",\"10.0.0.2\"];arp_validate=3",
		 "[{number: 7, bits: 32, value: 200},"
		 " {number: 8, addresses: [10.0.0.1, 10.0.0.2]}, {number: 9, bits: 32, value: 3}]",
		 "[]"},
		{6, "primary_reselect=1;fail_over_mac=1;tlb_dynamic_lb=1;resend_igmp=3",
		 "[{number: 12, bits: 8, value: 1}, {number: 13, bits: 8, value: 1},"
		 " {number: 27, bits: 8, value: 1}, {number: 15, bits: 32, value: 3}]",
		 "[]"},
		/* The last of several counts; what Spiderpool's passes over is passed over. */
		{1, " miimon=5 ; miimon=6;mimon=7;fast;a=b=c;lacp_rate=0;use_carrier=-1;;",
		 "[{number: 3, bits: 32, value: 6}]",
		 "['mimon=7', fast, 'a=b=c', 'lacp_rate=0', 'use_carrier=-1']"},
		{0, "primary=;active_slave=;packets_per_slave=7",
		 "[{number: 20, bits: 32, value: 7}]", "['primary=', 'active_slave=']"},
		/* The driver has no such option with this mode. */
		{4, "miimon=5;primary=eth0;arp_interval=5", "[{number: 3, bits: 32, value: 5}]",
		 "['primary=eth0', 'arp_interval=5']"},
		{0, "lacp_rate=1", "[]", "['lacp_rate=1']"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *options = json_array(), *ignored = json_array();
		json_auto_t *want = yaml(cases[i].options), *passed = yaml(cases[i].ignored);
		struct err err = {0};

		if (bond_options_read(cases[i].text, cases[i].mode, options, ignored, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		if (!json_same(options, want) || !json_same(ignored, passed))
			fail_msg("%s: %s", cases[i].text, json_text(options));
	}
}

TEST(what_the_bonding_driver_refuses_is_refused_by_name)
{
	static const struct {
		int mode;
		const char *text, *says;
	} cases[] = {
		{1, "miimon=x", "miimon must be a number"},
		{1, "miimon=", "miimon must be a number"},
		{4, "lacp_rate=fast", "lacp_rate must be a number up to 1"},
		{4, "lacp_rate=2", "lacp_rate must be a number up to 1"},
		{1, "primary=a/b", "primary must be the name of an interface"},
		{1, "active_slave=eth0", "use primary"},
		{1, "arp_interval=5;miimon=5", "arp_interval and miimon"},
		{1, "miimon=5;arp_validate=1", "arp_validate and miimon"},
		{1, "up_delay=5", "up_delay needs miimon"},
		{1, "arp_ip_target=10.0.0.1", "arp_ip_target must be a list"},
		{1, "arp_ip_target=[\"0.0.0.0\"]", "arp_ip_target[0] must be"},
		{1, "arp_ip_target=[\"fd00::1\"]", "arp_ip_target[0] must be"},
		{1, "arp_ip_target=[\"10.0.0.1\",\"10.0.0.1\"]", "has 10.0.0.1 twice"},
		{4, "ad_actor_system=01:00:00:00:00:09", "ad_actor_system must be"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *options = json_array();
		struct err err = {0};

		if (bond_options_read(cases[i].text, cases[i].mode, options, NULL, &err) == 0)
			fail_msg("%s is taken", cases[i].text);
		assert_int_equal(err.class, ERR_INVALID);
		assert_int_equal(json_array_size(options), 0);
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].text, err.text);
	}
}
