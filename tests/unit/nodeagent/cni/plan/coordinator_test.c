// SPDX-License-Identifier: Apache-2.0
/* The coordinator's decisions that the recorded cases do not show, and the way back. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/coordinator.h"
#include "nodeagent/cni/plan/frame.h"
#include "nodeagent/cni/plan/steps.h"
#include "tests/support/yaml.h"

static const char SETTINGS[] =
	"{mode: auto, tunePodRoutes: true, overlayPodCIDR: [192.168.0.0/18], "
	"serviceCIDR: [10.233.0.0/18]}";

static int read_config(const char *config, const char *settings, struct coordinator_config *ret,
		       struct err *err)
{
	json_auto_t *nad = yaml(config), *cluster = settings ? yaml(settings) : NULL;
	int code = coordinator_config_read(nad, cluster, ret, err);

	/* Texts are borrowed; these tests look at none. */
	if (code == 0)
		ret->first_nic = ret->default_route_nic = "";
	return code;
}

static void assert_refused(const char *config, const char *settings, const char *reason,
			   const char *says)
{
	auto_coordinator_config struct coordinator_config read = {0};
	struct err err = {0};

	assert_int_equal(read_config(config, settings, &read, &err), -1);
	assert_string_equal(err.reason, reason);
	if (!strstr(err.text, says))
		fail_msg("%s: says \"%s\"", config, err.text);
}

TEST(a_configuration_that_cannot_be_is_refused_by_name)
{
	assert_refused("{mode: lax}", SETTINGS, "BadField", "mode");
	assert_refused("{podMACPrefix: '0b:1b'}", SETTINGS, "BadField", "podMACPrefix");
	assert_refused("{podMACPrefix: '0a1bc'}", SETTINGS, "BadField", "podMACPrefix");
	assert_refused("{hijackCIDR: [10.0.0.0/33]}", SETTINGS, "BadField", "hijackCIDR");
	assert_refused("{policyRoutes: [{dst: 172.20.0.0/16, gw: 'fd07::1'}]}", SETTINGS,
		       "BadField", "same IP family");
	assert_refused("{podRPFilter: 3}", SETTINGS, "BadField", "podRPFilter");
	assert_refused("{hostRuleTable: 253}", SETTINGS, "BadField", "253 to 255");
	assert_refused("{hostRuleTable: 254}", SETTINGS, "BadField", "hostRuleTable");
	assert_refused("{hostRuleTable: 255}", SETTINGS, "BadField", "hostRuleTable");
	assert_refused("{txQueueLen: 1.5}", SETTINGS, "BadField", "txQueueLen");
	assert_refused("{}", NULL, "CoordinatorNotReady", "SpiderCoordinator");
	assert_refused("{}", "{mode: auto}", "CoordinatorNotReady", "tunePodRoutes");
}

TEST(a_machine_that_migrates_is_in_conflict_with_nobody)
{
	static const char migrating[] =
		"{mode: auto, tunePodRoutes: true, overlayPodCIDR: [], serviceCIDR: [], "
		"migrating: true}";
	auto_coordinator_config struct coordinator_config stays = {0}, moves = {0};

	assert_int_equal(read_config("{detectIPConflict: true, detectGateway: true}", SETTINGS,
				     &stays, NULL),
			 0);
	assert_true(stays.detect_conflict && stays.detect_gateway);
	assert_int_equal(read_config("{detectIPConflict: true, detectGateway: true}", migrating,
				     &moves, NULL),
			 0);
	assert_true(!moves.detect_conflict && moves.detect_gateway);
}

