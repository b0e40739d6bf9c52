// SPDX-License-Identifier: Apache-2.0
/* GIDs of addresses, in tables of simulated hosts. */
#include "tests/support/test.h"

#include <stdio.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/gid.h"
#include "lib/json/json.h"
#include "nodeagent/host/gids.h"
#include "tests/support/yaml.h"

static int set_up(void **state)
{
	*state = host_tree_new();
	return 0;
}

static int tear_down(void **state)
{
	host_tree_free(*state);
	return 0;
}

static void put_text(struct host_tree *tree, const char *device, const char *path, const char *text)
{
	auto_free char *full = str_printf("sys/class/infiniband/%s/ports/1/%s", device, path);
	auto_free char *line = str_printf("%s\n", text);

	host_tree_file(tree, full, line);
}

/* address NULL: an empty slot, whose type the kernel does not tell. */
static void put_slot(struct host_tree *tree, const char *device, int index, const char *address,
		     const char *type, const char *netdev)
{
	auto_free char *slot = str_printf("gids/%d", index);
	auto_free char *types = str_printf("gid_attrs/types/%d", index);
	auto_free char *ndevs = str_printf("gid_attrs/ndevs/%d", index);
	char gid[GID_TEXT_SIZE] = "0000:0000:0000:0000:0000:0000:0000:0000";

	if (address)
		assert_true(gid_of_address(address, gid));
	put_text(tree, device, slot, gid);
	if (!address)
		return;
	put_text(tree, device, types, type);
	put_text(tree, device, ndevs, netdev);
}

static void is_found(struct host_tree *tree, const char *wanted_text, const char *want_text)
{
	json_auto_t *wanted = yaml(wanted_text), *want = yaml(want_text);
	struct err err = {0};
	json_auto_t *got = gids_find(host_tree_host(tree), wanted, &err);
	auto_free char *text = got ? json_text(got) : str_dup(err.text);

	if (!got || !json_same(got, want))
		fail_msg("%s: %s", wanted_text, text);
}

static void add_shared_device(struct host_tree *tree)
{
	put_text(tree, "mlx5_0", "link_layer", "Ethernet");
	put_slot(tree, "mlx5_0", 0, "fe80::1", "IB/RoCE v1", "ens1");
	put_slot(tree, "mlx5_0", 1, NULL, "", "");
	for (int i = 2; i < 11; i++)
		put_slot(tree, "mlx5_0", i, "10.6.0.9", "RoCE v2", "net1");
	put_slot(tree, "mlx5_0", 11, "10.6.0.1", "IB/RoCE v1", "net1");
	put_slot(tree, "mlx5_0", 12, "10.6.0.1", "RoCE v2", "net1");
}

TEST_WITH(only_those_that_are_asked_for_are_told, set_up, tear_down)
{
	add_shared_device(*state);
	is_found(*state, "{'addresses': ['10.6.0.1', '10.6.0.2']}",
		 "{'10.6.0.1': [{'device': 'mlx5_0', 'port': 1, 'index': 11, 'version': 1, "
		 "'netdev': 'net1'}, {'device': 'mlx5_0', 'port': 1, 'index': 12, 'version': 2, "
		 "'netdev': 'net1'}]}");
	is_found(*state, "{'addresses': []}", "{}");
	is_found(*state, "{}", "{}");
	/* What is no address has no GID; an empty slot is nobody's. */
	is_found(*state, "{'addresses': ['10.6.0.1/16', '../..', '::', '']}", "{}");
}

TEST_WITH(a_table_of_infiniband_is_left_out, set_up, tear_down)
{
	add_shared_device(*state);
	put_text(*state, "mlx5_0", "link_layer", "InfiniBand");
	is_found(*state, "{'addresses': ['10.6.0.1']}", "{}");
}

TEST_WITH(a_vf_is_read_if_a_pod_has_it, set_up, tear_down)
{
	put_text(*state, "mlx5_4", "link_layer", "Ethernet");
	put_slot(*state, "mlx5_4", 0, "10.6.0.1", "RoCE v2", "net1");
	host_tree_link(*state, "sys/class/infiniband/mlx5_4/device",
		       "../../../bus/pci/devices/0000:3c:00.1");
	host_tree_file(*state, "sys/bus/pci/devices/0000:3c:00.1/physfn", "");
	is_found(*state, "{'addresses': ['10.6.0.1'], 'functions': ['0000:3c:00.2']}", "{}");
	is_found(*state, "{'addresses': ['10.6.0.1'], 'functions': ['0000:3c:00.1']}",
		 "{'10.6.0.1': [{'device': 'mlx5_4', 'port': 1, 'index': 0, 'version': 2, "
		 "'netdev': 'net1'}]}");
}

TEST_WITH(the_gids_of_one_address_have_an_end, set_up, tear_down)
{
	json_auto_t *wanted = yaml("{'addresses': ['10.6.0.9']}"), *got = NULL;

	put_text(*state, "mlx5_0", "link_layer", "Ethernet");
	for (int i = 0; i < GIDS_PER_ADDRESS + 5; i++)
		put_slot(*state, "mlx5_0", i, "10.6.0.9", "RoCE v2", "net1");
	got = gids_find(host_tree_host(*state), wanted, NULL);
	assert_int_equal(json_array_size(json_at(got, "10.6.0.9")), GIDS_PER_ADDRESS);
}

TEST_WITH(a_question_of_another_shape_is_refused, set_up, tear_down)
{
	json_auto_t *wanted = yaml("{'addresses': [5]}");
	struct err err = {0};

	assert_null(gids_find(host_tree_host(*state), wanted, &err));
	assert_string_equal(err.reason, "BadField");
}
