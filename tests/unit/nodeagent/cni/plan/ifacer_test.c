// SPDX-License-Identifier: Apache-2.0
/*
 * ifacer: what its configuration asks for, and the steps from whatever is there to that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/ifacer.h"
#include "tests/support/yaml.h"

#define BOTH "interfaces: [eth1, eth2]"

static void what_is_missing_is_made_and_nothing_twice(void **state)
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

static void what_cannot_be_is_refused_by_name(void **state)
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
		{"{" BOTH ", bond: {options: 'mine=1'}}", "[]", "\"mine\", which is not known"},
		{"{" BOTH ", bond: {options: 'miimon=x'}}", "[]", "miimon must be a number"},
		{"{" BOTH ", bond: {options: 'lacp_rate=256'}}", "[]", "lacp_rate must be"},
		{"{" BOTH ", bond: {}}", "[{index: 3, name: eth1}]", "interfaces has eth2"},
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_missing_is_made_and_nothing_twice),
		cmocka_unit_test(what_cannot_be_is_refused_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
