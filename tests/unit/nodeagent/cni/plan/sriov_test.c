// SPDX-License-Identifier: Apache-2.0
/* The sriov plugin's configuration and decisions, and what IPAM's result becomes. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/interface.h"
#include "nodeagent/cni/plan/result.h"
#include "nodeagent/cni/plan/sriov.h"
#include "nodeagent/cni/plan/steps.h"
#include "tests/support/yaml.h"

#define DEVICE "deviceID: '0000:01:10.0'"

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	static const struct {
		const char *config, *says;
	} cases[] = {
		{"{}", "deviceID"},
		{"{deviceID: mlx5_core.sf.2}", "deviceID"},
		{"{" DEVICE ", vlan: 4095}", "vlan"},
		{"{" DEVICE ", vlan: 1.5}", "vlan"},
		{"{" DEVICE ", vlanQoS: 3}", "vlan must be there"},
		{"{" DEVICE ", vlan: 0, vlanQoS: 3}", "vlan must be from 1"},
		{"{" DEVICE ", vlan: 5, vlanQoS: 8}", "vlanQoS"},
		{"{" DEVICE ", vlan: 5, vlanProto: qinq}", "vlanProto"},
		{"{" DEVICE ", vlan: 0, vlanProto: 802.1AD}", "vlan must be from 1"},
		{"{" DEVICE ", link_state: up}", "link_state"},
		{"{" DEVICE ", min_tx_rate: 9, max_tx_rate: 5}", "min_tx_rate"},
		{"{" DEVICE ", MAC: '03:00:00:00:00:01'}", "mac"},
		{"{" DEVICE ", runtimeConfig: {mac: x}}", "mac"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *config = yaml(cases[i].config);
		auto_sriov_config struct sriov_config read = {0};
		struct err err = {0};

		assert_int_equal(sriov_config_read(config, NULL, &read, &err), -1);
		assert_string_equal(err.reason, "BadField");
		if (!strstr(err.text, cases[i].says))
			fail_msg("%s: says \"%s\"", cases[i].config, err.text);
	}
}

static void assert_mac(const char *config_text, const char *args, const char *want)
{
	json_auto_t *config = yaml(config_text);
	auto_sriov_config struct sriov_config read = {0};

	assert_int_equal(sriov_config_read(config, args, &read, NULL), 0);
	assert_string_equal(read.mac, want);
}

TEST(the_runtimes_mac_comes_before_the_arguments_and_the_nads)
{
	static const char nad[] = "{" DEVICE ", Mac: '02:00:00:00:00:0A'}";
	static const char both[] =
		"{" DEVICE ", mac: '02:00:00:00:00:0A', runtimeConfig: {mac: '02:00:00:00:00:0C'}}";

	assert_mac(nad, "IgnoreUnknown=1;K8S_POD_NAME=p", "02:00:00:00:00:0a");
	assert_mac(nad, "K8S_POD_NAME=p;MAC=02:00:00:00:00:0b", "02:00:00:00:00:0b");
	assert_mac(both, "MAC=02:00:00:00:00:0b", "02:00:00:00:00:0c");
}

static json_t *plan(const char *config_text, const char *now_text, const char *link_text)
{
	json_auto_t *config = yaml(config_text), *now = yaml(now_text), *link = yaml(link_text);
	auto_sriov_config struct sriov_config read = {0};
	struct sriov_facts facts = {
		.pf = "enp1s0",
		.netdev = link ? "enp1s0v0" : NULL,
		.state = now,
		.link = link,
		.ifname = "net1",
	};
	json_t *steps = json_array();

	assert_int_equal(sriov_config_read(config, NULL, &read, NULL), 0);
	sriov_plan(&read, &facts, steps);
	return steps;
}

static const char NOW[] = "{mac: '02:00:00:00:00:01', vlan: 0, qos: 0, proto: 33024, minRate: 0, "
			  "maxRate: 0, spoofchk: true, trust: false, linkState: 0}";

TEST(settings_that_are_so_already_are_not_written)
{
	json_auto_t *steps = plan("{" DEVICE ", vlan: 0, min_tx_rate: 0, max_tx_rate: 0, spoofchk: "
				  "'on', trust: 'no', link_state: auto, mac: '02:00:00:00:00:01'}",
				  NOW, NULL);

	assert_int_equal(json_array_size(steps), 0);
}

TEST(what_differs_is_written_one_by_one_and_put_back)
{
	json_auto_t *steps = plan("{" DEVICE ", vlan: 5, vlanQoS: 3, max_tx_rate: 100, spoofchk: "
				  "'off', link_state: enable}",
				  NOW, NULL);
	json_auto_t *undo = steps_undo(steps);
	json_auto_t *want =
		yaml("[{in: host, do: vf, dev: enp1s0, vf: 0, linkState: 0},"
		     " {in: host, do: vf, dev: enp1s0, vf: 0, spoofchk: true},"
		     " {in: host, do: vf, dev: enp1s0, vf: 0, minRate: 0, maxRate: 0},"
		     " {in: host, do: vf, dev: enp1s0, vf: 0, vlan: 0, qos: 0, proto: 33024}]");

	assert_int_equal(json_array_size(steps), 4);
	assert_true(json_same(undo, want));
}

/* udev or an administrator may rename an interface between the look and the step. */
TEST(devices_of_the_node_have_numbers_in_steps)
{
	json_auto_t *steps = plan("{" DEVICE ", vlan: 5, mac: '02:00:00:00:00:0a'}", NOW,
				  "{name: enp1s0v0, index: 7, mac: '02:00:00:00:00:01'}");
	json_auto_t *vf = yaml("{name: enp1s0v0, index: 7}"),
		    *pf = yaml("{name: enp1s0, index: 3}");
	json_auto_t *undo = NULL;
	size_t i;
	json_t *step;

	steps_number(steps, "host", vf);
	steps_number(steps, "host", pf);
	json_array_foreach (steps, i, step) {
		bool is_pf = str_eq(json_str_at(step, "dev"), "enp1s0");
		bool is_host = str_eq(json_str_at(step, "in"), "host");

		assert_int_equal(json_integer_value(json_at(step, "index")), is_pf     ? 3
									     : is_host ? 7
										       : 0);
	}
	/* On the way back the kernel may have given it another one. */
	undo = steps_undo(steps);
	assert_true(json_array_size(undo) > 0);
	json_array_foreach (undo, i, step)
		assert_null(json_at(step, "index"));
}

