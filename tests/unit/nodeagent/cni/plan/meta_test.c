// SPDX-License-Identifier: Apache-2.0
/*
 * What the meta plugin decides beyond what was recorded: devices, order, default route, undoing,
 * what it says.
 */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/cni_args.h"
#include "nodeagent/cni/plan/default_route.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/devices.h"
#include "nodeagent/cni/plan/meta_run.h"
#include "nodeagent/cni/plan/network_config.h"
#include "nodeagent/cni/plan/network_status.h"
#include "nodeagent/cni/plan/plugin_call.h"
#include "nodeagent/cni/plan/plugin_order.h"
#include "reconcilers/core/limits.h"
#include "tests/support/yaml.h"

/* JSON with ' in place of ". */
static json_t *pod_with(const char *networks)
{
	json_t *pod = yaml("{'metadata':{'name':'p','namespace':'ml','uid':'u1','annotations':{}},"
			   "'spec':{'containers':[{'name':'b'},{'name':'a'}],"
			   "'initContainers':[{'name':'i'}]}}");

	json_put_str(json_at(pod, "metadata", "annotations"), "k8s.v1.cni.cncf.io/networks",
		     networks);
	return pod;
}

#define CLUSTER                                                                                    \
	"{'cniVersion':'0.4.0','type':'orbweaver','delegates':["                                   \
	"{'cniVersion':'0.4.0','name':'cluster','plugins':[{'type':'bridge'}]}]}"

/* Delegates of a pod with these networks; NADs in the namespace of the pod, "name: spec.config". */
static json_t *delegates_of(const char *config, const char *networks, const char *definitions,
			    const char *links, struct err *err)
{
	json_auto_t *own = yaml(config), *pod = pod_with(networks), *nads = json_object();
	json_auto_t *specs = yaml(definitions), *there = yaml(links);
	struct meta_input in = {.container_id = "c1",
				.ifname = "eth0",
				.args = "K8S_POD_UID=u1",
				.config = own,
				.pod = pod,
				.nads = nads,
				.links = there};
	const char *name;
	json_t *spec;

	json_each (specs, name, spec) {
		auto_free char *key = str_printf("ml/%s", name);
		auto_free char *text = json_text(spec);

		json_object_set_new(nads, key,
				    json_pack("{s:{s:s,s:s}, s:{s:s}}", "metadata", "name", name,
					      "namespace", "ml", "spec", "config", text));
	}
	return meta_delegates(&in, err);
}

static void refuses(const char *networks, const char *definitions, const char *links,
		    const char *reason)
{
	struct err err = {0};
	json_auto_t *delegates = delegates_of(CLUSTER, networks, definitions, links, &err);

	assert_null(delegates);
	assert_string_equal(err.reason, reason);
	assert_true(strlen(err.text) > 20);
}

TEST(refuses_before_the_first_plugin)
{
	refuses("a", "{}", "[]", "NoNetworkFound");
	refuses("a", "{'a':[]}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'plugins':[]}}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'plugins':[7]}}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'type':'../x'}}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'type':'orbweaver'}}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'type':'x','name':'a b'}}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'type':'x','cniVersion':0.3}}", "[]", "BadNetworkConfig");
	refuses("a", "{'a':{'plugins':[{'type':'x'}],'name':7}}", "[]", "BadNetworkConfig");
	refuses("a@eth0", "{'a':{'type':'x'}}", "[]", "InterfaceTwice");
	refuses("a@n,a@n", "{'a':{'type':'x'}}", "[]", "InterfaceTwice");
	refuses("a", "{'a':{'type':'x'}}", "['lo','net1']", "InterfaceExists");
	refuses("[{\"name\":\"a\",\"default-route\":[\"10.0.0.1/8\"]}]", "{'a':{'type':'x'}}", "[]",
		"BadDefaultRoute");
	refuses("[{\"name\":\"a\",\"default-route\":[]},{\"name\":\"a\",\"default-route\":[]}]",
		"{'a':{'type':'x'}}", "[]", "BadDefaultRoute");
	refuses("[{\"name\":\"a\",\"ips\":\"10.0.0.1\"}]", "{'a':{'type':'x'}}", "[]",
		"BadNetworks");
}

/* The bounds of reconcilers/core/limits.h, as the operator has them. */
TEST(refuses_what_is_too_large)
{
	auto_strbuf struct strbuf networks = {0}, definition = {0};

	strbuf_adds(&networks, "a");
	for (int i = 0; i < LIMIT_NETWORKS; i++)
		strbuf_adds(&networks, ",a");
	strbuf_adds(&definition, "{'a':{'type':'x','b':[{}");
	for (int i = 0; i < LIMIT_JSON_NODES; i++)
		strbuf_adds(&definition, ",{}");
	strbuf_adds(&definition, "]}}");
	refuses(strbuf_str(&networks), "{'a':{'type':'x'}}", "[]", "TooLarge");
	refuses("a", strbuf_str(&definition), "[]", "TooLarge");
}

