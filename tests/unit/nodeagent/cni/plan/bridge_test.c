// SPDX-License-Identifier: Apache-2.0
/* bridge: what its configuration asks for, the steps to it, and what CHECK compares. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/bridge.h"
#include "tests/support/yaml.h"

#define UP "flags: 1"

TEST(the_bridge_is_made_as_asked_and_left_as_it_is)
{
	static const struct {
		const char *config, *link, *steps;
	} cases[] = {
		{"{}", NULL,
		 "[{in: host, do: bridge, dev: cni0, shared: true, filtering: false},"
		 " {in: host, do: sysctl, path: net/ipv6/conf/cni0/accept_ra, value: '0',"
		 "  optional: true, shared: true},"
		 " {in: host, do: link, dev: cni0, shared: true, up: true}]"},
		{"{Bridge: br0, vlan: 5, mtu: 1400, promiscMode: true}", NULL,
		 "[{in: host, do: bridge, dev: br0, shared: true, filtering: true, mtu: 1400},"
		 " {in: host, do: sysctl, path: net/ipv6/conf/br0/accept_ra, value: '0',"
		 "  optional: true, shared: true},"
		 " {in: host, do: link, dev: br0, shared: true, promisc: true},"
		 " {in: host, do: link, dev: br0, shared: true, up: true}]"},
		{"{bridge: br0, vlan: 5}",
		 "{index: 7, name: br0, kind: bridge, filtering: 1, " UP "}", "[]"},
		{"{bridge: br0}", "{index: 7, name: br0, kind: bridge}",
		 "[{in: host, do: link, dev: br0, shared: true, up: true}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *want = yaml(cases[i].steps);
		json_auto_t *link = cases[i].link ? yaml(cases[i].link) : NULL;
		json_auto_t *steps = json_array();
		auto_bridge_config struct bridge_config read = {0};

		assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
		assert_int_equal(bridge_plan(&read, link, steps, NULL), 0);
		if (!json_same(steps, want))
			fail_msg("case %zu: %s", i, json_text(steps));
	}
}

TEST(a_port_has_what_the_configuration_asks_for)
{
	static const char BRIDGE[] = "{index: 7, name: br0, kind: bridge, pvid: 3}";
	static const struct {
		const char *config, *args, *steps;
	} cases[] = {
		{"{bridge: br0}", NULL,
		 "[{in: pod, do: veth, dev: net1, peer: v1, exclusive: true},"
		 " {in: host, do: link, dev: v1, master: 7},"
		 " {in: host, do: port, dev: v1, hairpin: false},"
		 " {in: host, do: link, dev: v1, up: true}]"},
		{"{bridge: br0, mtu: 1400, hairpinMode: true, portIsolation: true, ipam: {type: x},"
		 " args: {cni: {mac: '02:00:00:00:00:0B'}}}",
		 "MAC=02:00:00:00:00:0a",
		 "[{in: pod, do: veth, dev: net1, peer: v1, exclusive: true, mtu: 1400,"
		 "  mac: '02:00:00:00:00:0b'},"
		 " {in: pod, do: sysctl, path: net/ipv6/conf/net1/accept_dad, value: '0',"
		 "  optional: true},"
		 " {in: pod, do: sysctl, path: net/ipv4/conf/net1/arp_notify, value: '1',"
		 "  optional: true},"
		 " {in: host, do: link, dev: v1, master: 7},"
		 " {in: host, do: port, dev: v1, hairpin: true, isolated: true},"
		 " {in: host, do: link, dev: v1, up: true}]"},
		{"{bridge: br0, enabledad: true, ipam: {type: x}}", NULL,
		 "[{in: pod, do: veth, dev: net1, peer: v1, exclusive: true},"
		 " {in: pod, do: sysctl, path: net/ipv6/conf/net1/enhanced_dad, value: '1',"
		 "  optional: true},"
		 " {in: pod, do: sysctl, path: net/ipv6/conf/net1/accept_dad, value: '1',"
		 "  optional: true},"
		 " {in: pod, do: sysctl, path: net/ipv4/conf/net1/arp_notify, value: '1',"
		 "  optional: true},"
		 " {in: host, do: link, dev: v1, master: 7},"
		 " {in: host, do: port, dev: v1, hairpin: false},"
		 " {in: host, do: link, dev: v1, up: true}]"},
		{"{bridge: br0, vlan: 5, disableContainerInterface: true,"
		 " vlanTrunk: [{id: 11}, {minID: 20, maxID: 21}, {minID: 10, maxID: 12}]}",
		 NULL,
		 "[{in: pod, do: veth, dev: net1, peer: v1, exclusive: true, up: false},"
		 " {in: host, do: link, dev: v1, master: 7},"
		 " {in: host, do: port, dev: v1, hairpin: false},"
		 " {in: host, do: unvlans, dev: v1, ids: [[3, 3]]},"
		 " {in: host, do: vlans, dev: v1, ids: [[5, 5]], pvid: true},"
		 " {in: host, do: vlans, dev: v1, ids: [[10, 12], [20, 21]]},"
		 " {in: host, do: link, dev: v1, up: true}]"},
		{"{bridge: br0, preserveDefaultVlan: true, vlanTrunk: [{ID: 4094}]}", NULL,
		 "[{in: pod, do: veth, dev: net1, peer: v1, exclusive: true},"
		 " {in: host, do: link, dev: v1, master: 7},"
		 " {in: host, do: port, dev: v1, hairpin: false},"
		 " {in: host, do: vlans, dev: v1, ids: [[4094, 4094]]},"
		 " {in: host, do: vlans, dev: v1, ids: [[1, 1]], pvid: true},"
		 " {in: host, do: link, dev: v1, up: true}]"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *want = yaml(cases[i].steps);
		json_auto_t *link = yaml(BRIDGE), *steps = json_array();
		auto_bridge_config struct bridge_config read = {0};

		assert_int_equal(bridge_config_read(config, cases[i].args, &read, NULL), 0);
		bridge_plan_port(&read, link, "v1", "net1", steps);
		if (!json_same(steps, want))
			fail_msg("case %zu: %s", i, json_text(steps));
	}
}

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *link, *says;
	} cases[] = {
		{"{ipMasq: true}", NULL, "ipMasq is true"},
		{"{macspoofchk: true}", NULL, "macspoofchk is true"},
		{"{bridge: a/b}", NULL, "the name of an interface"},
		{"{bridge: a234567890123456}", NULL, "the name of an interface"},
		{"{bridge: ..}", NULL, "the name of an interface"},
		{"{bridge: 5}", NULL, "a string"},
		{"{isGateway: 'yes'}", NULL, "true or false"},
		{"{hairpinMode: true, promiscMode: true}", NULL, "must not both"},
		{"{disableContainerInterface: true, ipam: {type: x}}", NULL,
		 "disableContainerInterface is true"},
		{"{vlan: 4095}", NULL, "from 0 to 4094"},
		{"{mtu: -1}", NULL, "mtu is -1"},
		{"{vlanTrunk: {}}", NULL, "a list"},
		{"{vlanTrunk: [5]}", NULL, "vlanTrunk[0] must be an object"},
		{"{vlanTrunk: [{}, {minID: 1}]}", NULL, "vlanTrunk[1] must have minID and maxID"},
		{"{vlanTrunk: [{minID: 9, maxID: 8}]}", NULL, "not the smaller one"},
		{"{vlanTrunk: [{id: 0}]}", NULL, "id is 0"},
		{"{vlanTrunk: [{id: 4095}]}", NULL, "id is 4095"},
		{"{vlanTrunk: [{id: '5'}]}", NULL, "a number"},
		{"{args: {cni: {mac: x}}}", NULL, "six octets"},
		{"{bridge: a1234567890, vlan: 4000, isGateway: true, ipam: {type: x}}", NULL,
		 "a1234567890.4000, whose name is too long"},
		{"{bridge: br0}", "{name: br0, kind: veth}", "not a bridge"},
		{"{bridge: br0, vlan: 5}", "{name: br0, kind: bridge, filtering: 0}",
		 "vlan is given, and the bridge br0 does not filter"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *steps = json_array();
		json_auto_t *link = cases[i].link ? yaml(cases[i].link) : NULL;
		auto_bridge_config struct bridge_config read = {0};
		struct err err = {0};

		if (bridge_config_read(config, NULL, &read, &err) == 0 &&
		    bridge_plan(&read, link, steps, &err) == 0)
			fail_msg("%s is taken", cases[i].config);
		assert_int_equal(err.class, ERR_INVALID);
		/* The first two another plugin of this name could do. */
		assert_string_equal(err.reason, i < 2 ? "NotSupported" : "BadField");
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
		assert_int_equal(json_array_size(steps), 0);
	}
}

