// SPDX-License-Identifier: Apache-2.0
/*
 * A host whose folders are links, as a container sees it: absolute ones lead to the host's own
 * root. Through the doors of the kernel, in a tree of files.
 */
#include "tests/support/test.h"

#include <string.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/model/step.h"
#include "nodeagent/worker/execute.h"

#define PF   TREE_MLX
#define VF   "0000:3c:00.0"
#define NOTE "var/lib/cni/sriov/pci/" VF
#define RULE "etc/udev/rules.d/10-pf-name-" PF ".rules"
#define BOOT HOST_NEXT_BOOT_FILE

/* A host with one VF on vfio-pci, made by the tree's own kernel. */
static int set_up(void **state)
{
	static const char *const steps[] = {
		"{\"step\": \"set-num-vfs\", \"pf\": \"" PF "\", \"count\": 1}",
		"{\"step\": \"set-driver-override\", \"vf\": \"" VF "\", \"driver\": \"vfio-pci\"}",
		"{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}",
		"{\"step\": \"probe-driver\", \"vf\": \"" VF "\"}",
	};
	json_auto_t *nobody = json_object();

	*state = host_tree_new();
	host_tree_add_pf(*state, &tree_mlx);
	host_set_held(host_tree_host(*state), nobody);
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		json_auto_t *step = json_parse(steps[i], strlen(steps[i]), NULL), *result = NULL;
		struct err err = {0};

		if (host_execute(host_tree_host(*state), step, &result, &err) < 0)
			fail_msg("%s: %s", err.reason, err.text);
	}
	host_tree_file(*state, "sys/bus/pci/drivers/vfio-pci/unbind", "");
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static struct host *open_host(struct host_tree *tree)
{
	json_auto_t *nobody = json_object();
	struct err err = {0};
	struct host *host = host_open(host_tree_folder(tree), &err);

	if (!host)
		fail_msg("%s: %s", err.reason, err.text);
	host_set_held(host, nobody);
	return host;
}

static int run(struct host *host, const char *text, struct err *err)
{
	json_auto_t *step = json_parse(text, strlen(text), NULL), *result = NULL;

	return host_execute(host, step, &result, err);
}

static void does(struct host *host, const char *text)
{
	struct err err = {0};

	if (run(host, text, &err) < 0)
		fail_msg("%s: %s: %s", text, err.reason, err.text);
}

static bool has(struct host_tree *tree, const char *path)
{
	auto_free char *text = host_tree_read(tree, path);

	return *text != '\0';
}

/* Debian and Ubuntu have the first one, and runtimes note /var/run/netns. */
static const char *const ways_to_run[] = {"/run", "../run", "../../../../../run", "//run/."};

TEST_WITH(a_claimed_vf_keeps_its_driver_whatever_way_its_namespace_is_found, set_up, tear_down)
{
	auto_host struct host *host = open_host(*state);

	host_tree_file(*state, "run/netns/cni-1234", "x");
	host_tree_file(*state, NOTE, "/var/run/netns/cni-1234");
	for (size_t i = 0; i < ARRAY_LEN(ways_to_run); i++) {
		struct err err = {0};
		json_auto_t *observed = NULL;
		const json_t *vf;

		host_tree_link(*state, "var/run", ways_to_run[i]);
		observed = host_observe(host, HOST_OBSERVE_HOLDERS, &err);
		assert_non_null(observed);
		vf = json_array_get(
			json_at(json_array_get(json_at(observed, "interfaces"), 0), "Vfs"), 0);
		if (!vf) /* the interfaces of the real kernel are not those of the tree */
			vf = json_array_get(
				json_at(json_array_get(json_at(observed, "unusable"), 0), "Vfs"),
				0);
		assert_true(json_is_true(json_at(vf, "host", "inUse")));
		assert_string_equal(json_str_at(vf, "host", "holder", "kind"), "claimed");
		assert_int_equal(
			run(host, "{\"step\": \"unbind-driver\", \"vf\": \"" VF "\"}", &err), -1);
		assert_string_equal(err.reason, "VfInUse");
		assert_false(has(*state, "sys/bus/pci/drivers/vfio-pci/unbind"));
	}
}

static bool is_claimed(struct host *host)
{
	json_auto_t *observed = host_observe(host, HOST_OBSERVE_HOLDERS, NULL);
	const json_t *pf = json_array_get(json_at(observed, "unusable"), 0);

	return str_eq(json_str_at(json_array_get(json_at(pf, "Vfs"), 0), "host", "holder", "kind"),
		      "claimed");
}

TEST_WITH(only_a_note_whose_namespace_is_certainly_gone_is_a_leftover, set_up, tear_down)
{
	static const struct {
		const char *text;
		bool counts;
	} notes[] = {
		{"/var/run/netns/cni-1234", true},
		{"/var/run/netns/cni-5678", false},
		{"/run/netns/cni-5678", false},
		/* The file is there before its text. */
		{"", true},
		{"cni-1234", true},
		/* A namespace without a name, of a process that is gone. */
		{"/proc/2/ns/net", false},
		/* It cannot be followed. */
		{"/run/netns/loop", true},
	};
	auto_host struct host *host = open_host(*state);

	host_tree_link(*state, "var/run", "/run");
	host_tree_link(*state, "run/netns/loop", "/run/netns/loop");
	host_tree_file(*state, "proc/1/comm", "systemd\n");
	host_tree_file(*state, "run/netns/cni-1234", "x");
	for (size_t i = 0; i < ARRAY_LEN(notes); i++) {
		host_tree_file(*state, NOTE, notes[i].text);
		if (is_claimed(host) != notes[i].counts)
			fail_msg("\"%s\"", notes[i].text);
	}
}

TEST_WITH(files_in_etc_are_written_and_removed_where_the_host_has_them, set_up, tear_down)
{
	auto_host struct host *host = open_host(*state);

	host_tree_file(*state, "data/etc/hostname", "node");
	host_tree_remove(*state, "etc");
	host_tree_link(*state, "etc", "/data/etc");
	does(host, "{\"step\": \"write-udev-rule\", \"pf\": \"" PF
		   "\", \"rule\": \"pf-name\", \"name\": \"ens1f0np0\"}");
	does(host, "{\"step\": \"write-rdma-next-boot\", \"mode\": \"exclusive\"}");
	assert_true(has(*state, "data/" RULE));
	assert_true(has(*state, "data/" BOOT));
	does(host, "{\"step\": \"remove-udev-rule\", \"pf\": \"" PF "\", \"rule\": \"pf-name\"}");
	does(host, "{\"step\": \"remove-rdma-next-boot\"}");
	assert_false(has(*state, "data/" RULE));
	assert_false(has(*state, "data/" BOOT));
}
