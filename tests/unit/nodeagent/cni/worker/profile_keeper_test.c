// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles in folders as nodes have them: with and without Multus, with another program's plugins,
 * from one profile to another.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/root.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plugin/plugin.h"
#include "nodeagent/cni/state/install.h"
#include "nodeagent/cni/worker/profile_keeper.h"

#define BIN     "opt/cni/bin"
#define CONF    "etc/cni/net.d"
#define OURS    CONF "/" META_CONF_FILE
#define MULTUS  "{\"name\":\"multus-cni-network\",\"type\":\"multus-shim\"}"
#define CLUSTER "{\"cniVersion\":\"0.4.0\",\"name\":\"cbr0\",\"plugins\":[{\"type\":\"bridge\"}]}"

struct node {
	char path[64];
	int root;
	enum profile profile;
	json_t *memory; /* from look to look, each of which is another process's */
	char *program;
	json_t *networks; /* as said last */
	enum profile_use use;
	bool is_open; /* by the last look */
	bool is_meta_used;
};

static void put(const struct node *node, const char *path, const char *text)
{
	assert_int_equal(root_write_atomic(node->root, path, text, strlen(text), 0755, NULL), 0);
}

/* The text of a file, new; NULL: there is none. */
static char *get(const struct node *node, const char *path)
{
	auto_strbuf struct strbuf text = {0};

	return fs_read(node->root, path, 65536, &text, NULL) < 0 ? NULL : strbuf_take(&text);
}

static void expect_text(const struct node *node, const char *path, const char *want)
{
	auto_free char *text = get(node, path);

	if (!str_eq(text, want))
		fail_msg("%s: %s, wanted %s", path, text ? text : "none", want ? want : "none");
}

static void expect_ours(const struct node *node, const char *name)
{
	auto_free char *path = str_printf(BIN "/%s", name);

	expect_text(node, path, PLUGIN_MARK);
}

static void expect_said(const struct node *node, const char *reason)
{
	if (!str_eq(json_str_at(node->networks, "reason"), reason))
		fail_msg("%s, wanted %s", json_text(node->networks), reason);
}

static void look(struct node *node)
{
	const struct profile_usage usage = {
		.use = node->use, .is_meta_used = node->is_meta_used, .user = "lab/a"};
	struct profile_keeper *keeper = profile_keeper_new(&(struct profile_keeper_config){
		.root = node->root,
		.bin_dir = "/" BIN,
		.program = node->program,
		.conf_dir = "/" CONF,
		.memory = node->memory,
	});

	json_decref(node->networks);
	node->networks = profile_keeper_look(keeper, node->profile, &usage, &node->is_open);
	json_decref(node->memory);
	node->memory = profile_keeper_memory(keeper);
	profile_keeper_free(keeper);
}