TEST(the_nad_comes_before_the_cluster_and_forgives_blanks)
{
	auto_coordinator_config struct coordinator_config read = {0};

	assert_int_equal(read_config("{mode: disabled}", NULL, &read, NULL), 0);
	assert_int_equal(read.mode, COORDINATOR_DISABLED);
	coordinator_config_done(&read);
	assert_int_equal(
		read_config("{mode: overlay, hijackCIDR: [' 1.1.1.1/16'], podRPFilter: -2, "
			    "txQueueLen: 2000.0, podMACPrefix: 0A-1b}",
			    SETTINGS, &read, NULL),
		0);
	assert_int_equal(read.mode, COORDINATOR_OVERLAY);
	assert_true(json_list_has(read.cidrs, "1.1.0.0/16"));
	assert_int_equal(json_array_size(read.cidrs), 3);
	assert_int_equal(read.rp_filter, -1);
	assert_int_equal(read.txqueuelen, 2000);
	assert_int_equal(read.mac_prefix[0], 0x0a);
	assert_int_equal(read.host_table, 500);
}

static int64_t table_of(const char *routes)
{
	auto_free char *text = str_printf("{links: [{index: 1, name: lo, flags: 73},"
					  " {index: 2, name: eth0, flags: 4163},"
					  " {index: 4, name: net2, flags: 4163}],"
					  " addresses: [{dev: net2, address: 10.8.0.52/24}],"
					  " routes: %s}",
					  routes);
	json_auto_t *pod = yaml(text);
	struct coordinator_config config = {.first_nic = "eth0"};
	auto_coordinator_role struct coordinator_role role = {0};

	assert_int_equal(coordinator_role_of(&config, "net2", pod, &role, NULL), 0);
	return role.table;
}

TEST(a_table_that_another_nic_routes_by_is_not_given_twice)
{
	assert_int_equal(table_of("[]"), 101);
	assert_int_equal(table_of("[{table: 101, dev: eth0, dst: 10.0.0.0/8}]"), 101);
	assert_int_equal(table_of("[{table: 101, dev: net3, dst: 10.0.0.0/8}]"), 102);
}

static void assert_role(const char *mode, const char *ifname, const char *pod_text,
			const char *reason)
{
	json_auto_t *pod = yaml(pod_text);
	struct coordinator_config config = {
		.mode = str_eq(mode, "overlay") ? COORDINATOR_OVERLAY : COORDINATOR_UNDERLAY,
		.first_nic = "eth0",
	};
	auto_coordinator_role struct coordinator_role role = {0};
	struct err err = {0};

	assert_int_equal(coordinator_role_of(&config, ifname, pod, &role, &err), -1);
	assert_string_equal(err.reason, reason);
}

TEST(a_nic_that_the_mode_does_not_fit_is_refused)
{
	static const char both[] =
		"{links: [{name: eth0}, {name: net1}], addresses: ["
		"{dev: eth0, address: 10.6.0.5/24}, {dev: net1, address: 10.7.0.5/24}]}";
	static const char with_veth[] = "{links: [{name: eth0}, {name: veth0}, {name: net1}], "
					"addresses: [{dev: net1, address: 10.7.0.5/24}]}";

	assert_role("overlay", "eth0", both, "BadMode");
	assert_role("underlay", "net1", both, "BadMode");
	assert_role("overlay", "net1", with_veth, "BadMode");
	assert_role("overlay", "net9", both, "NicMissing");
	assert_role("underlay", "eth0", with_veth, "NoAddress");
}

static const char *services = "[]"; /* networks of plan_on() */

/* ADD of net1 with 198.51.100.7/24 on a node like this. */
static int plan_on(const char *host_text, const char *granted_text, int64_t table, struct err *err)
{
	json_auto_t *pod =
		yaml("{links: [{index: 2, name: eth0, mac: '02:00:00:00:00:02', flags: 4163}, "
		     "{index: 3, name: net1, mac: '02:00:00:00:00:03', flags: 4163}], addresses: "
		     "[{dev: eth0, address: 10.6.0.5/24}, {dev: net1, address: 198.51.100.7/24}]}");
	json_auto_t *host = yaml(host_text), *steps = json_array();
	json_auto_t *granted = granted_text ? yaml(granted_text) : NULL;
	json_auto_t *peer = yaml("{index: 9, name: cali1, mac: '02:00:00:00:00:09'}");
	json_auto_t *networks = yaml(services);
	const struct coordinator_config config = {.mode = COORDINATOR_OVERLAY,
						  .first_nic = "eth0",
						  .host_table = table,
						  .services = networks};
	auto_coordinator_role struct coordinator_role role = {0};
	const struct coordinator_facts facts = {.pod = pod,
						.host = host,
						.granted = granted,
						.peer = peer,
						.ifname = "net1",
						.container_id = "c1"};
	int rc;

	if (err)
		*err = (struct err){0};
	assert_int_equal(coordinator_role_of(&config, "net1", pod, &role, NULL), 0);
	rc = coordinator_plan(&config, &role, &facts, steps, err);
	if (rc < 0)
		assert_int_equal(json_array_size(steps), 0);
	return rc;
}