TEST(as_many_ranges_as_are_read_are_a_trunk_and_no_more)
{
	json_auto_t *config = yaml("{vlanTrunk: []}");
	struct err err = {0};

	for (int i = 0; i <= BRIDGE_TRUNK_MAX; i++) {
		auto_bridge_config struct bridge_config read = {0};

		json_array_append_new(json_at(config, "vlanTrunk"),
				      json_pack("{s:i, s:i}", "minID", 1, "maxID", 4094));
		assert_int_equal(bridge_config_read(config, NULL, &read, &err),
				 i < BRIDGE_TRUNK_MAX ? 0 : -1);
	}
	assert_non_null(strstr(err.text, "vlanTrunk"));
}

/* ---- gateways -------------------------------------------------------------------------------- */

#define GATEWAY "bridge: br0, isGateway: true, ipam: {type: x}"

TEST(gateways_are_named_where_ipam_names_none)
{
	static const struct {
		const char *config, *result, *want;
	} cases[] = {
		{"{bridge: br0, ipam: {type: x}}", "{ips: [{address: 10.0.0.5/24}], routes: []}",
		 "{ips: [{address: 10.0.0.5/24}], routes: []}"},
		{"{" GATEWAY "}",
		 "{ips: [{address: 10.0.255.5/16}, {address: 'fd00::5/64'},"
		 " {address: 10.1.0.5/24, gateway: 10.1.0.9}], routes: []}",
		 "{ips: [{address: 10.0.255.5/16, gateway: 10.0.0.1},"
		 " {address: 'fd00::5/64', gateway: 'fd00::1'},"
		 " {address: 10.1.0.5/24, gateway: 10.1.0.9}], routes: []}"},
		{"{isDefaultGateway: true, ipam: {type: x}}",
		 "{ips: [{address: 10.0.0.5/24}, {address: 10.1.0.5/24}, {address: 'fd00::5/64'}],"
		 " routes: [{dst: 0.0.0.0/0}, {dst: '::/0', gw: 'fd00::9'}]}",
		 "{ips: [{address: 10.0.0.5/24, gateway: 10.0.0.1},"
		 " {address: 10.1.0.5/24, gateway: 10.1.0.1},"
		 " {address: 'fd00::5/64', gateway: 'fd00::1'}],"
		 " routes: [{dst: 0.0.0.0/0}, {dst: '::/0', gw: 'fd00::9'},"
		 " {dst: 0.0.0.0/0, gw: 10.0.0.1}]}"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *result = yaml(cases[i].result);
		json_auto_t *want = yaml(cases[i].want);
		auto_bridge_config struct bridge_config read = {0};

		assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
		bridge_put_gateways(&read, result);
		if (!json_same(result, want))
			fail_msg("case %zu: %s", i, json_text(result));
	}
}

#define MAC " {in: host, do: link, dev: br0, shared: true, mac: '02:00:00:00:00:01'}"
#define V4  "{ips: [{address: 10.0.0.5/24, gateway: 10.0.0.1}]}"
#define GIVE                                                                                       \
	"{in: host, do: address, dev: br0, shared: true, address: 10.0.0.1/24, broadcast: true}"
#define ROUTE                                                                                      \
	"{in: host, do: sysctl, path: net/ipv4/ip_forward, value: '1', optional: true, shared: "   \
	"true}"

TEST(the_node_has_the_gateways_and_forwards)
{
	static const struct {
		const char *config, *vlan, *addresses, *result, *steps;
		bool forwards;
	} cases[] = {
		{"{" GATEWAY "}", NULL, "[]", V4, "[" MAC ", " GIVE ", " ROUTE "]", false},
		{"{" GATEWAY "}", NULL, "[{index: 7, address: 10.0.0.1/24}]", V4, "[" MAC "]",
		 true},
		{"{" GATEWAY "}", NULL, "[{index: 8, address: 10.0.0.2/24}]", V4,
		 "[" MAC ", " GIVE "]", true},
		{"{" GATEWAY ", forceAddress: true}", NULL, "[{index: 7, address: 10.0.0.2/24}]",
		 V4,
		 "[" MAC
		 ", {in: host, do: unaddress, dev: br0, shared: true, address: 10.0.0.2/24}," GIVE
		 "]",
		 true},
		{"{" GATEWAY "}", NULL, "[{index: 7, address: 'fd01::1/64'}]",
		 "{ips: [{address: 'fd00::5/64', gateway: 'fd00::1'}]}",
		 "[" MAC ", {in: host, do: address, dev: br0, shared: true, address: 'fd00::1/64',"
		 " broadcast: true}, {in: host, do: sysctl, path: net/ipv6/conf/all/forwarding,"
		 " value: '1', optional: true, shared: true}]",
		 false},
		{"{" GATEWAY ", vlan: 5}", NULL, "[{index: 7, address: 10.0.0.2/24}]", V4,
		 "[" MAC
		 ", {in: host, do: vlans, dev: br0, shared: true, ids: [[5, 5]], self: true},"
		 " {in: host, do: upper, dev: br0.5, shared: true, kind: vlan, lower: 7, vlan: 5},"
		 " {in: host, do: link, dev: br0.5, shared: true, up: true},"
		 " {in: host, do: address, dev: br0.5, shared: true, address: 10.0.0.1/24,"
		 " broadcast: true}]",
		 true},
		{"{" GATEWAY ", vlan: 5}", "{index: 9, name: br0.5, " UP "}",
		 "[{index: 9, address: 10.0.0.1/24}]", V4,
		 "[" MAC
		 ", {in: host, do: vlans, dev: br0, shared: true, ids: [[5, 5]], self: true}]",
		 true},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *want = yaml(cases[i].steps);
		json_auto_t *link = yaml("{index: 7, name: br0, mac: '02:00:00:00:00:01'}");
		json_auto_t *vlan = cases[i].vlan ? yaml(cases[i].vlan) : NULL;
		json_auto_t *addresses = yaml(cases[i].addresses), *result = yaml(cases[i].result);
		json_auto_t *steps = json_array();
		auto_bridge_config struct bridge_config read = {0};
		struct bridge_node node = {.link = link,
					   .vlan = vlan,
					   .addresses = addresses,
					   .forwards_v4 = cases[i].forwards,
					   .forwards_v6 = cases[i].forwards};

		assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
		assert_int_equal(bridge_plan_gateways(&read, &node, result, steps, NULL), 0);
		if (!json_same(steps, want))
			fail_msg("case %zu: %s", i, json_text(steps));
	}
}

TEST(another_address_of_the_bridge_is_not_replaced_unasked)
{
	json_auto_t *config = yaml("{" GATEWAY "}"), *link = yaml("{index: 7, name: br0}");
	json_auto_t *addresses = yaml("[{index: 7, address: 10.0.0.2/24}]"), *result = yaml(V4);
	json_auto_t *steps = json_array();
	auto_bridge_config struct bridge_config read = {0};
	struct bridge_node node = {.link = link, .addresses = addresses};
	struct err err = {0};

	assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
	assert_int_equal(bridge_plan_gateways(&read, &node, result, steps, &err), -1);
	assert_int_equal(err.class, ERR_INVALID);
	assert_non_null(strstr(err.text, "forceAddress"));
}

/* ---- CHECK ----------------------------------------------------------------------------------- */

TEST(check_names_what_is_different)
{
	static const char PREVIOUS[] =
		"{interfaces: [{name: br0, mac: '02:00:00:00:00:01'}, {name: v1},"
		" {name: net1, mac: '02:00:00:00:00:02', sandbox: /ns}],"
		" ips: [{address: 10.0.0.5/24, interface: 2}]}";
	static const char POD[] =
		"{links: [{index: 2, name: net1, kind: veth, lower: 8, mac: '02:00:00:00:00:02'}],"
		" addresses: [{dev: net1, address: 10.0.0.5/24}]}";
	static const char BRIDGE[] =
		"{index: 7, name: br0, kind: bridge, mac: '02:00:00:00:00:01'}";
	static const struct {
		const char *config, *bridge, *port, *says;
	} cases[] = {
		{"{bridge: br0}", BRIDGE, "{index: 8, name: v1, master: 7}", NULL},
		{"{bridge: br1}", BRIDGE, "{index: 8, name: v1, master: 7}", "no bridge br1"},
		{"{bridge: br0}", "{index: 7, name: br0, kind: veth}",
		 "{index: 8, name: v1, master: 7}", "no bridge br0"},
		{"{bridge: br0}", "{index: 7, name: br0, kind: bridge, mac: '02:00:00:00:00:09'}",
		 "{index: 8, name: v1, master: 7}", "br0 has MAC 02:00:00:00:00:09"},
		{"{bridge: br0, promiscMode: true}", BRIDGE, "{index: 8, name: v1, master: 7}",
		 "not promiscuous"},
		{"{bridge: br0}", BRIDGE, "{index: 8, name: v1, master: 6}", "not a port of br0"},
		{"{bridge: br0}", BRIDGE, "{index: 9, name: v2, master: 7}", "not a port of br0"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config), *previous = yaml(PREVIOUS);
		json_auto_t *pod = yaml(POD), *bridge = yaml(cases[i].bridge);
		json_auto_t *port = yaml(cases[i].port);
		json_auto_t *host = json_pack("{s:[O, O]}", "links", bridge, port);
		auto_bridge_config struct bridge_config read = {0};
		struct interface_facts facts = {.type = "bridge",
						.ifname = "net1",
						.netns_path = "/ns",
						.previous = previous,
						.pod = pod};
		struct err err = {0};
		int rc;

		assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
		rc = bridge_check(&read, &facts, host, &err);
		if ((rc == 0) != !cases[i].says ||
		    (cases[i].says && !strstr(err.text, cases[i].says)))
			fail_msg("case %zu: says \"%s\"", i, err.text);
	}
}

/* A tenant names both, and the node would look for its own machines behind the bridge. */
TEST(a_gateway_takes_nothing_from_the_node)
{
	static const struct {
		const char *gateway, *addresses, *routes, *peers, *says;
	} cases[] = {
		/* Others behind the default gateway; a network around the node's. */
		{"10.0.0.1/16", "[{index: 2, address: 192.0.2.5/24}]",
		 "[{dst: 0.0.0.0/0, gw: 192.0.2.1, dev: eth0}]", "[198.51.100.7]", NULL},
		{"10.0.0.1/8",
		 "[{index: 2, address: 10.1.0.5/24}, {index: 3, address: 10.9.9.9/32}]",
		 "[{dst: 0.0.0.0/0, gw: 10.1.0.1, dev: eth0}]", "[10.1.0.7]", NULL},
		{"198.51.100.7/24", "[]", "[]", "[198.51.100.7]",
		 "the node's connection to 198.51.100.7; see ss -tnp dst 198.51.100.7"},
		{"198.51.100.1/24", "[]", "[]", "[198.51.100.7]",
		 "the node's connection to 198.51.100.7"},
		/* Both: that of the node lasts. */
		{"198.51.100.1/24", "[]", "[{dst: 10.0.0.0/8, gw: 198.51.100.9, dev: eth0}]",
		 "[198.51.100.7]", "its way by 198.51.100.9"},
		{"192.0.2.1/24", "[{index: 2, address: 192.0.2.5/24}]", "[]", "[]",
		 "the network of its own address 192.0.2.5/24"},
		{"10.9.9.9/24", "[{index: 2, address: 10.9.9.9/32}]", "[]", "[]",
		 "its own address 10.9.9.9/32"},
		{"192.0.2.1/25", "[{index: 2, address: 192.0.2.200/24}]",
		 "[{dst: 0.0.0.0/0, gw: 192.0.2.1, dev: eth0}]", "[]", "its way by 192.0.2.1"},
		{"192.0.2.9/25", "[{index: 2, address: 192.0.2.200/24}]",
		 "[{dst: 0.0.0.0/0, nexthops: [{gw: 192.0.2.1, dev: eth0}]}]", "[]",
		 "its way by 192.0.2.1"},
		{"fd00::1/64", "[{index: 2, address: fd00::5/64}]", "[]", "[]", "fd00::5/64"},
		/* Another address of the bridge, in the network in which the node is by it. */
		{"192.0.2.9/24", "[{index: 4, address: 192.0.2.5/24}]",
		 "[{dst: 0.0.0.0/0, gw: 192.0.2.1, dev: br0}]", "[192.0.2.7]", NULL},
		{"192.0.2.1/24", "[{index: 4, address: 192.0.2.5/24}]",
		 "[{dst: 0.0.0.0/0, gw: 192.0.2.1, dev: br0}]", "[]", "its way by 192.0.2.1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml("{bridge: br0, isGateway: true, ipam: {type: x}}");
		json_auto_t *link = yaml("{index: 4, name: br0, kind: bridge}");
		json_auto_t *addresses = yaml(cases[i].addresses), *routes = yaml(cases[i].routes);
		json_auto_t *peers = yaml(cases[i].peers);
		json_auto_t *networks = json_pack("[s]", cases[i].gateway);
		auto_bridge_config struct bridge_config read = {0};
		struct bridge_node node = {
			.link = link, .addresses = addresses, .routes = routes, .peers = peers};
		struct err err = {0};
		int rc;

		assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
		rc = bridge_check_gateways(&read, &node, networks, &err);
		if ((rc == 0) != !cases[i].says)
			fail_msg("case %zu: %s", i, err.text);
		if (rc == 0)
			continue;
		assert_string_equal(err.reason, "AddressOfNode");
		/* What may end by itself is tried again. */
		assert_int_equal(err.class, strstr(cases[i].says, "node's connection")
						    ? ERR_TRANSIENT
						    : ERR_INVALID);
		if (!strstr(err.text, cases[i].says))
			fail_msg("case %zu: %s", i, err.text);
	}
}

TEST(only_gateways_that_the_node_lacks_are_judged)
{
	json_auto_t *config = yaml("{bridge: br0, isGateway: true, ipam: {type: x}}");
	json_auto_t *link = yaml("{index: 4, name: br0, kind: bridge}");
	json_auto_t *addresses = yaml("[{index: 4, address: 10.0.0.1/24},"
				      " {index: 5, address: 10.1.0.1/24}]");
	json_auto_t *result = yaml("{ips: [{address: 10.0.0.5/24, gateway: 10.0.0.1},"
				   " {address: 10.1.0.5/24, gateway: 10.1.0.1}]}");
	json_auto_t *want = yaml("[10.1.0.1/24]"), *networks = NULL;
	auto_bridge_config struct bridge_config read = {0};
	struct bridge_node node = {.link = link, .addresses = addresses};

	assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
	networks = bridge_new_networks(&read, &node, result);
	assert_true(json_equal(networks, want));
	assert_true(bridge_networks_have(networks, "10.1.0.77"));
	assert_false(bridge_networks_have(networks, "10.0.0.77"));
}

TEST(force_leaves_the_node_the_address_of_its_way_out)
{
	json_auto_t *config =
		yaml("{bridge: br0, isGateway: true, forceAddress: true, ipam: {type: x}}");
	json_auto_t *link = yaml("{index: 4, name: br0, kind: bridge}");
	json_auto_t *addresses = yaml("[{index: 4, address: 192.0.2.5/24}]");
	json_auto_t *routes = yaml("[{dst: 0.0.0.0/0, gw: 192.0.2.1, dev: br0}]");
	json_auto_t *result = yaml("{ips: [{address: 10.0.0.5/24, gateway: 10.0.0.1}]}");
	json_auto_t *steps = json_array();
	auto_bridge_config struct bridge_config read = {0};
	struct bridge_node node = {.link = link, .addresses = addresses, .routes = routes};
	struct err err = {0};

	assert_int_equal(bridge_config_read(config, NULL, &read, NULL), 0);
	assert_int_equal(bridge_plan_gateways(&read, &node, result, steps, &err), -1);
	assert_string_equal(err.reason, "AddressOfNode");
	assert_non_null(strstr(err.text, "192.0.2.5/24 off br0"));
}
