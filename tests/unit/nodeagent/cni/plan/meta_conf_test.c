// SPDX-License-Identifier: Apache-2.0
/* The runtime's configuration, made from what the CNI folder has; what Multus keeps. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/delegates.h"
#include "nodeagent/cni/plan/meta_conf.h"
#include "nodeagent/cni/plan/multus_state.h"

#define FLANNEL                                                                                    \
	"{\"cniVersion\":\"0.4.0\",\"name\":\"cbr0\",\"plugins\":[{\"type\":\"flannel\"},"         \
	"{\"type\":\"portmap\",\"capabilities\":{\"portMappings\":true,\"ipRanges\":true,\"x\":"   \
	"false}}]}"
#define MULTUS "{\"name\":\"multus-cni-network\",\"type\":\"multus\"}"

struct file {
	const char *name, *text;
};

/* The decision about these files (up to one without a name); *ret is to be done. */
static void decide(enum meta_mode mode, const struct file *files, struct meta_conf *ret)
{
	json_auto_t *list = json_array();

	for (; files->name; files++)
		json_array_append_new(
			list, json_pack("{s:s, s:s}", "name", files->name, "text", files->text));
	meta_conf_decide(&(struct meta_conf_input){.mode = mode, .files = list}, ret);
}

static void expect(enum meta_mode mode, const struct file *files, enum meta_conf_action action,
		   const char *note)
{
	struct meta_conf conf;

	decide(mode, files, &conf);
	assert_int_equal(conf.action, action);
	assert_string_equal(conf.note.reason, note);
	assert_int_equal(conf.text != NULL, action == META_CONF_WRITE);
	meta_conf_done(&conf);
}

TEST(carries_the_first_network_that_is_no_metas)
{
	const struct file files[] = {{"05-broken.conf", "{"},
				     {"10-flannel.conflist", FLANNEL},
				     {"20-b.conf", "{\"name\":\"b\",\"type\":\"bridge\"}"},
				     {0}};
	struct meta_conf conf;
	json_auto_t *ours = NULL;
	const json_t *plugin;

	decide(META_AUTO, files, &conf);
	assert_int_equal(conf.action, META_CONF_WRITE);
	ours = json_parse(conf.text, strlen(conf.text), NULL);
	assert_string_equal(json_str_at(ours, "name"), "cbr0");
	assert_string_equal(json_str_at(ours, "cniVersion"), "0.4.0");
	plugin = json_array_get(json_at(ours, "plugins"), 0);
	assert_string_equal(json_str_at(plugin, "type"), "orbweaver");
	assert_true(json_is_true(json_at(plugin, "capabilities", "ipRanges")));
	assert_true(json_is_true(json_at(plugin, "capabilities", "bandwidth")));
	assert_null(json_at(plugin, "capabilities", "x"));
	assert_string_equal(json_str_at(json_array_get(json_at(plugin, "delegates"), 0), "name"),
			    "cbr0");
	meta_conf_done(&conf);
}

TEST(writes_nothing_that_is_there_already)
{
	const struct file files[] = {{"10-flannel.conflist", FLANNEL}, {0}};
	struct meta_conf first, second;

	decide(META_AUTO, files, &first);
	const struct file with_ours[] = {
		{META_CONF_FILE, first.text}, {"10-flannel.conflist", FLANNEL}, {0}};
	const struct file changed[] = {{META_CONF_FILE, first.text},
				       {"10-flannel.conflist", "{\"name\":\"n\",\"type\":\"t\"}"},
				       {0}};

	decide(META_AUTO, with_ours, &second);
	assert_int_equal(second.action, META_CONF_KEEP);
	expect(META_AUTO, changed, META_CONF_WRITE, "");
	meta_conf_done(&second);
	meta_conf_done(&first);
}

TEST(never_leaves_a_node_without_a_network)
{
	const struct file none[] = {{0}}, ours[] = {{META_CONF_FILE, "{}"}, {0}},
			  broken[] = {{META_CONF_FILE, "{}"}, {"10-a.conf", "{\"name\""}, {0}};

	expect(META_AUTO, none, META_CONF_KEEP, "NoClusterNetwork");
	expect(META_AUTO, ours, META_CONF_KEEP, "NoClusterNetwork");
	expect(META_AUTO, broken, META_CONF_KEEP, "NoClusterNetwork");
}