#define WAY(route) "{ways: {198.51.100.7/24: " route "}}"

/* An author of networks, or an annotation, chooses it; before main it would be the node's, too. */
TEST(an_address_that_the_node_needs_is_no_pod_s)
{
	static const struct {
		const char *host, *says;
	} cases[] = {
		{"{addresses: [{dev: ens1, address: 198.51.100.7/16}]}", "which is the node's"},
		/* Of an interface that its list leaves out. */
		{WAY("{type: 2, dev: lo}"), "which is the node's"},
		{WAY("{type: 3, dev: ens1}"), "which is the node's"},
		{"{gateways: [192.0.2.1, 198.51.100.7]}", "a gateway of the node"},
		{WAY("{type: 1, dev: ens1, gw: 192.0.2.1}"), "through a gateway"},
		{WAY("{type: 1, dev: ens1, via: true}"), "through a gateway"},
		{WAY("{type: 1, nexthops: [{dev: ens1, gw: 192.0.2.1}]}"), "through a gateway"},
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(plan_on(cases[i].host, NULL, 500, &err), -1);
		assert_string_equal(err.reason, "AddressOfNode");
		assert_non_null(strstr(err.text, cases[i].says));
	}
	/* On the link, to a pod before this one, unknown. */
	assert_int_equal(plan_on(WAY("{type: 1, dev: ens2}"), NULL, 500, &err), 0);
	assert_int_equal(plan_on(WAY("{type: 1, dev: veth0, table: 500}"), NULL, 500, &err), 0);
	assert_int_equal(plan_on("{gateways: [192.0.2.1]}", NULL, 500, &err), 0);
}

/* A pool over the virtual address of the API server, which may be on the node's link. */
TEST(no_pool_vouches_for_the_address_that_the_kubelet_needs)
{
	struct err err;

	assert_int_equal(plan_on("{reached: [198.51.100.7]}", "[198.51.100.7/24]", 500, &err), -1);
	assert_string_equal(err.reason, "AddressOfNode");
	/* It may have probed the pod before: the runtime tries again. */
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_int_equal(plan_on("{reached: [198.51.100.70]}", NULL, 500, &err), 0);
}

TEST(no_pool_vouches_for_the_address_of_a_service)
{
	services = "[198.51.96.0/20]";
	for (int i = 0; i < 2; i++) {
		struct err err;

		assert_int_equal(plan_on("{}", i ? "[198.51.100.7/24]" : NULL, 500, &err), -1);
		assert_string_equal(err.reason, "AddressOfNode");
		assert_int_equal(err.class, ERR_INVALID);
		assert_non_null(strstr(err.text, "network of Services"));
	}
	services = "[198.51.101.0/24, 'fd00::/8']";
	assert_int_equal(plan_on("{}", NULL, 500, NULL), 0);
	services = "[]";
}