TEST(a_new_name_does_not_lose_the_number)
{
	json_auto_t *steps =
		yaml("[{in: host, do: link, dev: ib0}, {in: host, do: rename, dev: ib0, as: a},"
		     " {in: host, do: link, dev: a}, {in: pod, do: link, dev: a},"
		     " {in: host, do: move, dev: a, as: b}, {in: host, do: link, dev: a}]");
	json_auto_t *link = yaml("{name: ib0, index: 9}");
	static const int want[] = {9, 9, 9, 0, 9, 0};

	steps_number(steps, "host", link);
	steps_number(steps, "host", NULL);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_int_equal(json_integer_value(json_at(json_array_get(steps, i), "index")),
				 want[i]);
}

TEST(check_misses_what_somebody_changed)
{
	static const char config_text[] =
		"{" DEVICE ", vlan: 5, vlanQoS: 3, spoofchk: 'off', trust: 'on', max_tx_rate: 100, "
		"mac: '02:00:00:00:00:0a'}";
	static const struct {
		const char *now, *says; /* NULL: nothing is missed */
	} cases[] = {
		{"{vlan: 5, qos: 3, spoofchk: false, trust: true}", NULL},
		/* What this driver does not report. */
		{"{vlan: 5, qos: 3, spoofchk: false}", NULL},
		{"{}", NULL},
		/* Rounded, and the pod's own choice. */
		{"{vlan: 5, qos: 3, maxRate: 96, mac: '02:00:00:00:00:0b'}", NULL},
		{"{vlan: 6, qos: 3, spoofchk: false, trust: true}", "its vlan is 6, 5 was set"},
		{"{vlan: 5, qos: 0, spoofchk: false, trust: true}", "its qos is 0, 3 was set"},
		{"{vlan: 5, qos: 3, spoofchk: true, trust: true}",
		 "its spoofchk is true, false was set"},
		{"{vlan: 5, qos: 3, spoofchk: false, trust: false}",
		 "its trust is false, true was set"},
	};
	json_auto_t *config = yaml(config_text), *nothing = yaml("{" DEVICE "}");
	auto_sriov_config struct sriov_config read = {0}, unasked = {0};

	assert_int_equal(sriov_config_read(config, NULL, &read, NULL), 0);
	assert_int_equal(sriov_config_read(nothing, NULL, &unasked, NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *now = yaml(cases[i].now);
		struct err err = {0};

		assert_int_equal(sriov_check_settings(&unasked, now, NULL), 0);
		assert_int_equal(sriov_check_settings(&read, now, &err), cases[i].says ? -1 : 0);
		if (!cases[i].says)
			continue;
		assert_string_equal(err.reason, "NotAsAdded");
		assert_non_null(strstr(err.text, "settings of 0000:01:10.0"));
		assert_non_null(strstr(err.text, cases[i].says));
	}
}

TEST(the_interface_moves_once_with_its_new_name)
{
	json_auto_t *steps = plan("{" DEVICE ", mac: '02:00:00:00:00:09'}", NOW,
				  "{mac: '02:00:00:00:00:01', flags: 1, altNames: [net1]}");
	static const char *const want[] = {"vf",     "link",   "unalt",  "mac", "move",
					   "sysctl", "sysctl", "sysctl", "link"};

	assert_int_equal(json_array_size(steps), ARRAY_LEN(want));
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_string_equal(json_str_at(json_array_get(steps, i), "do"), want[i]);
	assert_string_equal(json_str_at(json_array_get(steps, 4), "as"), "net1");
}

static const char SAVED[] =
	"{name: enp1s0v0, mac: '02:00:00:00:00:01', mtu: 1500,"
	" settings: [{in: host, do: vf, dev: old, vf: 0, mac: '02:00:00:00:00:01'}]}";

static void assert_return(const char *link_text, bool name_is_free, const char *want_text)
{
	json_auto_t *saved = yaml(SAVED), *link = yaml(link_text), *want = yaml(want_text),
		    *steps = json_array();
	const struct sriov_return facts = {
		.saved = saved,
		.pf = "enp1s0",
		.link = link,
		.name_is_free = name_is_free,
	};
	auto_free char *got = NULL;

	json_array_insert_new(
		want, 0, yaml("{in: host, do: vf, dev: enp1s0, vf: 0, mac: '02:00:00:00:00:01'}"));
	sriov_plan_return(&facts, steps);
	got = json_text(steps);
	if (!json_same(steps, want))
		fail_msg("%s: %s", link_text ? link_text : "no interface", got);
}

TEST(the_length_of_its_queue_comes_back)
{
	json_auto_t *saved = yaml("{name: v0, txqlen: 1000}"), *steps = json_array();
	json_auto_t *link = yaml("{name: v0, txqlen: 7}");
	json_auto_t *want = yaml("[{in: host, do: link, dev: v0, txqlen: 1000}]");
	const struct sriov_return facts = {.saved = saved, .pf = "p0", .link = link};

	sriov_plan_return(&facts, steps);
	assert_true(json_same(steps, want));
	json_array_clear(steps);
	json_put_int(link, "txqlen", 1000);
	sriov_plan_return(&facts, steps);
	assert_int_equal(json_array_size(steps), 0);
}

static void assert_fresh(const char *saved_text, const char *link_text, const char *want_text)
{
	json_auto_t *saved = yaml(saved_text), *link = yaml(link_text), *want = yaml(want_text);
	json_auto_t *steps = json_array();
	auto_free char *got = NULL;

	sriov_plan_fresh("pod", link, saved, steps);
	got = json_text(steps);
	if (!json_same(steps, want))
		fail_msg("%s: %s", link_text, got);
}

/* The kernel keeps all of it on the way back (dev_change_net_namespace()). */
TEST(what_the_pod_did_to_its_vf_does_not_come_back)
{
	static const char saved[] = "{name: enp1s0v0, altNames: [rail0], alias: uplink}";

	assert_fresh(saved, "{name: net1, altNames: [rail0, flannel.1, cali0123], alias: uplink}",
		     "[{in: pod, do: unalt, dev: net1, name: flannel.1}, "
		     "{in: pod, do: unalt, dev: net1, name: cali0123}]");
	/* Its own name as an alternative one is renaming's. */
	assert_fresh(saved, "{name: net1, altNames: [enp1s0v0, rail0], alias: uplink}", "[]");
	assert_fresh(saved, "{name: net1, alias: mine}",
		     "[{in: pod, do: alias, dev: net1, as: uplink}]");
	assert_fresh("{altNames: []}", "{name: net1, alias: mine, flags: 256}",
		     "[{in: pod, do: link, dev: net1, deaf: true}, "
		     "{in: pod, do: alias, dev: net1, as: ''}]");
	assert_fresh("{altNames: []}", "{name: net1, flags: 512, xdp: 2}",
		     "[{in: pod, do: unxdp, dev: net1, mode: 2}, "
		     "{in: pod, do: link, dev: net1, deaf: true}]");
	assert_fresh("{altNames: []}", "{name: net1, flags: 4163, xdp: 4}",
		     "[{in: pod, do: unxdp, dev: net1, mode: 4}, "
		     "{in: pod, do: unxdp, dev: net1, mode: 2}, "
		     "{in: pod, do: unxdp, dev: net1, mode: 8}]");
	/* Of a version that noted none. */
	assert_fresh("{}", "{name: net1, altNames: [rail0]}", "[]");
}

TEST(an_interface_that_is_as_it_was_is_left_alone)
{
	assert_return("{name: enp1s0v0, mac: '02:00:00:00:00:01', mtu: 1500}", true, "[]");
	assert_return(NULL, true, "[]");
}

TEST(the_pf_is_named_where_it_may_have_to_let_a_vf_have_its_address)
{
	assert_return("{name: enp1s0v0, mac: '02:00:00:00:00:09', mtu: 1400}", true,
		      "[{in: host, do: mac, dev: enp1s0v0, mac: '02:00:00:00:00:01', was: "
		      "'02:00:00:00:00:09', pf: enp1s0, vf: 0},"
		      " {in: host, do: link, dev: enp1s0v0, mtu: 1500}]");
}

TEST(an_old_name_comes_back_also_where_it_is_an_alternative_one)
{
	static const char link[] = "{name: net1, mac: '02:00:00:00:00:01', mtu: 1500, flags: 1, "
				   "altNames: [enp1s0v0]}";

	assert_return(link, true,
		      "[{in: host, do: link, dev: net1, up: false},"
		      " {in: host, do: unalt, dev: net1, name: enp1s0v0},"
		      " {in: host, do: rename, dev: net1, as: enp1s0v0}]");
	assert_return(link, false, "[{in: host, do: link, dev: net1, up: false}]");
}

TEST(a_route_takes_the_gateway_of_its_family)
{
	json_auto_t *printed =
		yaml("{cniVersion: 1.1.0, ips: [{address: 10.9.0.5/24, gateway: "
		     "10.9.0.1}, {address: 'fd09::5/64'}], routes: [{dst: 0.0.0.0/0}, "
		     "{dst: 'fd10::/64'}, {dst: 10.8.0.0/16, gw: 10.9.0.2, mtu: 1400, "
		     "priority: 7, table: 101}]}");
	json_auto_t *want = yaml("[{in: pod, do: route, dev: net1, family: 4, table: 254, dst: "
				 "0.0.0.0/0, gw: 10.9.0.1, beside: true},"
				 " {in: pod, do: route, dev: net1, family: 6, table: 254, dst: "
				 "'fd10::/64', beside: true},"
				 " {in: pod, do: route, dev: net1, family: 4, table: 101, dst: "
				 "10.8.0.0/16, gw: 10.9.0.2, metric: 7, mtu: 1400, beside: true}]");
	json_auto_t *read = NULL, *result = result_new(), *steps = json_array(),
		    *routes = json_array();
	size_t i;
	json_t *step;

	assert_int_equal(result_read(printed, NULL, &read, NULL), 0);
	assert_int_equal(interface_adopt(result, read, NULL), 0);
	assert_int_equal(
		json_integer_value(json_at(json_array_get(json_at(result, "ips"), 1), "interface")),
		0);
	interface_plan("net1", result, steps);
	json_array_foreach (steps, i, step)
		if (str_eq(json_str_at(step, "do"), "route"))
			json_array_append(routes, step);
	assert_true(json_same(routes, want));
}

TEST(a_result_without_address_is_refused)
{
	json_auto_t *result = result_new(), *empty = result_new();
	struct err err = {0};

	assert_int_equal(interface_adopt(result, empty, &err), -1);
	assert_string_equal(err.reason, "BadResult");
}