TEST(refuses_another_namespaces_network_where_that_is_wished)
{
	json_auto_t *config = yaml("{'namespaceIsolation':true,'globalNamespaces':'shared, x'}");
	json_auto_t *own = pod_with("ml/a,shared/a"), *other = pod_with("default/a");
	json_auto_t *wanted = NULL, *refused = NULL;
	struct err err = {0};

	wanted = meta_wanted(config, own, &err);
	assert_int_equal(json_array_size(wanted), 2);
	refused = meta_wanted(config, other, &err);
	assert_null(refused);
	assert_string_equal(err.reason, "NamespaceIsolated");
}

/* "name@interface …" of the delegates, or the error's reason in parentheses. New. */
static char *networks_with(const char *settings, const char *annotations, const char *ns)
{
	auto_free char *text = str_printf(
		"{'cniVersion':'0.4.0','delegates':[{'name':'k8s','type':'bridge'}],%s}", settings);
	auto_free char *pod_text = str_printf(
		"{'metadata':{'name':'p','namespace':'%s','annotations':{%s}}}", ns, annotations);
	json_auto_t *config = yaml(text), *pod = yaml(pod_text), *delegates = NULL;
	json_auto_t *nads = yaml(
		"{'kube-system/"
		"a':{'metadata':{'name':'a'},'spec':{'config':'{\"type\":\"macvlan\"}'}},"
		"'spider/a':{'metadata':{'name':'a'},'spec':{'config':'{\"type\":\"ipvlan\"}'}}}");
	json_auto_t *files = yaml("[{'name':'onfile','type':'macvlan'}]");
	const struct meta_input in = {.container_id = "c1",
				      .ifname = "eth0",
				      .args = "",
				      .config = config,
				      .pod = pod,
				      .nads = nads,
				      .files = files};
	auto_strbuf struct strbuf out = {0};
	struct err err = {0};
	json_t *delegate;
	size_t i;

	delegates = meta_delegates(&in, &err);
	if (!delegates)
		return str_printf("(%s)", err.reason);
	json_array_foreach (delegates, i, delegate)
		strbuf_addf(&out, "%s%s@%s", i ? " " : "", json_str_at(delegate, "name"),
			    json_str_at(delegate, "interface"));
	return strbuf_take(&out);
}

TEST(gives_pods_the_networks_that_a_multus_gave_them)
{
#define MORE "'k8s.v1.cni.cncf.io/networks':'kube-system/a'"
	static const struct {
		const char *settings, *annotations, *ns, *want;
	} cases[] = {
		{"'clusterNetwork':'k8s'", "", "ml", "k8s@eth0"},
		{"'clusterNetwork':'a'", "", "ml", "kube-system/a@eth0"},
		{"'clusterNetwork':'a','multusNamespace':'spider'", "", "ml", "spider/a@eth0"},
		{"'clusterNetwork':'nope'", "", "ml", "(NoNetworkFound)"},
		{"'clusterNetwork':'nope'", "'v1.multus-cni.io/default-network':'a'", "ml",
		 "kube-system/a@eth0"},
		{"'multusNamespace':'spider'", "'v1.multus-cni.io/default-network':'a'", "ml",
		 "spider/a@eth0"},
		{"'defaultNetworks':['a','onfile']", MORE, "ml",
		 "k8s@eth0 kube-system/a@net1 onfile@net2 kube-system/a@net3"},
		{"'defaultNetworks':['a']", MORE, "kube-system", "k8s@eth0 kube-system/a@net1"},
		{"'defaultNetworks':['onfile'],'systemNamespaces':['ml']", MORE, "ml",
		 "k8s@eth0 kube-system/a@net1"},
		{"'defaultNetworks':['onfile'],'systemNamespaces':[]", MORE, "kube-system",
		 "k8s@eth0 onfile@net1 kube-system/a@net2"},
		{"'defaultNetworks':['nope']", "", "ml", "(NoNetworkFound)"},
		{"'defaultNetworks':['onfile']",
		 "'k8s.v1.cni.cncf.io/networks':'kube-system/a@net1'", "ml", "(InterfaceTwice)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *got =
			networks_with(cases[i].settings, cases[i].annotations, cases[i].ns);

		if (!str_eq(got, cases[i].want))
			fail_msg("case %zu: %s, wanted %s", i, got, cases[i].want);
	}
}

TEST(waits_for_the_sandbox_of_the_pod_that_is_there_now)
{
	json_auto_t *config = yaml(CLUSTER), *pod = pod_with(""), *nads = json_object();
	struct meta_input in = {.container_id = "c1",
				.ifname = "eth0",
				.args = "K8S_POD_UID=u0",
				.config = config,
				.pod = pod,
				.nads = nads};
	json_auto_t *refused = NULL, *of_static = NULL;
	struct err err = {0};

	refused = meta_delegates(&in, &err);
	assert_null(refused);
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "PodReplaced");
	json_put_str(json_at(pod, "metadata", "annotations"), "kubernetes.io/config.source",
		     "file");
	of_static = meta_delegates(&in, &err);
	assert_non_null(of_static);
}

/* ---- devices --------------------------------------------------------------------------------- */