/* A fabric of its own, which the node knows by its default route only. */
TEST(an_ip_pool_vouches_for_an_address_behind_a_gateway_and_no_other)
{
	static const char behind[] = WAY("{type: 1, dev: ens1, gw: 192.0.2.1}");
	struct err err;

	assert_int_equal(plan_on(behind, "[198.51.100.7/24]", 500, &err), 0);
	assert_int_equal(plan_on(behind, "[198.51.100.8/24, nonsense]", 500, &err), -1);
	assert_int_equal(plan_on("{gateways: [198.51.100.7]}", "[198.51.100.7/24]", 500, &err), -1);
	assert_int_equal(plan_on("{addresses: [{dev: ens1, address: 198.51.100.7/24}]}",
				 "[198.51.100.7/24]", 500, &err),
			 -1);
}

TEST(a_table_that_others_use_is_not_ours)
{
	static const char *const others[] = {
		"{rules: [{family: 4, priority: 100, table: 77}]}",
		"{rules: [{family: 4, priority: 1000, table: 77, from: 10.0.0.0/8}]}",
		"{rules: [{family: 4, priority: 1000, table: 77, mark: 1}]}",
		/* A VRF has routes and a rule that names no table. */
		"{routes: [{family: 4, table: 77, dst: 0.0.0.0/0, gw: 192.0.2.1, dev: ens1}]}",
		"{routes: [{family: 4, table: 77, dst: 10.0.0.0/8, dev: ens1}]}",
	};
	struct err err;

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		assert_int_equal(plan_on(others[i], NULL, 77, &err), -1);
		assert_string_equal(err.reason, "BadField");
		assert_non_null(strstr(err.text, "hostRuleTable: 77"));
		assert_int_equal(plan_on(others[i], NULL, 78, &err), 0);
	}
	assert_int_equal(plan_on("{rules: [{family: 4, priority: 1000, table: 77}], routes: "
				 "[{family: 4, table: 77, dst: 10.6.0.9/32, dev: cali2}]}",
				 NULL, 77, &err),
			 0);
}

TEST(a_pod_whose_first_nic_leads_nowhere_is_refused)
{
	json_auto_t *pod =
		yaml("{links: [{index: 2, name: eth0, flags: 4163}, {index: 3, name: net1, "
		     "flags: 4163}], addresses: [{dev: net1, address: 10.7.0.5/24}]}");
	json_auto_t *host = yaml("{}"), *steps = json_array();
	struct coordinator_config config = {.mode = COORDINATOR_OVERLAY, .first_nic = "eth0"};
	auto_coordinator_role struct coordinator_role role = {0};
	struct coordinator_facts facts = {.pod = pod, .host = host, .ifname = "net1"};
	struct err err = {0};

	assert_int_equal(coordinator_role_of(&config, "net1", pod, &role, NULL), 0);
	assert_int_equal(coordinator_plan(&config, &role, &facts, steps, &err), -1);
	assert_string_equal(err.reason, "NoPeer");
	assert_int_equal(json_array_size(steps), 0);
}

/* The steps of ADD for net2, behind eth0 and net1; new. */
static json_t *steps_of_net2(const char *addresses, const char *more, const char *default_nic)
{
	auto_free char *text =
		str_printf("{links: [{index: 1, name: lo, flags: 73},"
			   " {index: 2, name: eth0, flags: 4163, mac: a},"
			   " {index: 3, name: net1, flags: 4163},"
			   " {index: 4, name: net2, flags: 4163}], addresses: [%s], %s}",
			   addresses, more);
	json_auto_t *pod = yaml(text), *host = yaml("{}");
	json_auto_t *peer = yaml("{index: 9, name: cali0, mac: b}");
	struct coordinator_config config = {
		.mode = COORDINATOR_OVERLAY,
		.first_nic = "eth0",
		.default_route_nic = default_nic,
		.tune_pod_routes = true,
		.rp_filter = -1,
		.host_table = 500,
	};
	auto_coordinator_role struct coordinator_role role = {0};
	struct coordinator_facts facts = {.pod = pod, .host = host, .peer = peer, .ifname = "net2"};
	json_t *steps = json_array();

	assert_int_equal(coordinator_role_of(&config, "net2", pod, &role, NULL), 0);
	assert_int_equal(coordinator_plan(&config, &role, &facts, steps, NULL), 0);
	return steps;
}