TEST(leaves_pods_to_a_multus)
{
	const struct file both[] = {{"00-multus.conf", MULTUS},
				    {"10-flannel.conflist", FLANNEL},
				    {0}},
			  late[] = {
				  {META_CONF_FILE, "{}"},
				  {"10-flannel.conflist", FLANNEL},
				  {"99-multus.conf", "{\"plugins\":[{\"type\":\"multus-shim\"}]}"},
				  {0}};

	expect(META_AUTO, both, META_CONF_KEEP, "MultusFound");
	expect(META_AUTO, late, META_CONF_REMOVE, "MultusFound");
}

TEST(stays_where_a_multus_has_it_as_the_clusters_network)
{
	const struct file by_path[] = {
		{"00-multus.conf", "{\"type\":\"multus-shim\",\"clusterNetwork\":\"/host/etc/cni/"
				   "net.d/" META_CONF_FILE "\"}"},
		{META_CONF_FILE, "{}"},
		{"10-flannel.conflist", FLANNEL},
		{0}};
	const struct file within[] = {
		{"00-multus.conf",
		 "{\"type\":\"multus\",\"delegates\":[{\"plugins\":[{\"type\":\"orbweaver\"}]}]}"},
		{META_CONF_FILE, "{}"},
		{"10-flannel.conflist", FLANNEL},
		{0}};
	/* The runtime would call us, and nobody Multus. */
	const struct file behind[] = {{META_CONF_FILE, "{}"},
				      {"10-flannel.conflist", FLANNEL},
				      {"70-multus.conf", by_path[0].text},
				      {0}};
	/* Nothing of ours is there that it could have. */
	const struct file stale[] = {by_path[0], by_path[2], {0}};

	expect(META_AUTO, by_path, META_CONF_WRITE, "MultusFound");
	expect(META_AUTO, within, META_CONF_WRITE, "MultusFound");
	expect(META_AUTO, behind, META_CONF_REMOVE, "MultusFound");
	expect(META_AUTO, stale, META_CONF_KEEP, "MultusFound");
}

TEST(tells_our_plugin_where_the_folder_is)
{
	json_auto_t *files = json_pack("[{s:s, s:s}]", "name", "10-f.conflist", "text", FLANNEL);
	const struct meta_conf_input usual = {.files = files, .dir = META_CONF_DIR},
				     other = {.files = files, .dir = "/var/cni"};
	struct meta_conf conf;

	meta_conf_decide(&usual, &conf);
	assert_null(strstr(conf.text, "confDir"));
	meta_conf_done(&conf);
	meta_conf_decide(&other, &conf);
	assert_non_null(strstr(conf.text, "\"confDir\":\"/var/cni\""));
	meta_conf_done(&conf);
}

TEST(a_file_before_ours_is_named)
{
	const struct file files[] = {{"00-a.conf", "{\"name\":\"a\",\"type\":\"bridge\"}"}, {0}};

	expect(META_AUTO, files, META_CONF_WRITE, "ConfNotFirst");
}

TEST(names_the_file_of_a_multus)
{
	json_auto_t *files =
		json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", META_CONF_FILE, "text",
			  "{\"type\":\"orbweaver\"}", "name", "70-m.conf", "text", MULTUS);
	json_auto_t *none = json_array();

	assert_string_equal(meta_conf_multus(files), "70-m.conf");
	assert_null(meta_conf_multus(none));
}

TEST(removes_its_file_where_it_is_off)
{
	const struct file ours[] = {{META_CONF_FILE, "{}"}, {"10-flannel.conflist", FLANNEL}, {0}},
			  other[] = {{"10-flannel.conflist", FLANNEL}, {0}};

	expect(META_OFF, ours, META_CONF_REMOVE, "");
	expect(META_OFF, other, META_CONF_KEEP, "");
}

