// SPDX-License-Identifier: Apache-2.0
/* Which CNI plugins may run for networks that the agent names. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <glob.h>
#include <string.h>

#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/plugin_types.h"
#include "tests/support/yaml.h"

/* Those that users of Multus, Spiderpool and the usual cluster networks have. */
TEST(lists_the_common_plugins)
{
	static const char *const types[] = {
		"bandwidth",
		"bond",
		"bridge",
		"calico",
		"calico-ipam",
		"cilium-cni",
		"coordinator",
		"dhcp",
		"dummy",
		"firewall",
		"flannel",
		"host-device",
		"host-local",
		"ib-sriov",
		"ib-sriov-cni",
		"ifacer",
		"ipoib",
		"ipvlan",
		"kube-ovn",
		"loopback",
		"macvlan",
		"nv-ipam",
		"ovn-k8s-cni-overlay",
		"ovs",
		"portmap",
		"ptp",
		"rdma",
		"route-override",
		"sbr",
		"spiderpool",
		"sriov",
		"static",
		"tap",
		"tuning",
		"vlan",
		"vrf",
		"weave-net",
		"whereabouts",
		"antrea",
		"aws-cni",
	};

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (!plugin_type_is_listed(types[i], NULL))
			fail_msg("%s is not listed", types[i]);
	assert_false(plugin_type_is_listed("acme", NULL));
	assert_false(plugin_type_is_listed("debug", NULL));
	assert_false(plugin_type_is_listed("multus", NULL));
	assert_false(plugin_type_is_listed("", NULL));
	assert_true(plugin_type_is_listed("acme", "x, acme"));
	assert_true(plugin_type_is_listed("acme-ipam", "acme-*"));
	assert_false(plugin_type_is_listed("acme", "acme-*"));
	assert_true(plugin_type_is_listed("acme", "*"));
}

/* Each spec.config in it may run; returns how many there are. */
static size_t count_configs(const json_t *value, const char *file)
{
	const char *key;
	json_t *inner;
	size_t n = 0, i;

	json_array_foreach ((json_t *)value, i, inner)
		n += count_configs(inner, file);
	if (!json_is_object(value))
		return n;
	json_each (value, key, inner) {
		const char *text = str_eq(key, "config") ? json_string_value(inner) : NULL;
		json_auto_t *config = text ? json_parse(text, strlen(text), NULL) : NULL;
		json_auto_t *delegates = json_pack("[{s:O?}]", "config", config);
		struct plugin_types types = {0};
		struct err err = {0};

		n += count_configs(inner, file) + (config != NULL);
		if (plugin_types_check(delegates, &types, &err) < 0)
			fail_msg("%s: %s", file, err.text);
	}
	return n;
}

