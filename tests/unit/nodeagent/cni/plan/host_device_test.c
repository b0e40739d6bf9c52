// SPDX-License-Identifier: Apache-2.0
/* host-device: which interface is asked for, which ones the node keeps, and the steps. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/host_device.h"
#include "nodeagent/cni/plan/look.h"
#include "tests/support/yaml.h"

TEST(the_first_of_the_keys_names_the_interface)
{
	static const struct {
		const char *config, *device, *mac, *path, *id;
	} cases[] = {
		{"{Device: eth1, pciBusID: '0000:03:00.2'}", "eth1", "", NULL, NULL},
		{"{hwaddr: '02:00:00:00:00:0A', kernelpath: /sys/devices/x}", NULL,
		 "02:00:00:00:00:0a", NULL, NULL},
		{"{kernelpath: /sys/devices/x, pciBusID: '0000:03:00.2'}", NULL, "",
		 "/sys/devices/x", NULL},
		{"{pciBusID: '0000:03:00.2', device: ''}", NULL, "", NULL, "0000:03:00.2"},
		{"{pciBusID: '0000:03:00.2', runtimeConfig: {deviceID: mlx5_core.sf.4}}", NULL, "",
		 NULL, "mlx5_core.sf.4"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_host_device_config struct host_device_config read = {0};

		assert_int_equal(host_device_config_read(config, &read, NULL), 0);
		if (!str_eq(read.device, cases[i].device) && (read.device || cases[i].device))
			fail_msg("case %zu: device %s", i, read.device);
		assert_string_equal(read.mac, cases[i].mac);
		assert_true(!read.path == !cases[i].path && !read.id == !cases[i].id);
		if (read.path)
			assert_string_equal(read.path, cases[i].path);
		if (read.id)
			assert_string_equal(read.id, cases[i].id);
	}
}

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *says;
	} cases[] = {
		{"{}", "device, hwaddr, kernelpath and pciBusID"},
		{"{device: 5}", "a string"},
		{"{hwaddr: x}", "six octets"},
		{"{kernelpath: /etc}", "below /sys/devices/"},
		{"{kernelpath: /sys/devices/../../etc}", "below /sys/devices/"},
		{"{pciBusID: ../x}", "deviceID \"../x\""},
		{"{runtimeConfig: {deviceID: a/b}}", "deviceID \"a/b\""},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_host_device_config struct host_device_config read = {0};
		struct err err = {0};

		assert_int_equal(host_device_config_read(config, &read, &err), -1);
		assert_string_equal(err.reason, "BadField");
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

TEST(the_node_keeps_what_it_uses_itself)
{
	static const struct {
		const char *link, *addresses, *routes, *links, *says;
	} cases[] = {
		{"{index: 3, name: eth1}",
		 "[{dev: eth1, address: 'fe80::1/64', scope: 253},"
		 " {dev: eth1, address: 192.0.2.1/24, scope: 253}, {dev: eth0, address: "
		 "10.0.0.1/24}]",
		 "[{dev: eth1, dst: 'fe80::/64', table: 254, protocol: 2, type: 1},"
		 " {dev: eth1, dst: 192.0.2.0/24, table: 254, protocol: 2, type: 1},"
		 " {dev: eth1, dst: 'ff00::/8', table: 255, protocol: 2, type: 5},"
		 " {dev: eth0, dst: 0.0.0.0/0, table: 254, type: 1}]",
		 "[{index: 3, name: eth1}, {index: 4, name: v, kind: netkit, lower: 3}]", NULL},
		{"{index: 1, name: lo, flags: 9}", "[]", "[]", "[]", "loopback"},
		{"{index: 3, name: eth1, master: 9}", "[]", "[]", "[]", "a port of a bridge"},
		{"{index: 3, name: eth1}", "[{dev: eth1, address: 10.0.0.1/24}]", "[]", "[]",
		 "the node's address 10.0.0.1/24"},
		{"{index: 3, name: eth1}", "[]",
		 "[{dev: eth1, dst: 0.0.0.0/0, table: 254, type: 1, protocol: 16}]", "[]",
		 "route to 0.0.0.0/0 goes by eth1"},
		{"{index: 3, name: eth1}", "[]",
		 "[{dst: '::/0', table: 100, type: 1, protocol: 9,"
		 " nexthops: [{dev: eth0}, {dev: eth1}]}]",
		 "[]", "route to ::/0 goes by eth1"},
		{"{index: 3, name: eth1}", "[]", "[]",
		 "[{index: 4, name: eth1.5, kind: vlan, lower: 3}]", "eth1.5 is upon eth1"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *link = yaml(cases[i].link), *addresses = yaml(cases[i].addresses);
		json_auto_t *routes = yaml(cases[i].routes), *links = yaml(cases[i].links);
		json_auto_t *host = json_pack("{s:O, s:O, s:O}", "links", links, "addresses",
					      addresses, "routes", routes);
		struct err err = {0};
		int rc = host_device_check("host-device", link, host, &err);

		if ((rc == 0) != !cases[i].says ||
		    (cases[i].says && !strstr(err.text, cases[i].says)))
			fail_msg("case %zu: says \"%s\"", i, err.text);
		if (cases[i].says)
			assert_string_equal(err.reason, "NodeInterface");
	}
}

TEST(it_moves_with_its_name_as_its_alias)
{
	json_auto_t *link = yaml("{index: 3, name: eth1, flags: 1, altNames: [net1, rail0],"
				 " alias: mine, mac: '02:00:00:00:00:01', mtu: 1500, txqlen: 1000,"
				 " parent: '0000:03:00.2'}");
	json_auto_t *want = yaml("[{in: host, do: link, dev: eth1, up: false, was: {up: true}},"
				 " {in: host, do: unalt, dev: eth1, name: net1},"
				 " {in: host, do: alias, dev: eth1, as: eth1},"
				 " {in: host, do: move, dev: eth1, as: net1}, {in: pod, do: link, "
				 "dev: net1, up: true}]");
	json_auto_t *kept = yaml(
		"{name: eth1, device: '0000:03:00.2', alias: mine, mac: '02:00:00:00:00:01',"
		" mtu: 1500, txqlen: 1000, altNames: [net1, rail0], aliased: true, ipam: true}");
	json_auto_t *others = yaml("{links: [{parent: '0000:03:00.2'}, {parent: '0000:03:00.2'}]}");
	json_auto_t *steps = json_array(), *state_now = NULL;

	host_device_plan(link, "net1", steps);
	if (!json_same(steps, want))
		fail_msg("%s", json_text(steps));
	state_now = host_device_state(link, NULL, true);
	if (!json_same(state_now, kept))
		fail_msg("%s", json_text(state_now));
	json_decref(state_now);
	state_now = host_device_state(link, others, true);
	assert_true(json_is_true(json_at(state_now, "shares")));
}

#define F "parent: '0000:03:00.0'"

/* Representors, an uplink, ports of one function: another one than the pod had stays as it is. */
TEST(of_several_of_a_device_it_is_the_one_that_the_pod_had)
{
	static const struct {
		const char *saved, *links;
		bool has_moved;
		int is; /* its index; 0: none */
	} cases[] = {
		/* The only one, under whatever name. */
		{"{name: p0r1, device: '0000:03:00.0'}", "[{index: 5, name: dev5, " F "}]", false,
		 5},
		/* The kernel lists the uplink first. */
		{"{name: p0r1, device: '0000:03:00.0', shares: true}",
		 "[{index: 2, name: p0, " F "}, {index: 5, name: net1, alias: p0r1, " F "}]", false,
		 5},
		{"{name: p0r1, device: '0000:03:00.0'}",
		 "[{index: 2, name: p0, " F "}, {index: 5, name: p0r1, " F "}]", false, 5},
		{"{name: p0r1, device: '0000:03:00.0'}",
		 "[{index: 2, name: p0r1, " F "}, {index: 5, name: vf0, alias: p0r1, " F "}]", true,
		 5},
		{"{name: p0r1, device: '0000:03:00.0'}",
		 "[{index: 2, name: p0, " F "}, {index: 5, name: p0r0, " F "}]", true, 0},
		/* The other one is left alone there. */
		{"{name: p0r1, device: '0000:03:00.0', shares: true}",
		 "[{index: 2, name: p0, " F "}]", false, 0},
		{"{name: p0r1, device: '0000:03:00.0'}", "[{index: 9, name: p0r1, alias: p0r1}]",
		 true, 0},
		/* Kernels that do not name the device, and devices that have none. */
		{"{name: eth1}", "[{index: 5, name: net1, alias: eth1}]", false, 5},
		{"{name: eth1}", "[{index: 5, name: eth1}]", true, 5},
		{"{name: eth1}", "[{index: 5, name: eth1}]", false, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *saved = yaml(cases[i].saved), *links = yaml(cases[i].links);
		json_auto_t *host = json_pack("{s:O}", "links", links);
		const json_t *link = host_device_on_node(host, saved, cases[i].has_moved);

		if (look_number(link, "index") != cases[i].is)
			fail_msg("case %zu: %lld", i, (long long)look_number(link, "index"));
	}
}

TEST(in_the_pod_its_mark_goes_before_its_device)
{
	static const struct {
		const char *saved, *links;
		int is;
	} cases[] = {
		{"{name: p1, device: '0000:03:00.0', index: 7}",
		 "[{index: 6, name: net1, " F "}, {index: 7, name: net2, " F "}]", 7},
		{"{name: p1, device: '0000:03:00.0'}",
		 "[{index: 6, name: net1, alias: p0, " F "}, {index: 7, alias: p1, " F "}]", 7},
		{"{name: p1, device: '0000:03:00.0', index: 7}", "[{index: 6, name: net1, " F "}]",
		 6},
		/* The pod's other port, after this one has left. */
		{"{name: p1, device: '0000:03:00.0', index: 7, shares: true}",
		 "[{index: 6, name: net1, " F "}]", 0},
		{"{name: p1, device: '0000:03:00.0', index: 7}", "[{index: 7, name: mine}]", 0},
		{"{name: eth1, index: 7}", "[{index: 7, name: net1}]", 7},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *saved = yaml(cases[i].saved), *links = yaml(cases[i].links);
		json_auto_t *pod = json_pack("{s:O}", "links", links);
		const json_t *link = host_device_in_pod(pod, saved);

		if (look_number(link, "index") != cases[i].is)
			fail_msg("case %zu: %lld", i, (long long)look_number(link, "index"));
	}
}