TEST(carries_the_isolation_of_namespaces)
{
	json_auto_t *files = json_pack("[{s:s, s:s}]", "name", "10-f.conflist", "text", FLANNEL);
	const struct meta_conf_input in = {
		.files = files, .isolates = true, .shared = "default,shared"};
	struct meta_conf conf;

	meta_conf_decide(&in, &conf);
	assert_non_null(strstr(conf.text, "\"namespaceIsolation\":true"));
	assert_non_null(strstr(conf.text, "\"globalNamespaces\":\"default,shared\""));
	meta_conf_done(&conf);
}

TEST(takes_down_what_can_be_read_of_a_multus_state)
{
	json_auto_t *kept =
		json_pack("[{s:s},{s:s,s:s},i]", "Bytes", "???", "Bytes",
			  "eyJ0eXBlIjoibWFjdmxhbiIsIm5hbWUiOiJuIn0=", "Name", "ml/n", 7);
	json_auto_t *pod = json_pack("{s:s,s:s}", "namespace", "ml", "name", "p");
	json_auto_t *none = json_object(), *delegates = NULL, *refused = NULL;
	struct err err = {0};

	delegates = multus_state_read(kept, "c1", "eth0", "K8S_POD_UID=u", pod, &err);
	assert_int_equal(json_array_size(delegates), 1);
	assert_string_equal(json_str_at(json_array_get(delegates, 0), "interface"), "net1");
	refused = multus_state_read(none, "c1", "eth0", "", pod, &err);
	assert_null(refused);
	assert_string_equal(err.reason, "BadMultusState");
}

/* What is decided once a Multus with these members has gone; conf is to be done. */
static void decide_after(const char *members, struct meta_conf *ret)
{
	auto_free char *was =
		str_printf("{\"name\":\"multus-cni-network\",\"type\":\"multus-shim\"%s%s}",
			   *members ? "," : "", members);
	json_auto_t *files =
		json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "10-a.conflist", "text", FLANNEL,
			  "name", "20-b.conf", "text",
			  "{\"cniVersion\":\"1.0.0\",\"name\":\"storage\",\"type\":\"macvlan\"}");
	const struct meta_conf_input in = {.files = files, .multus_was = was};

	meta_conf_decide(&in, ret);
}