/* What the operator makes of users' objects, the guides' among them. */
TEST(lists_what_the_operator_writes_into_networks)
{
	glob_t files = {0};
	size_t n = 0;

	assert_int_equal(glob("tests/golden/*/*/want.json", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		auto_strbuf struct strbuf text = {0};
		json_auto_t *want = NULL;

		assert_int_equal(fs_read(AT_FDCWD, files.gl_pathv[i], 1 << 24, &text, NULL), 0);
		want = json_parse(strbuf_str(&text), text.len, NULL);
		n += count_configs(want, files.gl_pathv[i]);
	}
	globfree(&files);
	assert_true(n > 20);
}

TEST(takes_names_and_patterns_with_commas)
{
	static const char *const bad[] = {"", "a,", "/opt/cni/bin/x", "a,../b"};

	assert_int_equal(plugin_types_check_list(NULL, NULL), 0);
	assert_int_equal(plugin_types_check_list("acme, x-*", NULL), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err = {0};

		if (plugin_types_check_list(bad[i], &err) == 0)
			fail_msg("took %s", bad[i]);
		assert_string_equal(err.reason, "BadFlag");
	}
}

TEST(finds_each_plugin_that_would_run)
{
	static const struct {
		const char *plugins, *found; /* NULL: all may run */
	} rows[] = {
		{"[{type: macvlan, ipam: {type: whereabouts}}, {type: tuning}]", NULL},
		{"[{type: acme}]", "acme"},
		{"[{type: macvlan}, {type: acme}]", "acme"},
		{"[{type: macvlan, ipam: {type: acme}}]", "acme"},
		{"[{type: flannel, delegate: {type: acme}}]", "acme"},
		{"[{type: flannel, delegate: {type: bridge, ipam: {type: acme}}}]", "acme"},
		{"[{type: multi-nic, plugin: {type: acme}}]", "acme"},
		{"[{type: ptp, delegates: [{type: bridge}, {plugins: [{type: acme}]}]}]", "acme"},
		/* Plugins in Go take keys in any case, and the long s for an s. */
		{"[{type: macvlan, IPAM: {Type: acme}}]", "acme"},
		{"[{type: macvlan, ipam: {type: static}, Ipam: {TYPE: acme}}]", "acme"},
		{"[{type: ptp, \"delegate\xc5\xbf\": [{type: acme}]}]", "acme"},
		/* What is no plugin has types, too. */
		{"[{type: calico, ipam: {type: calico-ipam}, policy: {type: k8s}, kubernetes: "
		 "{type: x}}]",
		 NULL},
		{"[{type: macvlan, ipam: {}}]", NULL},
		{"[{type: macvlan, ipam: {type: ''}}]", NULL},
		{"[{type: macvlan, ipam: {type: 7}}]", NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		auto_free char *text = str_printf(
			"[{name: cluster, interface: eth0, config: {plugins: [{type: bridge}]}}, "
			"{name: ml/a, interface: net1, config: {plugins: %s}}]",
			rows[i].plugins);
		json_auto_t *delegates = yaml(text);
		struct plugin_types types = {0};
		struct err err = {0};
		int rc = plugin_types_check(delegates, &types, &err);

		if ((rc < 0) != (rows[i].found != NULL))
			fail_msg("row %zu: %s", i, err.text);
		if (rc == 0)
			continue;
		assert_string_equal(err.reason, "PluginNotAllowed");
		assert_non_null(strstr(err.text, "network ml/a (net1): CNI plugin \"acme\""));
		assert_non_null(strstr(err.text, "--cni-plugin-types"));
	}
}

TEST(believes_the_nodes_own_configurations)
{
	json_auto_t *delegates = yaml("[{name: ml/a, interface: net1, config: {plugins: [{type: "
				      "macvlan, ipam: {type: acme-ipam}}]}}]");
	json_auto_t *none = yaml("[{type: bridge}]"),
		    *direct = yaml("[{type: bridge}, {type: acme-ipam}]"),
		    *nested = yaml("[{name: x, plugins: [{type: acme, ipam: {type: acme-ipam}}]}]"),
		    *meta = yaml(
			    "[{type: orbweaver, delegates: [{plugins: [{type: acme, ipam: {type: "
			    "acme-ipam}}]}]}]"),
		    *beside = yaml("[{type: bridge, policy: {type: acme-ipam}}]");
	const struct {
		const json_t *own;
		int rc;
	} rows[] = {{NULL, -1}, {none, -1}, {direct, 0}, {nested, 0}, {meta, 0}, {beside, -1}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct plugin_types types = {.own = rows[i].own};

		if (plugin_types_check(delegates, &types, NULL) != rows[i].rc)
			fail_msg("row %zu", i);
	}
}

/* It would wait for the call that it is part of. */
TEST(refuses_a_meta_plugin_that_another_one_calls)
{
	static const char *const types[] = {"orbweaver", "multus", "multus-shim"};
	json_auto_t *own = yaml("[{type: orbweaver}, {type: multus}, {plugins: [{type: "
				"multus-shim}]}]");

	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		auto_free char *text = str_printf(
			"[{name: ml/a, interface: net1, config: {plugins: [{type: flannel, "
			"delegate: {type: %s}}]}}]",
			types[i]);
		json_auto_t *delegates = yaml(text);
		struct plugin_types allowed = {.more = "*", .own = own};
		struct err err = {0};

		assert_int_equal(plugin_types_check(delegates, &allowed, &err), -1);
		assert_string_equal(err.reason, "PluginNotAllowed");
		assert_non_null(strstr(err.text, "would set up all networks of the pod again"));
	}
}