static int setup(void **state)
{
	static const struct node fresh = {.path = "/tmp/profile-XXXXXX"};
	struct node *node = mem_new(struct node);

	*node = fresh;
	assert_non_null(mkdtemp(node->path));
	node->root = open(node->path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(root_make_dirs(node->root, BIN, 0755), 0);
	assert_int_equal(root_make_dirs(node->root, CONF, 0755), 0);
	put(node, "program", PLUGIN_MARK);
	put(node, BIN "/ptp", "ptp");
	put(node, CONF "/10-cluster.conflist", CLUSTER);
	node->program = str_below(node->path, "program");
	*state = node;
	return 0;
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	return remove(path);
}

static int teardown(void **state)
{
	struct node *node = *state;
	int rc;

	json_decref(node->memory);
	json_decref(node->networks);
	(void)close(node->root);
	mem_free(node->program);
	rc = nftw(node->path, forget, 16, FTW_DEPTH | FTW_PHYS);
	mem_free(node);
	return rc;
}

static void be(struct node *node, enum profile profile)
{
	node->profile = profile;
	look(node);
}

/* ---- auto ------------------------------------------------------------------------------------ */

TEST_WITH(a_node_without_multus_gets_all, setup, teardown)
{
	struct node *node = *state;
	auto_free char *conf = NULL;

	be(node, PROFILE_AUTO);
	for (size_t i = 0; i < install_n_names; i++)
		expect_ours(node, install_names[i]);
	conf = get(node, OURS);
	assert_non_null(strstr(conf, "\"cbr0\""));
	expect_said(node, "MetaPlugin");
}

/* Name, length, times and content of all that is in the folders, but for names of ours. */
static char *picture(const struct node *node)
{
	auto_strbuf struct strbuf text = {0};
	static const char *const files[] = {
		BIN "/ptp",         BIN "/sriov",           BIN "/rdma",
		BIN "/multus-shim", CONF "/00-multus.conf", CONF "/10-cluster.conflist",
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		auto_free char *content = get(node, files[i]);
		struct stat st;

		assert_int_equal(fstatat(node->root, files[i], &st, AT_SYMLINK_NOFOLLOW), 0);
		strbuf_addf(&text, "%s %o %ju %jd.%09ld %jd.%09ld %s\n", files[i], st.st_mode,
			    (uintmax_t)st.st_ino, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
			    (intmax_t)st.st_ctim.tv_sec, st.st_ctim.tv_nsec, content);
	}
	return strbuf_take(&text);
}

static void put_multus(const struct node *node)
{
	put(node, BIN "/multus-shim", "multus");
	put(node, BIN "/sriov", "theirs");
	put(node, BIN "/rdma", "theirs, too");
	put(node, CONF "/00-multus.conf", MULTUS);
}

TEST_WITH(with_multus_and_sriov_cni_nothing_of_theirs_changes, setup, teardown)
{
	struct node *node = *state;
	auto_free char *before = NULL, *after = NULL;

	put_multus(node);
	before = picture(node);
	be(node, PROFILE_AUTO);
	look(node);
	expect_said(node, "PluginsKept");
	expect_text(node, OURS, NULL);
	expect_text(node, BIN "/sriov" INSTALL_SAVED, NULL);
	expect_ours(node, "spiderpool");
	expect_ours(node, "ib-sriov");
	be(node, PROFILE_DEVICES);
	look(node);
	expect_text(node, BIN "/spiderpool", NULL);
	after = picture(node);
	assert_string_equal(before, after);
}

/* Whenever the agent was restarted meanwhile. */
TEST_WITH(what_a_multus_was_configured_with_outlives_it, setup, teardown)
{
	struct node *node = *state;
	auto_free char *conf = NULL;

	put(node, CONF "/00-multus.conf",
	    "{\"name\":\"m\",\"type\":\"multus\",\"clusterNetwork\":\"/etc/cni/net.d/"
	    "20-b.conflist\","
	    "\"namespaceIsolation\":true,\"multusNamespace\":\"spiderpool\"}");
	put(node, CONF "/20-b.conflist",
	    "{\"cniVersion\":\"0.4.0\",\"name\":\"second\",\"plugins\":[{\"type\":\"bridge\"}]}");
	be(node, PROFILE_AUTO);
	expect_said(node, "MultusDelegates");
	json_decref(take_ptr(node->memory));
	assert_int_equal(root_remove(node->root, CONF "/00-multus.conf"), 0);
	be(node, PROFILE_AUTO);
	expect_said(node, "MetaPlugin");
	conf = get(node, OURS);
	assert_non_null(strstr(conf, "\"second\""));
	assert_non_null(strstr(conf, "\"namespaceIsolation\":true"));
	assert_non_null(strstr(conf, "\"multusNamespace\":\"spiderpool\""));
}

TEST_WITH(a_key_that_it_cannot_obey_is_named_before_multus_is_removed, setup, teardown)
{
	struct node *node = *state;

	put(node, CONF "/00-multus.conf",
	    "{\"name\":\"m\",\"type\":\"multus\",\"auxiliaryCNIChainName\":\"chain\"}");
	be(node, PROFILE_AUTO);
	expect_said(node, "MultusDelegates");
	assert_non_null(strstr(json_str_at(node->networks, "message"), "auxiliaryCNIChainName"));
	assert_int_equal(root_remove(node->root, CONF "/00-multus.conf"), 0);
	look(node);
	expect_said(node, "MultusKey");
	assert_true(json_is_true(json_at(node->networks, "fault")));
	expect_text(node, OURS, NULL);
}

TEST_WITH(a_multus_that_is_being_replaced_is_waited_for, setup, teardown)
{
	struct node *node = *state;

	assert_int_equal(root_make_dirs(node->root, CONF "/multus.d", 0755), 0);
	put(node, CONF "/multus.d/multus.kubeconfig", "");
	be(node, PROFILE_AUTO);
	expect_said(node, "MultusAway");
	expect_text(node, OURS, NULL);
	put(node, CONF "/00-multus.conf", MULTUS);
	look(node);
	expect_said(node, "MultusDelegates");
	assert_false(node->is_open);
	assert_int_equal(unlinkat(node->root, CONF "/00-multus.conf", 0), 0);
	look(node);
	expect_said(node, "MultusAway");
	/* Nothing changes when the time ends. */
	assert_true(node->is_open);
	/* It was removed for good. */
	assert_int_equal(unlinkat(node->root, CONF "/multus.d/multus.kubeconfig", 0), 0);
	assert_int_equal(unlinkat(node->root, CONF "/multus.d", AT_REMOVEDIR), 0);
	look(node);
	expect_said(node, "MetaPlugin");
}

TEST_WITH(says_why_pods_get_no_networks, setup, teardown)
{
	struct node *node = *state;

	assert_int_equal(unlinkat(node->root, CONF "/10-cluster.conflist", 0), 0);
	be(node, PROFILE_AUTO);
	expect_said(node, "NoClusterNetwork");
	assert_false(json_is_true(json_at(node->networks, "fault")));
	put(node, CONF "/00-first.conflist", CLUSTER);
	look(node);
	expect_said(node, "ConfNotFirst");
	assert_true(json_is_true(json_at(node->networks, "fault")));
}

TEST_WITH(says_that_plugins_cannot_be_installed_and_tries_again, setup, teardown)
{
	struct node *node = *state;

	assert_int_equal(unlinkat(node->root, "program", 0), 0);
	be(node, PROFILE_AUTO);
	assert_true(json_is_true(json_at(node->networks, "fault")));
	assert_false(json_is_true(json_at(node->networks, "serves")));
	put(node, "program", PLUGIN_MARK);
	look(node);
	expect_said(node, "MetaPlugin");
}

/* ---- from one to another --------------------------------------------------------------------- */

TEST_WITH(delegate_keeps_theirs_and_auto_brings_it_back, setup, teardown)
{
	struct node *node = *state;

	put_multus(node);
	be(node, PROFILE_DELEGATE);
	expect_said(node, "PluginsOnly");
	expect_ours(node, "sriov");
	expect_text(node, BIN "/sriov" INSTALL_SAVED, "theirs");
	node->use = PROFILE_USED;
	be(node, PROFILE_AUTO);
	expect_said(node, "PluginsInUse");
	expect_ours(node, "sriov");
	node->use = PROFILE_UNUSED;
	look(node);
	expect_text(node, BIN "/sriov", "theirs");
	expect_text(node, BIN "/rdma", "theirs, too");
	expect_ours(node, "spiderpool");
}

TEST_WITH(devices_waits_for_the_last_pod, setup, teardown)
{
	struct node *node = *state;
	auto_free char *before = NULL, *after = NULL;

	be(node, PROFILE_AUTO);
	before = get(node, OURS);
	node->use = PROFILE_USE_UNKNOWN;
	be(node, PROFILE_DEVICES);
	expect_said(node, "PluginsInUse");
	node->use = PROFILE_USED;
	look(node);
	after = get(node, OURS);
	assert_string_equal(after, before);
	expect_ours(node, "orbweaver");
	node->use = PROFILE_UNUSED;
	look(node);
	/* A runtime that has read the configuration a moment ago still finds the plugin. */
	expect_text(node, OURS, NULL);
	expect_ours(node, "orbweaver");
	look(node);
	expect_said(node, "DevicesOnly");
	for (size_t i = 0; i < install_n_names; i++) {
		auto_free char *path = str_printf(BIN "/%s", install_names[i]);

		/* Runtimes call it for pods of others. */
		if (str_eq(install_names[i], "loopback"))
			expect_ours(node, "loopback");
		else
			expect_text(node, path, NULL);
	}
	expect_text(node, BIN "/ptp", "ptp");
}

TEST_WITH(a_pod_that_came_meanwhile_has_the_configuration_back, setup, teardown)
{
	struct node *node = *state;
	auto_free char *conf = NULL;

	be(node, PROFILE_AUTO);
	be(node, PROFILE_DEVICES);
	expect_text(node, OURS, NULL);
	node->use = PROFILE_USED;
	node->is_meta_used = true;
	look(node);
	expect_said(node, "PluginsInUse");
	conf = get(node, OURS);
	assert_non_null(conf);
}

/* A node that is as it should be waits for changes in its folders only. */
TEST_WITH(a_look_is_due_while_pods_or_failures_are_waited_for, setup, teardown)
{
	struct node *node = *state;

	be(node, PROFILE_AUTO);
	assert_false(node->is_open);
	node->use = PROFILE_USED;
	be(node, PROFILE_DEVICES);
	assert_true(node->is_open);
	node->use = PROFILE_UNUSED;
	look(node);
	/* The configuration has gone, the plugins have not. */
	assert_true(node->is_open);
	look(node);
	assert_false(node->is_open);
	assert_int_equal(unlinkat(node->root, "program", 0), 0);
	be(node, PROFILE_AUTO);
	assert_true(node->is_open);
}