TEST(goes_on_with_what_a_multus_was_configured_with)
{
	static const struct {
		const char *members, *network, *want, *not_there;
	} cases[] = {
		{"", "cbr0", "\"multusConfDir\":\"/etc/cni/multus/net.d\"", "multusNamespace"},
		{"\"confDir\":\"/etc/cni/net.d/\"", "cbr0", "orbweaver", "multusConfDir"},
		{"\"clusterNetwork\":\"/host/etc/cni/net.d/20-b.conf\"", "storage", "orbweaver",
		 "clusterNetwork"},
		{"\"clusterNetwork\":\"/etc/cni/net.d/\"", "cbr0", "orbweaver", "clusterNetwork"},
		{"\"clusterNetwork\":\"/etc/cni/net.d/00-orbweaver.conflist\"", "cbr0", "orbweaver",
		 "clusterNetwork"},
		{"\"clusterNetwork\":\"storage\"", "storage", "\"clusterNetwork\":\"storage\"",
		 "x="},
		{"\"clusterNetwork\":\"a-definition\"", "cbr0",
		 "\"clusterNetwork\":\"a-definition\"", "x="},
		{"\"clusterNetwork\":\"storage\",\"defaultNetworks\":[\"x\",\"y\"]", "storage",
		 "\"defaultNetworks\":[\"x\",\"y\"]", "x="},
		{"\"defaultNetworks\":[\"x\"]", "cbr0", "orbweaver", "defaultNetworks"},
		{"\"systemNamespaces\":[]", "cbr0", "\"systemNamespaces\":[]", "x="},
		{"\"MultusNamespace\":\"spiderpool\"", "cbr0", "\"multusNamespace\":\"spiderpool\"",
		 "x="},
		{"\"namespaceIsolation\":true,\"globalNamespaces\":\"shared\"", "cbr0",
		 "\"namespaceIsolation\":true", "x="},
		{"\"namespaceIsolation\":true,\"globalNamespaces\":\"shared\"", "cbr0",
		 "\"globalNamespaces\":\"shared\"", "x="},
		/* The node's file is newer than the copy within. */
		{"\"delegates\":[{\"name\":\"storage\",\"type\":\"bridge\"}]", "storage", "macvlan",
		 "bridge"},
		{"\"delegates\":[{\"name\":\"gone\",\"type\":\"bridge\"},"
		 "{\"name\":\"more\",\"type\":\"ptp\"}]",
		 "gone", "ptp", "flannel"},
		{"\"binDir\":\"/opt/cni/bin\",\"logLevel\":\"debug\",\"logOptions\":{\"maxAge\":5}",
		 "cbr0", "orbweaver", "maxAge"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *written = NULL;
		struct meta_conf conf;

		decide_after(cases[i].members, &conf);
		if (conf.action != META_CONF_WRITE)
			fail_msg("%s: %s", cases[i].members, conf.note.text);
		written = json_parse(conf.text, strlen(conf.text), NULL);
		if (!str_eq(json_str_at(written, "name"), cases[i].network) ||
		    !strstr(conf.text, cases[i].want) || strstr(conf.text, cases[i].not_there))
			fail_msg("%s: %s", cases[i].members, conf.text);
		meta_conf_done(&conf);
	}
}

TEST(names_the_key_of_a_multus_that_it_cannot_obey)
{
	static const struct {
		const char *members, *key;
	} cases[] = {
		{"\"auxiliaryCNIChainName\":\"chain\"", "auxiliaryCNIChainName"},
		{"\"clusterNetwork\":\"/elsewhere/net.d\"", "clusterNetwork"},
		{"\"clusterNetwork\":\"/etc/cni/net.d/99-gone.conf\"", "clusterNetwork"},
		{"\"clusterNetwork\":\"calico/\"", "clusterNetwork"},
		{"\"clusterNetwork\":\"a\",\"defaultNetworks\":[\"/etc/x.conf\"]",
		 "defaultNetworks"},
		{"\"defaultNetworks\":\"storage\"", "defaultNetworks"},
		{"\"namespaceIsolation\":\"true\"", "namespaceIsolation"},
		{"\"binDir\":\"/usr/libexec/cni\"", "binDir"},
		{"\"aKeyOfLater\":1", "aKeyOfLater"},
		{"\"plugins\":[{\"type\":\"multus\"},{\"type\":\"sbr\"}]", "plugins"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct meta_conf conf;

		decide_after(cases[i].members, &conf);
		if (conf.action != META_CONF_KEEP || !str_eq(conf.note.reason, "MultusKey") ||
		    !strstr(conf.note.text, cases[i].key))
			fail_msg("%s: %d %s", cases[i].members, conf.action, conf.note.text);
		meta_conf_done(&conf);
	}
}

/* The name that default-network asks for: without it Multus would take eth0 down. */
TEST(leaves_a_multus_the_name_of_the_default_networks_interface)
{
	static const struct {
		const char *annotation, *want;
	} cases[] = {{"ml/n@roce0", "roce0"}, {"ml/n", NULL}, {"ml/n@eth0", NULL}};
	static const char config[] = "{\"cniVersion\":\"0.4.0\",\"type\":\"macvlan\"}";
	json_auto_t *nads = json_pack("{s:{s:{s:s,s:s}, s:{s:s}}}", "ml/n", "metadata", "name", "n",
				      "namespace", "ml", "spec", "config", config);
	json_auto_t *own =
		json_pack("{s:s, s:[{s:s, s:s, s:s}]}", "cniVersion", "0.4.0", "delegates",
			  "cniVersion", "0.4.0", "name", "k8s", "type", "bridge");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		json_auto_t *pod = json_pack(
			"{s:{s:s,s:s,s:{s:s}}}", "metadata", "name", "p", "namespace", "ml",
			"annotations", "v1.multus-cni.io/default-network", cases[i].annotation);
		const struct meta_input in = {.container_id = "c1",
					      .ifname = "eth0",
					      .args = "",
					      .config = own,
					      .pod = pod,
					      .nads = nads};
		json_auto_t *delegates = meta_delegates(&in, NULL);
		json_auto_t *kept = multus_state_write(delegates);
		const char *asked = json_str_at(json_array_get(kept, 0), "ifnameRequest");

		assert_int_equal(json_array_size(kept), 1);
		if (!str_eq(asked, cases[i].want))
			fail_msg("case %zu: %s", i, asked ? asked : "none");
	}
}