/*
 * The plan of one NIC of three, with a default route each, of which those after it are left out as
 * they are for the plugin.
 */
static int plan_one_of_three(int number, const char *wanted, json_t *steps, struct err *err)
{
	json_auto_t *pod = json_pack("{s:[], s:[], s:[]}", "links", "addresses", "routes");
	json_auto_t *host = yaml("{}"), *later = json_array();
	json_auto_t *peer = yaml("{index: 9, name: cali0, mac: b}");
	struct coordinator_config config = {
		.mode = COORDINATOR_OVERLAY,
		.first_nic = "eth0",
		.default_route_nic = wanted,
		.tune_pod_routes = true,
		.rp_filter = -1,
		.host_table = 500,
	};
	auto_coordinator_role struct coordinator_role role = {0};
	auto_free char *ifname = str_printf("net%d", number);
	struct coordinator_facts facts = {
		.pod = pod, .host = host, .peer = peer, .ifname = ifname, .later = later};

	for (int i = 0; i <= 3; i++) {
		auto_free char *name = i == 0 ? str_dup("eth0") : str_printf("net%d", i);
		auto_free char *link =
			str_printf("{index: %d, name: %s, flags: 4163, mac: a}", i + 2, name);
		auto_free char *address = str_printf("{dev: %s, address: 10.%d.0.5/24}", name, i);
		auto_free char *route =
			str_printf("{family: 4, table: 254, type: 1, dst: 0.0.0.0/0, gw: "
				   "10.%d.0.1, dev: %s}",
				   i, name);

		json_array_append_new(later, json_string(name));
		if (i > number)
			continue;
		json_array_remove(later, 0);
		json_array_append_new(json_at(pod, "links"), yaml(link));
		json_array_append_new(json_at(pod, "addresses"), yaml(address));
		/* The earlier coordinators have moved theirs. */
		if (i == 0 || i == number)
			json_array_append_new(json_at(pod, "routes"), yaml(route));
	}
	assert_int_equal(coordinator_role_of(&config, ifname, pod, &role, NULL), 0);
	return coordinator_plan(&config, &role, &facts, steps, err);
}

/* Which device's default route leaves main. */
static const char *who_leaves_main(const json_t *steps)
{
	return json_str_at(json_find(steps, "do", "unroute"), "dev");
}

/* The annotation goes to the coordinators of all networks. */
TEST(the_default_route_may_be_for_a_nic_that_comes_later)
{
	static const char *const leaves[] = {"net1", "net2", "eth0"};
	json_auto_t *nothing = json_array();
	struct err err = {0};

	for (int number = 1; number <= 3; number++) {
		json_auto_t *steps = json_array();

		if (plan_one_of_three(number, "net3", steps, &err))
			fail_msg("net%d: %s", number, err.text);
		assert_string_equal(who_leaves_main(steps), leaves[number - 1]);
	}
	assert_int_equal(plan_one_of_three(1, "net4", nothing, &err), -1);
	assert_string_equal(err.reason, "NicMissing");
	assert_non_null(strstr(err.text, "net4"));
}

/* Words of the steps of one kind in the pod: "value of key, …" of each. */
static void assert_steps(const json_t *steps, const char *what, const char *key, const char *other,
			 const char *want)
{
	auto_strbuf struct strbuf text = {0};
	size_t i;
	json_t *step;

	json_array_foreach (steps, i, step) {
		auto_free char *left = NULL, *right = NULL;

		if (!str_eq(json_str_at(step, "do"), what) ||
		    !str_eq(json_str_at(step, "in"), "pod"))
			continue;
		left = json_text(json_at(step, key));
		right = json_text(json_at(step, other));
		strbuf_addf(&text, "%s%s %s", text.len ? ", " : "", left, right);
	}
	assert_string_equal(strbuf_str(&text), want);
}

static const char GUIDE[] = "{dev: eth0, address: 10.233.119.164/32},"
			    " {dev: net1, address: 172.16.11.1/16},"
			    " {dev: net2, address: 172.16.12.1/16}";

