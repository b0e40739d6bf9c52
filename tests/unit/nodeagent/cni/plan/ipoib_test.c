// SPDX-License-Identifier: Apache-2.0
/* The ipoib plugin's decisions. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/ipoib.h"
#include "nodeagent/cni/plan/steps.h"
#include "tests/support/yaml.h"

static const char MASTER[] = "{index: 7, name: ib0, kind: ipoib, mtu: 2044, pkey: 65535, mode: 1}";

TEST(a_child_has_its_parents_key_and_mode)
{
	json_auto_t *config = yaml("{master: ib0, mtu: 1500}"), *master = yaml(MASTER);
	json_auto_t *steps = json_array(), *undo = NULL;
	json_auto_t *want =
		yaml("[{in: host, do: ipoib, dev: ipoib00000001, lower: 7, pkey: 32767, mode: 1},"
		     " {in: host, do: move, dev: ipoib00000001, as: net1},"
		     " {in: pod, do: link, dev: net1, mtu: 1500},"
		     " {in: pod, do: sysctl, path: net/ipv4/conf/net1/proxy_arp, value: '1'},"
		     " {in: pod, do: sysctl, path: net/ipv4/conf/net1/arp_notify, value: '1'}]");

	assert_int_equal(ipoib_plan(config, master, "ipoib00000001", "net1", steps, NULL), 0);
	assert_true(json_same(steps, want));
	undo = steps_undo(steps);
	assert_string_equal(json_str_at(json_array_get(undo, 0), "do"), "move");
	assert_string_equal(json_str_at(json_array_get(undo, 1), "do"), "unlink");
}

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *master, *says;
	} cases[] = {
		{"{}", NULL, "master must name"},
		{"{master: ib9}", NULL, "none of this name"},
		{"{master: eth0}", "{index: 2, name: eth0, kind: veth, mtu: 1500}", "another kind"},
		{"{master: ib0, mtu: 4096}", MASTER, "mtu"},
		{"{master: ib0, ipam: {type: dhcp}}", MASTER, "dhcp"},
		{"{master: ib0}", "{index: 7, kind: ipoib, mtu: 2044, pkey: 32768}",
		 "partition key"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *master = yaml(cases[i].master);
		json_auto_t *steps = json_array();
		struct err err = {0};

		assert_int_equal(ipoib_plan(config, master, "x", "net1", steps, &err), -1);
		assert_string_equal(err.reason, "BadField");
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
		assert_int_equal(json_array_size(steps), 0);
	}
}