TEST(deals_devices_out_by_container_and_address)
{
	json_auto_t *pod = pod_with("");
	json_auto_t *devices =
		yaml("[{'container':'a','resource':'r','ids':['0000:03:00.2','0000:03:00.1']},"
		     "{'container':'i','resource':'r','ids':['0000:01:00.1','0000:03:00.1']},"
		     "{'container':'b','resource':'other','ids':['0000:09:00.1']},"
		     "{'container':'b','resource':'r','ids':['0001:00:00.1','0000:81:00.1']}]");
	json_auto_t *want = yaml("['0000:81:00.1','0001:00:00.1','0000:03:00.1','0000:03:00.2',"
				 "'0000:01:00.1']");
	json_auto_t *found = devices_of(pod, devices, "r");

	assert_true(json_same(found, want));
}

/* One of two pods of that name ends: which device is whose, nothing tells. */
TEST(more_devices_than_a_container_asks_for_are_another_pods)
{
	static const struct {
		const char *containers, *devices;
		const char *container; /* the one with too many; NULL: none */
	} cases[] = {
		{"[{'name':'c','resources':{'limits':{'r/x':'1'}}}]", "['1','2']", "c"},
		{"[{'name':'c','resources':{'limits':{'r/x':'2'}}}]", "['1','2']", NULL},
		{"[{'name':'c','resources':{'limits':{'r/x':'2'}}}]", "['1','1','2']", NULL},
		{"[{'name':'c','resources':{'limits':{'r/y':'2'}}}]", "['1']", "c"},
		{"[{'name':'c','resources':{}}]", "['1']", "c"},
		{"[{'name':'c'}]", "['1','2']", NULL},
		{"[{'name':'c','resources':{'limits':{'r/x':'1k'}}}]", "['1','2']", NULL},
		{"[{'name':'b','resources':{}}]", "['1','2']", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *text = str_printf("[{'container':'c','resource':'r/x','ids':%s}]",
						  cases[i].devices);
		json_auto_t *devices = yaml(text);
		json_auto_t *pod =
			json_pack("{s:{s:o}}", "spec", "containers", yaml(cases[i].containers));
		struct devices_beyond beyond = {0};

		assert_int_equal(devices_beyond(pod, devices, "r/x", &beyond),
				 cases[i].container != NULL);
		if (cases[i].container)
			assert_string_equal(beyond.container, cases[i].container);
	}
}

TEST(says_how_many_devices_there_are_when_they_are_too_few)
{
	json_auto_t *config = yaml(CLUSTER), *pod = pod_with("vf,vf");
	json_auto_t *nads = yaml(
		"{'ml/vf':{'metadata':{'name':'vf','namespace':'ml','annotations':"
		"{'k8s.v1.cni.cncf.io/resourceName':'spidernet.io/x'}},'spec':{'config':'{}'}}}");
	json_auto_t *devices =
		yaml("[{'container':'a','resource':'spidernet.io/x','ids':['0000:03:00.2']}]");
	struct meta_input in = {.container_id = "c1",
				.ifname = "eth0",
				.config = config,
				.pod = pod,
				.nads = nads,
				.devices = devices};
	json_auto_t *delegates = NULL;
	struct err err = {0};

	json_put_str(json_at(nads, "ml/vf", "spec"), "config", "{\"type\":\"sriov\"}");
	delegates = meta_delegates(&in, &err);
	assert_null(delegates);
	assert_string_equal(err.reason, "TooFewDevices");
	assert_non_null(strstr(err.text, "has 1 of them"));
}

/* Delegates of a pod without devices, for one network with this configuration. */
static json_t *delegate_without_device(const char *plugin, const char *served, struct err *err)
{
	json_auto_t *config = yaml(CLUSTER), *pod = pod_with("x"), *own = yaml(plugin);
	json_auto_t *nads = yaml("{'ml/x':{'metadata':{'name':'x','namespace':'ml','annotations':"
				 "{'k8s.v1.cni.cncf.io/resourceName':'ovs-cni.network.kubevirt.io/"
				 "br1'}},'spec':{}}}");
	json_auto_t *devices = json_array(), *resources = yaml(served);
	auto_free char *text = json_text(own);
	struct meta_input in = {.container_id = "c1",
				.ifname = "eth0",
				.config = config,
				.pod = pod,
				.nads = nads,
				.devices = devices,
				.served = resources};

	json_put_str(json_at(nads, "ml/x", "spec"), "config", text);
	return meta_delegates(&in, err);
}

TEST(a_resource_that_no_device_plugin_serves_needs_no_device)
{
	static const char *const plugins[] = {
		"{'type':'ovs','bridge':'br1'}",
		"{'plugins':[{'type':'bridge'},{'type':'tuning'}]}",
		"{'type':'host-device','device':'enp1s0'}",
	};

	for (size_t i = 0; i < ARRAY_LEN(plugins); i++) {
		struct err err = {0};
		json_auto_t *delegates = delegate_without_device(plugins[i], "[]", &err);
		const json_t *delegate = json_array_get(delegates, 1);

		if (!delegates)
			fail_msg("%s: %s", plugins[i], err.text);
		assert_string_equal(json_str_at(delegate, "resourceName"),
				    "ovs-cni.network.kubevirt.io/br1");
		assert_null(json_at(delegate, "deviceID"));
		assert_null(json_at(json_array_get(json_at(delegate, "config", "plugins"), 0),
				    "deviceID"));
	}
}

TEST(a_network_that_cannot_do_without_a_device_is_refused)
{
	static const struct {
		const char *plugin, *served;
	} cases[] = {
		{"{'type':'sriov'}", "[]"},
		{"{'plugins':[{'type':'ib-sriov'},{'type':'rdma'}]}", "[]"},
		{"{'type':'host-device'}", "[]"},
		{"{'type':'macvlan'}", "['ovs-cni.network.kubevirt.io/br1']"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct err err = {0};

		assert_null(delegate_without_device(cases[i].plugin, cases[i].served, &err));
		assert_string_equal(err.reason, "TooFewDevices");
	}
}

/* ---- order ----------------------------------------------------------------------------------- */

/* Delegates of these plugins each; "/" separates delegates, "," plugins. */
static json_t *chains(const char *text)
{
	auto_free char *copy = str_dup(text);
	json_t *delegates = json_array();
	char *rest = copy, *chain;

	while ((chain = strsep(&rest, "/"))) {
		json_t *plugins = json_array();
		char *type;

		while ((type = strsep(&chain, ",")))
			json_array_append_new(plugins, json_pack("{s:s}", "type", type));
		json_array_append_new(
			delegates,
			json_pack("{s:o, s:o, s:{s:s, s:s, s:o}}", "name",
				  json_fmt("n%zu", json_array_size(delegates)), "interface",
				  json_fmt("net%zu", json_array_size(delegates)), "config",
				  "cniVersion", "0.4.0", "name", "n", "plugins", plugins));
	}
	return delegates;
}

/* Which delegates may go on, as digits, when so many plugins of each have ended. */
static char *turns(const json_t *delegates, const size_t *done)
{
	auto_strbuf struct strbuf out = {0};

	for (size_t i = 0; i < json_array_size(delegates); i++)
		if (plugin_order_may_add(delegates, done, i))
			strbuf_addf(&out, "%zu", i);
	return strbuf_take(&out);
}

static void expect_turns(const char *text, const size_t *done, const char *want)
{
	json_auto_t *delegates = chains(text);
	auto_free char *got = turns(delegates, done);

	assert_string_equal(got, want);
}

TEST(sets_rails_up_side_by_side_behind_the_clusters_network)
{
	const char *rails = "calico/macvlan/sriov,rdma/ib-sriov/ipvlan,tuning";

	expect_turns(rails, (size_t[]){0, 0, 0, 0, 0}, "0");
	expect_turns(rails, (size_t[]){1, 0, 0, 0, 0}, "1234");
	expect_turns(rails, (size_t[]){1, 1, 1, 0, 1}, "234");
	expect_turns(rails, (size_t[]){1, 1, 2, 1, 2}, "");
}

TEST(lets_coordinators_follow_each_other_in_order)
{
	const char *rails =
		"calico/macvlan,coordinator/sriov,coordinator,tuning/macvlan,coordinator";

	expect_turns(rails, (size_t[]){1, 0, 0, 0}, "123");
	expect_turns(rails, (size_t[]){1, 0, 1, 1}, "1");
	expect_turns(rails, (size_t[]){1, 1, 1, 1}, "1");
	expect_turns(rails, (size_t[]){1, 2, 1, 1}, "2");
	/* The third need not wait for what follows the second's coordinator. */
	expect_turns(rails, (size_t[]){1, 2, 2, 1}, "23");
}

TEST(lets_a_plugin_that_may_look_at_others_wait)
{
	const char *bond = "calico/macvlan/macvlan/bond/macvlan";

	expect_turns(bond, (size_t[]){1, 0, 0, 0, 0}, "12");
	expect_turns(bond, (size_t[]){1, 1, 0, 0, 0}, "2");
	expect_turns(bond, (size_t[]){1, 1, 1, 0, 0}, "3");
	expect_turns(bond, (size_t[]){1, 1, 1, 1, 0}, "4");
}

TEST(gives_the_effective_default_route_out_in_order)
{
	json_auto_t *delegates = chains("calico/macvlan/macvlan/macvlan");
	auto_free char *first = NULL, *second = NULL;

	for (size_t i = 1; i < 3; i++)
		json_put(json_array_get(json_at(json_array_get(delegates, i), "config", "plugins"),
					0),
			 "ipam", yaml("{'type':'spiderpool'}"));
	json_put(json_array_get(json_at(json_array_get(delegates, 3), "config", "plugins"), 0),
		 "ipam", yaml("{'type':'host-local','routes':[{'dst':'10.9.0.0/16'}]}"));
	first = turns(delegates, (size_t[]){1, 0, 0, 0});
	assert_string_equal(first, "13");
	second = turns(delegates, (size_t[]){1, 1, 0, 0});
	assert_string_equal(second, "23");
}

/*
 * Interfaces that go at once, and their group, where all plugins have records but those of type
 * `missing`. The pod has made net9 itself.
 */
static char *gone_at_once(const char *text, const char *missing)
{
	json_auto_t *delegates = chains(text), *records = json_array(), *steps = NULL;
	json_auto_t *look = yaml("{'links':[{'name':'net0','index':2,'kind':'veth'},"
				 "{'name':'net1','index':3,'kind':'macvlan'},"
				 "{'name':'net2','index':4,'kind':'ipvlan'},"
				 "{'name':'net3','index':5,'kind':'veth'},"
				 "{'name':'veth0','index':6,'kind':'veth'},"
				 "{'name':'net9','index':7,'kind':'macvlan'}]}");
	auto_strbuf struct strbuf out = {0};
	json_t *delegate, *step;
	size_t i;

	json_array_foreach (delegates, i, delegate)
		for (size_t k = 0; k < delegate_plugins(delegate); k++)
			if (!str_eq(delegate_plugin_type(delegate, k), missing))
				json_array_append_new(
					records, json_pack("{s:s, s:O, s:O, s:{s:s}}", "plugin",
							   delegate_plugin_type(delegate, k),
							   "ifname", json_at(delegate, "interface"),
							   "config", json_at(delegate, "config"),
							   "saved", "peer", "owp"));
	steps = plugin_order_unlink(delegates, records, look, 77);
	json_array_foreach (steps, i, step) {
		assert_int_equal(json_integer_value(json_at(step, "group")), 77);
		strbuf_addf(&out, "%s %s\n", json_str_at(step, "do"),
			    json_str_or(json_at(step, "dev"), ""));
	}
	return strbuf_take(&out);
}

static void expect_gone(const char *text, const char *missing, const char *want)
{
	auto_free char *got = gone_at_once(text, missing);

	assert_string_equal(got, want);
}

TEST(removes_interfaces_of_our_plugins_at_once)
{
	expect_gone("bridge/macvlan,coordinator/ipvlan", NULL,
		    "link net0\nlink net1\nlink net2\nlink veth0\nunlink \n");
	/* Of the cluster's network, a program of the node, nothing is known. */
	expect_gone("calico/macvlan,coordinator/ipvlan", "calico",
		    "link net1\nlink net2\nlink veth0\nunlink \n");
	expect_gone("calico/macvlan", "calico", "");
	/* A program of the node made it, or has to look at it. */
	expect_gone("bridge/macvlan/ipvlan", "macvlan", "link net0\nlink net2\nunlink \n");
	expect_gone("bridge/macvlan,sbr/ipvlan", "sbr", "link net0\nlink net2\nunlink \n");
	/* Settings are put back while it is there. */
	expect_gone("bridge/macvlan,tuning/ipvlan", NULL, "link net0\nlink net2\nunlink \n");
	/* The pod has another one in its place, or moved. */
	expect_gone("bridge/ipvlan/ipvlan", NULL, "link net0\nlink net2\nunlink \n");
	/* A bond gives its ports back first. */
	expect_gone("bridge/macvlan/ipvlan/bond", NULL, "");
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Run; plugins named "bad" fail on ADD, "stuck" on DEL. What was called, as "ADD 1.0 …". */
static char *story(const char *command, const char *text, int *ret_rc, bool *ret_left)
{
	json_auto_t *delegates = chains(text), *result = yaml("{'cniVersion':'0.4.0'}");
	struct meta_run *run = meta_run_new(command, delegates, NULL);
	auto_strbuf struct strbuf out = {0};
	struct meta_step steps[16];
	size_t n = 0;
	struct err err = {0};

	for (;;) {
		while (meta_run_next(run, &steps[n])) {
			strbuf_addf(&out, "%s%s %zu.%zu", out.len ? " " : "", steps[n].command,
				    steps[n].delegate, steps[n].plugin);
			n++;
		}
		if (n == 0)
			break;
		/* The last one ends first. */
		n--;
		const char *type = delegate_plugin_type(
			json_array_get(delegates, steps[n].delegate), steps[n].plugin);

		if (str_eq(type, str_eq(steps[n].command, "DEL") ? "stuck" : "bad")) {
			err_set(&err, ERR_HOST, "PluginFailed", "%s", steps[n].command);
			meta_run_failed(run, &steps[n], &err);
		} else {
			meta_run_succeeded(run, &steps[n],
					   str_eq(steps[n].command, "ADD") ? result : NULL);
		}
	}
	assert_true(meta_run_has_ended(run));
	*ret_rc = meta_run_outcome(run, ret_left, &err);
	meta_run_free(run);
	return strbuf_take(&out);
}

static void expect_story(const char *command, const char *text, int want_rc, bool want_left,
			 const char *want)
{
	bool left = false;
	int rc = 0;
	auto_free char *got = story(command, text, &rc, &left);

	assert_string_equal(got, want);
	assert_int_equal(rc, want_rc);
	assert_int_equal(left, want_left);
}

TEST(undoes_what_was_called_and_nothing_else)
{
	expect_story("ADD", "a/macvlan,tuning", 0, false, "ADD 0.0 ADD 1.0 ADD 1.1");
	/* Delegate 1 runs when 2 fails: it is waited for, its second plugin is never called. */
	expect_story("ADD", "a/macvlan,tuning/bad", -1, false,
		     "ADD 0.0 ADD 1.0 ADD 1.1 ADD 2.0 DEL 2.0 DEL 1.1 DEL 1.0 DEL 0.0");
	expect_story("ADD", "bad/macvlan", -1, false, "ADD 0.0 DEL 0.0");
	expect_story("ADD", "a/macvlan,bad,tuning", -1, false,
		     "ADD 0.0 ADD 1.0 ADD 1.1 DEL 1.1 DEL 1.0 DEL 0.0");
	expect_story("ADD", "a/stuck/bad", -1, true,
		     "ADD 0.0 ADD 1.0 ADD 2.0 DEL 2.0 DEL 1.0 DEL 0.0");
}

TEST(deletes_behind_failures_and_the_clusters_network_last)
{
	expect_story("DEL", "a/macvlan,stuck,tuning/b", -1, false,
		     "DEL 2.0 DEL 1.2 DEL 1.1 DEL 1.0 DEL 0.0");
	expect_story("DEL", "stuck/b", -1, false, "DEL 1.0 DEL 0.0");
}

/* How many plugins DEL calls before the first one has ended. */
static size_t deleted_at_once(const char *text)
{
	json_auto_t *delegates = chains(text);
	struct meta_run *run = meta_run_new("DEL", delegates, NULL);
	struct meta_step step;
	size_t n = 0;

	while (meta_run_next(run, &step))
		n++;
	meta_run_free(run);
	return n;
}

TEST(deletes_a_bond_before_what_it_is_made_of)
{
	assert_int_equal(deleted_at_once("calico/macvlan/macvlan/sriov,tuning"), 3);
	assert_int_equal(deleted_at_once("calico/macvlan/macvlan/bond"), 1);
	assert_int_equal(deleted_at_once("calico/macvlan/macvlan/bond/macvlan"), 1);
	assert_int_equal(deleted_at_once("calico"), 1);
}

TEST(checks_one_after_the_other_until_one_fails)
{
	expect_story("CHECK", "a,b/macvlan", 0, false, "CHECK 0.0 CHECK 0.1 CHECK 1.0");
	expect_story("CHECK", "a,bad/macvlan", -1, false, "CHECK 0.0 CHECK 0.1");
	/* They begin with 1.1.0. */
	expect_story("GC", "a/b", 0, false, "");
	expect_story("STATUS", "a/b", 0, false, "");
}

/* ---- default route --------------------------------------------------------------------------- */

#define ROUTED(gw4, gw6)                                                                           \
	"{'routes':[{'dst':'10.5.0.0/16'},{'dst':'0.0.0.0/0','gw':'" gw4                           \
	"'},{'dst':'::/0','gw':'" gw6 "'}]}"

static void expect_routes(const char *delegates_text, const char *want_results,
			  const char *want_steps)
{
	json_auto_t *delegates = yaml(delegates_text), *results = json_array();
	json_auto_t *results_wanted = yaml(want_results), *steps_wanted = yaml(want_steps);
	json_auto_t *steps = NULL;

	json_array_append_new(results, yaml(ROUTED("10.0.0.1", "fd00::1")));
	json_array_append_new(results, yaml(ROUTED("10.1.0.1", "fd01::1")));
	steps = default_route_apply(delegates, results);
	auto_free char *got = json_text(steps), *edited = json_text(results);
	if (!json_same(steps, steps_wanted))
		fail_msg("steps: %s", got);
	if (!json_same(results, results_wanted))
		fail_msg("results: %s", edited);
}

TEST(replaces_default_routes_of_the_family_that_is_asked_for)
{
	expect_routes("[{'interface':'eth0'},{'interface':'net1','defaultRoute':['10.1.0.254']}]",
		      "[{'routes':[{'dst':'10.5.0.0/16'},{'dst':'::/0','gw':'fd00::1'}]},"
		      "{'routes':[{'dst':'10.5.0.0/16'},{'dst':'::/0','gw':'fd01::1'},"
		      "{'dst':'0.0.0.0/0','gw':'10.1.0.254'}]}]",
		      "[{'remove':'4','interface':'eth0'},{'remove':'4','interface':'net1'},"
		      "{'add':'4','interface':'net1','gateway':'10.1.0.254'}]");
}

TEST(keeps_the_chosen_networks_own_routes_for_an_empty_list)
{
	expect_routes("[{'interface':'eth0'},{'interface':'net1','defaultRoute':[]}]",
		      "[{'routes':[{'dst':'10.5.0.0/16'}]}," ROUTED("10.1.0.1", "fd01::1") "]",
		      "[{'remove':'4','interface':'eth0'},{'remove':'6','interface':'eth0'}]");
}

TEST(leaves_routes_alone_when_nobody_asks)
{
	expect_routes("[{'interface':'eth0'},{'interface':'net1'}]",
		      "[" ROUTED("10.0.0.1", "fd00::1") "," ROUTED("10.1.0.1", "fd01::1") "]",
		      "[]");
}

TEST(removes_each_default_route_of_the_main_table)
{
	json_auto_t *changes =
		yaml("[{'remove':'4','interface':'eth0'},{'remove':'6','interface':'eth0'},"
		     "{'add':'4','interface':'net1','gateway':'10.1.0.254'}]");
	json_auto_t *look =
		yaml("{'routes':[{'family':2,'table':254,'dst':'0.0.0.0/"
		     "0','gw':'10.0.0.1','dev':'eth0'},"
		     "{'family':2,'table':254,'dst':'0.0.0.0/0','dev':'eth0','metric':50},"
		     "{'family':2,'table':101,'dst':'0.0.0.0/0','gw':'10.0.0.1','dev':'eth0'},"
		     "{'family':2,'table':254,'dst':'0.0.0.0/0','gw':'10.1.0.1','dev':'net1'},"
		     "{'family':2,'table':254,'dst':'10.0.0.0/8','dev':'eth0'},"
		     "{'family':10,'table':254,'dst':'::/0','metric':1024,'nexthops':["
		     "{'dev':'eth0','gw':'fd00::1'},{'dev':'net1','gw':'fd01::1'}]}]}");
	json_auto_t *want = yaml(
		"[{'in':'pod','do':'unroute','dev':'eth0','family':2,'table':254,'dst':'0.0.0.0/0',"
		"'gw':'10.0.0.1'},"
		"{'in':'pod','do':'unroute','dev':'eth0','family':2,'table':254,'dst':'0.0.0.0/0',"
		"'metric':50},"
		"{'in':'pod','do':'unroute','dev':'eth0','family':10,'table':254,'dst':'::/0',"
		"'gw':'fd00::1','metric':1024},"
		"{'in':'pod','do':'route','dev':'net1','family':2,'table':254,'dst':'0.0.0.0/0',"
		"'gw':'10.1.0.254'}]");
	json_auto_t *steps = default_route_steps(changes, look);
	auto_free char *text = json_text(steps);

	if (!json_same(steps, want))
		fail_msg("%s", text);
}

/* ---- plugins --------------------------------------------------------------------------------- */

TEST(passes_only_what_plugins_can_read_in_arguments)
{
	json_auto_t *pod = pod_with(""), *ips = yaml("['10.0.0.1/8','fd00::1']");
	auto_free char *args = cni_args_for("K8S_POD_UID=;IgnoreUnknown=1;A=b;c;D=e=f;=g;;H=", "c1",
					    pod, "02:00:00:00:00:01", ips);
	auto_free char *uid = cni_args_value("A=b;K8S_POD_UID=u2;K8S_POD_UID=u3", "K8S_POD_UID");
	auto_free char *none = cni_args_value("XK8S_POD_UID=u2;;", "K8S_POD_UID");

	assert_string_equal(args, "IgnoreUnknown=true;K8S_POD_NAMESPACE=ml;K8S_POD_NAME=p;"
				  "K8S_POD_INFRA_CONTAINER_ID=c1;K8S_POD_UID=u1;IgnoreUnknown=1;"
				  "A=b;H=;MAC=02:00:00:00:00:01;IP=10.0.0.1/8,fd00::1");
	assert_string_equal(uid, "u2");
	assert_null(none);
}

TEST(says_in_one_sentence_why_a_plugin_failed)
{
	json_auto_t *delegates = chains("macvlan");
	const json_t *delegate = json_array_get(delegates, 0);
	struct err err = {0};

	delegate_failure(delegate, 0, "ADD", 1,
			 "{\"code\":11,\"msg\":\"agent away\",\"details\":\"later\"}", "x", &err);
	assert_string_equal(err.text, "network n0 (net0): macvlan ADD: agent away; later");
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "PluginFailed");
	delegate_failure(delegate, 0, "DEL", 1, " \n", "no such thing\n", &err);
	assert_string_equal(err.text, "network n0 (net0): macvlan DEL fails, and is tried until "
				      "what it says is mended: no such thing ");
	delegate_failure(delegate, 0, "ADD", 137, "", "", &err);
	assert_non_null(strstr(err.text, "without a word, exit status 137"));
}

/* What Go's plugins read of stdin: the version of the configuration, and valid addresses. */
TEST(takes_down_whatever_result_was_kept)
{
	static const struct {
		const char *command, *previous, *want;
	} cases[] = {
		{"DEL", "{'cniVersion':'1.0.0','ips':[{'address':'10.0.0.1/8'}]}",
		 "{'cniVersion':'0.4.0','ips':[{'version':'4','address':'10.0.0.1/8'}],'dns':{}}"},
		{"DEL", "{'cniVersion':'0.4.0','ips':[{'version':'4','address':'*'}]}", NULL},
		{"DEL", "{'cniVersion':'9.9.9'}", NULL},
		{"DEL", "'*'", NULL},
		{"CHECK", "{'cniVersion':'9.9.9'}", "{'cniVersion':'9.9.9'}"},
	};
	json_auto_t *delegates = chains("portmap");
	json_t *delegate = json_array_get(delegates, 0);

	json_put_str(json_at(delegate, "config"), "cniVersion", "0.4.0");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *previous = yaml(cases[i].previous);
		json_auto_t *want = cases[i].want ? yaml(cases[i].want) : NULL;
		json_auto_t *got = delegate_stdin(delegate, 0, cases[i].command, previous);
		auto_free char *text = json_text(got);

		if (!json_same(json_at(got, "prevResult"), want))
			fail_msg("case %zu: %s", i, text);
	}
}

TEST(passes_results_on_in_the_networks_version)
{
	static const char text[] =
		"{\"cniVersion\":\"1.1.0\",\"interfaces\":[{\"name\":\"net0\",\"mtu\":9000,"
		"\"sandbox\":\"/n\"}],\"ips\":[{\"address\":\"10.0.0.1/8\",\"interface\":0}]}";
	json_auto_t *delegates = chains("macvlan"), *result = NULL;
	json_auto_t *want =
		yaml("{'cniVersion':'0.4.0','interfaces':[{'name':'net0','sandbox':'/n'}],"
		     "'ips':[{'address':'10.0.0.1/8','interface':0,'version':'4'}],'dns':{}}");
	struct err err = {0};

	result = delegate_result(json_array_get(delegates, 0), text, strlen(text), &err);
	assert_true(json_same(result, want));
}

TEST(refuses_what_is_no_result)
{
	json_auto_t *delegates = chains("macvlan");
	const json_t *delegate = json_array_get(delegates, 0);
	struct err err = {0};

	assert_null(delegate_result(delegate, "[]", 2, &err));
	assert_string_equal(err.reason, "PluginAnswer");
	assert_null(delegate_result(delegate, "{", 1, &err));
	assert_null(delegate_result(delegate, "", 0, &err));
}

TEST(compares_versions)
{
	assert_true(cni_version_at_least("0.4.0", 0, 4));
	assert_true(cni_version_at_least("1.0.0", 0, 4));
	assert_false(cni_version_at_least("0.3.1", 0, 4));
	assert_false(cni_version_at_least("", 0, 3));
	assert_false(cni_version_at_least(NULL, 0, 3));
	assert_true(cni_version_at_least("x", 0, 1));
}

/* ---- what it says ---------------------------------------------------------------------------- */

TEST(writes_device_info_and_names_as_go_does)
{
	json_auto_t *delegates = yaml("[{'name':\"a<&>\\u2028\\u0001\\\\\"}]");
	json_auto_t *results = yaml("[{'interfaces':[{'name':'eth0','sandbox':'/n','mtu':9000}],"
				    "'dns':{'nameservers':['10.0.0.1'],'domain':'x'}}]");
	json_auto_t *infos =
		yaml("[{'type':'vdpa','version':'1.1.0','vdpa':{'path':'/dev/v','driver':'vhost'},"
		     "'other':{}}]");
	auto_free char *text = network_status_text(delegates, results, infos);

	assert_string_equal(text, "[{\n"
				  "    \"name\": \"a\\u003c\\u0026\\u003e\\u2028\\u0001\\\\\",\n"
				  "    \"interface\": \"eth0\",\n"
				  "    \"default\": true,\n"
				  "    \"dns\": {\n"
				  "        \"nameservers\": [\n"
				  "            \"10.0.0.1\"\n"
				  "        ],\n"
				  "        \"domain\": \"x\"\n"
				  "    },\n"
				  "    \"device-info\": {\n"
				  "        \"type\": \"vdpa\",\n"
				  "        \"version\": \"1.1.0\",\n"
				  "        \"vdpa\": {\n"
				  "            \"driver\": \"vhost\",\n"
				  "            \"path\": \"/dev/v\"\n"
				  "        }\n"
				  "    }\n"
				  "}]");
}

TEST(says_what_was_added_in_each_format_of_a_result)
{
	static const struct {
		const char *result, *want;
	} cases[] = {
		{"{'cniVersion':'1.0.0','ips':[{'address':'10.0.0.1/8'},{'address':'fd00::1/64'}]}",
		 "Add net1 [10.0.0.1/8 fd00::1/64] from ml/a"},
		{"{'cniVersion':'0.2.0','ip4':{'ip':'10.0.0.1/8'},'ip6':{'ip':'fd00::1/64'}}",
		 "Add net1 [10.0.0.1/8 fd00::1/64] from ml/a"},
		{"{'cniVersion':'0.1.0','ip6':{'ip':'fd00::1/64'}}",
		 "Add net1 [fd00::1/64] from ml/a"},
		{"{'cniVersion':'0.3.1','interfaces':[{'name':'net1'}]}", "Add net1 [] from ml/a"},
		{"{'cniVersion':'0.2.0','dns':{}}", NULL},
	};
	json_auto_t *delegate = yaml("{'name':'ml/a','interface':'net1'}");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *result = yaml(cases[i].result);
		auto_free char *text = network_added_text(delegate, result);

		if (!str_eq(text, cases[i].want))
			fail_msg("case %zu: %s", i, text ? text : "nothing");
	}
}