/* "subnet: 172.16.11.0/16", "172.16.12.0/16", …: one subnet for all rails. */
TEST(a_nic_answers_for_its_own_addresses_alone)
{
	json_auto_t *plain = steps_of_net2(GUIDE, "routes: []", "");
	json_auto_t *strict = steps_of_net2(GUIDE,
					    "sysctls: {net/ipv4/conf/net2/arp_ignore: '2', "
					    "net/ipv4/conf/net2/arp_announce: '1'}",
					    "");
	json_auto_t *v6 = steps_of_net2("{dev: net2, address: 'fd12::1/64'}", "routes: []", "");

	assert_steps(plain, "sysctl", "path", "value",
		     "\"net/ipv4/conf/net2/arp_ignore\" \"1\", "
		     "\"net/ipv4/conf/net2/arp_announce\" \"2\"");
	assert_steps(strict, "sysctl", "path", "value",
		     "\"net/ipv4/conf/net2/arp_announce\" \"2\"");
	assert_steps(v6, "sysctl", "path", "value", "\"net/ipv6/conf/all/disable_ipv6\" \"0\"");
}

#define WAYS                                                                                       \
	"routes: [{family: 4, table: 254, dst: 172.16.0.0/16, dev: net1, type: 1, protocol: 2},"   \
	" {family: 4, table: 254, dst: 172.16.0.0/16, dev: net2, type: 1, protocol: 2}"
#define DEFAULT ", {family: 4, table: 254, dst: 0.0.0.0/0, gw: 169.254.1.1, dev: eth0, type: 1}"

TEST(each_nic_of_a_subnet_has_a_table_with_it)
{
	static const char apart[] = "{dev: eth0, address: 10.233.119.164/32},"
				    " {dev: net1, address: 172.17.11.1/16},"
				    " {dev: net2, address: 172.16.12.1/16}";
	json_auto_t *usual = steps_of_net2(GUIDE, WAYS DEFAULT "]", "");
	json_auto_t *no_default = steps_of_net2(GUIDE, WAYS "]", "");
	json_auto_t *alone = steps_of_net2(apart, WAYS "]", "");
	json_auto_t *keeps = steps_of_net2(GUIDE, WAYS DEFAULT "]", "net2");

	assert_steps(usual, "rule", "from", "table", "\"172.16.12.1/32\" 102");
	assert_steps(usual, "route", "dst", "table", "\"172.16.0.0/16\" 102");
	/* Main would choose net1, whatever the source. */
	assert_steps(no_default, "rule", "from", "table", "\"172.16.12.1/32\" 102");
	assert_steps(no_default, "route", "dst", "table", "\"172.16.0.0/16\" 102");
	assert_steps(alone, "rule", "from", "table", "");
	/* 102 is eth0's then; what is not of the subnet goes by main. */
	assert_steps(keeps, "rule", "from", "table",
		     "\"10.233.119.164/32\" 102, \"172.16.12.1/32\" 103");
	assert_steps(keeps, "route", "dst", "table", "\"0.0.0.0/0\" 102, \"172.16.0.0/16\" 103");
}

TEST(what_was_done_is_taken_back_in_reverse_order)
{
	json_auto_t *done = yaml("[{in: pod, do: link, dev: net1, up: true, mac: b, was: {mac: a}},"
				 " {in: host, do: rule, family: 4, table: 500, shared: true},"
				 " {in: pod, do: sysctl, path: p, value: '0', was: '1'},"
				 " {in: host, do: unroute, table: 500, dst: 10.7.0.51/32},"
				 " {in: pod, do: unroute, table: 254, dst: 0.0.0.0/0, dev: net1},"
				 " {in: pod, do: veth, dev: veth0, peer: x}]");
	json_auto_t *want =
		yaml("[{in: pod, do: unlink, dev: veth0, peer: x},"
		     " {in: pod, do: route, table: 254, dst: 0.0.0.0/0, dev: net1, beside: true},"
		     " {in: pod, do: sysctl, path: p, value: '1', was: '0'},"
		     " {in: pod, do: link, dev: net1, mac: a}]");
	json_auto_t *undo = steps_undo(done);

	assert_true(json_same(undo, want));
}

