// SPDX-License-Identifier: Apache-2.0
/*
 * macvlan, ipvlan and vlan: what their configurations ask for, the steps to it, and what CHECK
 * compares.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/upper.h"
#include "tests/support/yaml.h"

static const char MASTER[] = "{index: 7, name: eth1, kind: veth, mtu: 1500}";
static const char PREVIOUS[] = "{interfaces: [{name: eth1, mac: '02:00:00:00:00:01'}],"
			       " ips: [{address: 10.0.0.5/24}], routes: [], dns: {}}";

TEST(steps_are_as_the_configuration_asks)
{
	static const struct {
		const char *type, *config, *args, *steps;
	} cases[] = {
		{"macvlan", "{master: eth1}", NULL,
		 "[{in: host, do: upper, dev: ow1, kind: macvlan, lower: 7, to: pod, mode: 4},"
		 " {in: pod, do: rename, dev: ow1, as: net1}]"},
		{"macvlan",
		 "{Master: eth1, mode: passthru, mtu: 1400, mac: '02:00:00:00:00:01', bcQueueLen: "
		 "9,"
		 " ipam: {type: x}}",
		 "IgnoreUnknown=1;MAC=02:00:00:00:00:0A",
		 "[{in: host, do: upper, dev: ow1, kind: macvlan, lower: 7, to: pod, mode: 8,"
		 "  mtu: 1400, queue: 9, mac: '02:00:00:00:00:0a'},"
		 " {in: pod, do: rename, dev: ow1, as: net1},"
		 " {in: pod, do: sysctl, path: net/ipv4/conf/net1/arp_notify, value: '1',"
		 "  optional: true},"
		 " {in: pod, do: sysctl, path: net/ipv6/conf/net1/ndisc_notify, value: '1',"
		 "  optional: true}]"},
		{"macvlan", "{master: eth1, runtimeConfig: {mac: '02:00:00:00:00:0b'}}",
		 "MAC=02:00:00:00:00:0a",
		 "[{in: host, do: upper, dev: ow1, kind: macvlan, lower: 7, to: pod, mode: 4,"
		 "  mac: '02:00:00:00:00:0b'},"
		 " {in: pod, do: rename, dev: ow1, as: net1}]"},
		{"dummy", "{master: eth1, mtu: 1400, mode: x, ipam: {type: x}}", NULL,
		 "[{in: pod, do: upper, dev: ow1, kind: dummy},"
		 " {in: pod, do: rename, dev: ow1, as: net1}]"},
		{"vlan", "{master: eth1, vlanId: 100, linkInContainer: true, ipam: {type: x}}",
		 NULL,
		 "[{in: pod, do: upper, dev: ow1, kind: vlan, lower: 7, vlan: 100},"
		 " {in: pod, do: rename, dev: ow1, as: net1}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *master = yaml(MASTER);
		json_auto_t *steps = json_array(), *want = yaml(cases[i].steps);
		auto_upper_config struct upper_config read = {0};

		assert_int_equal(
			upper_config_read(cases[i].type, config, cases[i].args, NULL, &read, NULL),
			0);
		assert_int_equal(upper_plan(&read, master, "ow1", "net1", steps, NULL), 0);
		if (!json_same(steps, want))
			fail_msg("case %zu: %s", i, json_text(steps));
	}
}

TEST(ipvlan_takes_addresses_and_master_from_the_plugin_before)
{
	json_auto_t *config = yaml("{mode: l3s}"), *previous = yaml(PREVIOUS);
	auto_upper_config struct upper_config read = {0};

	assert_int_equal(upper_config_read("ipvlan", config, NULL, previous, &read, NULL), 0);
	assert_string_equal(read.master, "eth1");
	assert_ptr_equal(read.inherited, previous);
	assert_false(read.has_ipam);
	assert_int_equal(read.mode, 2);
}

TEST(macvlan_does_not)
{
	json_auto_t *config = yaml("{}"), *previous = yaml(PREVIOUS);
	auto_upper_config struct upper_config read = {0};

	assert_int_equal(upper_config_read("macvlan", config, NULL, previous, &read, NULL), 0);
	assert_null(read.master);
	assert_null(read.inherited);
}

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *type, *config, *previous, *master, *says;
	} cases[] = {
		{"macvlan", "{mode: l2}", NULL, MASTER, "bridge, private, vepa, passthru"},
		{"ipvlan", "{mode: bridge, ipam: {type: x}}", NULL, MASTER, "l2, l3, l3s"},
		{"macvlan", "{mtu: -1}", NULL, MASTER, "mtu is -1"},
		{"macvlan", "{mtu: 1400.5}", NULL, MASTER, "mtu is 1400.5"},
		{"macvlan", "{mtu: '1400'}", NULL, MASTER, "a number"},
		{"macvlan", "{master: eth1, mtu: 1501}", NULL, MASTER,
		 "from 0 to 1500, which eth1"},
		{"macvlan", "{master: 5}", NULL, MASTER, "a string"},
		{"macvlan", "{linkInContainer: 'yes'}", NULL, MASTER, "true or false"},
		{"macvlan", "{mac: '01:00:00:00:00:00'}", NULL, MASTER, "one station"},
		{"macvlan", "{mac: x}", NULL, MASTER, "six octets"},
		{"macvlan", "{bcqueuelen: -1}", NULL, MASTER, "bcqueuelen"},
		{"macvlan", "{master: eth9}", NULL, NULL, "interface of the node, which has none"},
		{"macvlan", "{}", NULL, NULL, "node has no default route"},
		{"macvlan", "{linkInContainer: true}", NULL, NULL, "pod has no default route"},
		{"vlan", "{vlanId: 5, ipam: {type: x}}", NULL, MASTER, "master is missing"},
		{"vlan", "{master: eth1, vlanId: 4095, ipam: {type: x}}", NULL, MASTER,
		 "from 0 to 4094"},
		{"vlan", "{master: eth1, vlanId: '5', ipam: {type: x}}", NULL, MASTER, "a number"},
		{"vlan", "{master: eth1, vlanId: 5}", NULL, MASTER, "ipam.type is missing"},
		{"ipvlan", "{master: eth1}", NULL, MASTER, "ipam.type is missing"},
		{"dummy", "{}", NULL, NULL, "ipam.type is missing"},
		{"ipvlan", "{}",
		 "{interfaces: [{name: a}, {name: b}], ips: [{address: 10.0.0.5/24}]}", MASTER,
		 "has 2"},
		{"ipvlan", "{}", "{interfaces: [], ips: [{address: 10.0.0.5/24}]}", MASTER,
		 "has 0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		json_auto_t *previous = cases[i].previous ? yaml(cases[i].previous) : NULL;
		json_auto_t *master = cases[i].master ? yaml(cases[i].master) : NULL;
		json_auto_t *steps = json_array();
		auto_upper_config struct upper_config read = {0};
		struct err err = {0};

		if (upper_config_read(cases[i].type, config, NULL, previous, &read, &err) == 0 &&
		    upper_plan(&read, master, "ow1", "net1", steps, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_int_equal(err.class, ERR_INVALID);
		assert_string_equal(err.reason, "BadField");
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
		assert_int_equal(json_array_size(steps), 0);
	}
}

TEST(the_first_default_route_names_the_master)
{
	static const struct {
		const char *routes, *want;
	} cases[] = {
		{"[]", NULL},
		{"[{table: 254, type: 1, dst: 10.0.0.0/8, dev: eth9},"
		 " {table: 100, type: 1, dst: 0.0.0.0/0, dev: eth8},"
		 " {table: 254, type: 7, dst: '::/0', dev: lo},"
		 " {table: 254, type: 1, dst: 0.0.0.0/0, dev: eth1},"
		 " {table: 254, type: 1, dst: 0.0.0.0/0, dev: eth2}]",
		 "eth1"},
		{"[{table: 254, type: 1, dst: '::/0', dev: eth6}]", "eth6"},
		{"[{table: 254, type: 1, dst: 0.0.0.0/0, nexthops: [{dev: eth3}, {dev: eth4}]}]",
		 "eth3"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *routes = yaml(cases[i].routes);
		json_auto_t *look = json_pack("{s:O}", "routes", routes);
		const char *got = upper_default_master(look);

		if (!str_eq(got, cases[i].want))
			fail_msg("case %zu: %s", i, got ? got : "none");
	}
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

static const char ADDED[] =
	"{interfaces: [{name: net1, mac: '02:00:00:00:00:01', sandbox: /ns}],"
	" ips: [{address: 10.0.0.5/24, interface: 0}, {address: 10.9.9.9/24, interface: 1}],"
	" routes: [{dst: 0.0.0.0/0}, {dst: 10.8.0.0/16, gw: 10.0.0.9}]}";
static const char ADDRESSES[] = "[{dev: net1, address: 10.0.0.5/24}]";
static const char ROUTES[] = "[{dst: 0.0.0.0/0, gw: 10.0.0.1, table: 101},"
			     " {dst: 10.8.0.0/16, gw: 10.0.0.9, table: 254}]";
static const char LINK[] =
	"[{name: net1, kind: macvlan, mode: 4, mac: '02:00:00:00:00:01', mtu: 1500}]";

TEST(check_names_what_is_different)
{
	static const struct {
		const char *type, *config, *previous, *links, *addresses, *routes, *says;
		bool has_no_master;
	} cases[] = {
		{"macvlan", "{master: eth1}", ADDED, LINK, ADDRESSES, ROUTES, NULL, false},
		{"macvlan", "{}", ADDED, LINK, ADDRESSES, ROUTES, NULL, true},
		{"macvlan", "{master: eth1}", NULL, LINK, ADDRESSES, ROUTES,
		 "prevResult is missing", false},
		{"macvlan", "{master: eth1}", "{interfaces: [{name: net1, sandbox: /other}]}", LINK,
		 ADDRESSES, ROUTES, "no interface net1 in /ns", false},
		{"macvlan", "{master: eth1}", ADDED, LINK, ADDRESSES, ROUTES, "eth1 is gone", true},
		{"macvlan", "{master: eth1}", ADDED, "[]", ADDRESSES, ROUTES, "no interface net1",
		 false},
		{"ipvlan", "{master: eth1, ipam: {type: x}}", ADDED, LINK, ADDRESSES, ROUTES,
		 "of kind macvlan", false},
		{"macvlan", "{master: eth1, mode: vepa}", ADDED, LINK, ADDRESSES, ROUTES,
		 "has mode bridge, the network says vepa", false},
		{"macvlan", "{master: eth1}", ADDED,
		 "[{name: net1, kind: macvlan, mode: 4, mac: '02:00:00:00:00:02'}]", ADDRESSES,
		 ROUTES, "has MAC 02:00:00:00:00:02", false},
		{"macvlan", "{master: eth1}", ADDED, LINK, "[{dev: net2, address: 10.0.0.5/24}]",
		 ROUTES, "no address 10.0.0.5/24", false},
		{"macvlan", "{master: eth1}", ADDED, LINK, ADDRESSES,
		 "[{dst: 0.0.0.0/0, gw: 10.0.0.1}]", "no route to 10.8.0.0/16 via 10.0.0.9", false},
		{"dummy", "{ipam: {type: x}}", ADDED,
		 "[{name: net1, kind: dummy, mac: '02:00:00:00:00:01', flags: 1}]", ADDRESSES,
		 ROUTES, NULL, true},
		{"dummy", "{ipam: {type: x}}", ADDED,
		 "[{name: net1, kind: dummy, mac: '02:00:00:00:00:01'}]", ADDRESSES, ROUTES,
		 "net1 is down", true},
		{"vlan", "{master: eth1, vlanId: 5, mtu: 1500, ipam: {type: x}}", ADDED,
		 "[{name: net1, kind: vlan, vlan: 5, mac: '02:00:00:00:00:01', mtu: 1500}]",
		 ADDRESSES, ROUTES, NULL, false},
		{"vlan", "{master: eth1, vlanId: 6, ipam: {type: x}}", ADDED,
		 "[{name: net1, kind: vlan, vlan: 5, mac: '02:00:00:00:00:01', mtu: 1500}]",
		 ADDRESSES, ROUTES, "has VLAN 5, the network says 6", false},
		{"vlan", "{master: eth1, vlanId: 5, mtu: 1400, ipam: {type: x}}", ADDED,
		 "[{name: net1, kind: vlan, vlan: 5, mac: '02:00:00:00:00:01', mtu: 1500}]",
		 ADDRESSES, ROUTES, "has MTU 1500, the network says 1400", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *master = yaml(MASTER);
		json_auto_t *previous = cases[i].previous ? yaml(cases[i].previous) : NULL;
		json_auto_t *links = yaml(cases[i].links), *addresses = yaml(cases[i].addresses);
		json_auto_t *routes = yaml(cases[i].routes);
		json_auto_t *pod = json_pack("{s:O, s:O, s:O}", "links", links, "addresses",
					     addresses, "routes", routes);
		auto_upper_config struct upper_config read = {0};
		struct interface_facts facts = {
			.type = cases[i].type,
			.ifname = "net1",
			.netns_path = "/ns",
			.previous = previous,
			.pod = pod,
		};
		struct err err = {0};
		int rc;

		assert_int_equal(upper_config_read(cases[i].type, config, NULL, NULL, &read, NULL),
				 0);
		rc = upper_check(&read, &facts, cases[i].has_no_master ? NULL : master, &err);
		if ((rc == 0) != !cases[i].says ||
		    (cases[i].says && !strstr(err.text, cases[i].says)))
			fail_msg("case %zu: says \"%s\"", i, err.text);
	}
}