TEST(a_route_that_has_gone_is_named)
{
	json_auto_t *done = yaml("[{in: pod, do: route, family: 4, table: 101, dst: 0.0.0.0/0, gw: "
				 "10.7.0.1, dev: net1}]");
	json_auto_t *there = yaml("{routes: [{family: 4, table: 101, dst: 0.0.0.0/0, gw: 10.7.0.1, "
				  "dev: net1, protocol: 3}]}");
	json_auto_t *gone = yaml("{routes: [{family: 4, table: 101, dst: 0.0.0.0/0, gw: 10.7.0.9, "
				 "dev: net1}]}");
	auto_free char *text = NULL;

	assert_null(steps_missing(done, there, there));
	text = step_text(steps_missing(done, gone, gone));
	assert_string_equal(text, "route 0.0.0.0/0 via 10.7.0.1 dev net1 table 101 in the pod");
}

/* ---- frames: what the replaced program was recorded sending ---------------------------------- */

static const uint8_t MAC[6] = {0x02, 0, 0, 0, 0x03, 0x78};

TEST(an_arp_request_asks_all_as_recorded)
{
	static const uint8_t want[] = {
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,    0,    0,    0,    3,  0x78, 8, 6,
		0,    1,    8,    0,    6,    4,    0,    1,    2,    0,    0,  0,    3, 0x78,
		0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 10, 7,    0, 51,
	};
	struct addr none = {0}, target;
	uint8_t frame[FRAME_MAX];

	assert_true(addr_parse("10.7.0.51", &target));
	assert_int_equal(frame_ask(MAC, &none, &target, frame), sizeof(want));
	assert_memory_equal(frame, want, sizeof(want));
}

TEST(a_solicitation_goes_to_the_addresses_group)
{
	static const uint8_t to[] = {0x33, 0x33, 0xff, 0, 0, 0x51};
	struct addr source, target;
	uint8_t frame[FRAME_MAX];
	struct frame_claim claim;
	uint32_t sum = 0;

	assert_true(addr_parse("fe80::ff:fe00:378", &source));
	assert_true(addr_parse("fd07::51", &target));
	assert_int_equal(frame_ask(MAC, &source, &target, frame), 86);
	assert_memory_equal(frame, to, sizeof(to));
	/* Payload length, next header, addresses and message add up to all ones (RFC 4443). */
	sum = 32 + 58;
	for (size_t i = 14 + 8; i < 86; i += 2)
		sum += (uint32_t)(frame[i] << 8 | frame[i + 1]);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(sum, 0xffff);
	/* One that has an address already claims nothing by asking. */
	assert_false(frame_read(frame, 86, &claim));
}

TEST(what_is_announced_is_read_as_a_claim)
{
	static const char *const texts[] = {"10.7.0.51", "fd07::51"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct frame_claim claim;
		uint8_t frame[FRAME_MAX];
		struct addr own;
		size_t len;

		assert_true(addr_parse(texts[i], &own));
		len = frame_announce(MAC, &own, frame);
		assert_true(frame_read(frame, len, &claim));
		assert_true(claim.has);
		assert_true(addr_same(&claim.address, &own));
		assert_memory_equal(claim.mac, MAC, sizeof(MAC));
	}
}

TEST(somebody_elses_probe_is_seen)
{
	static const char *const texts[] = {"10.7.0.51", "fd07::51"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct addr none = {0}, target;
		struct frame_claim claim;
		uint8_t frame[FRAME_MAX];
		size_t len;

		assert_true(addr_parse(texts[i], &target));
		len = frame_ask(MAC, &none, &target, frame);
		assert_true(frame_read(frame, len, &claim));
		assert_false(claim.has);
		assert_true(addr_same(&claim.address, &target));
	}
}
