// SPDX-License-Identifier: Apache-2.0
/*
 * Faults of NICs on the host made of files, and texts that files share: as nodeagent/host sees
 * them.
 */
#include "tests/support/test.h"

#include <linux/ethtool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "cli/simulate/host/vendor_nics.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/netlink/netlink.h"
#include "nodeagent/netlink/rtnl_link.h"
#include "nodeagent/netlink/rtnl_vf.h"
#include "tests/fakes/shared_kernel.h"

static const char numvfs[] = "sys/bus/pci/devices/" TREE_MLX "/sriov_numvfs";

static struct host_tree *tree_with_vfs(const char *count, int *ret_code)
{
	struct host_tree *tree = host_tree_new();
	struct err err = {0};

	host_tree_add_pf(tree, &tree_mlx);
	*ret_code =
		host_tree_doors()->write(tree, -1, "sys/bus/pci/devices/" TREE_MLX "/sriov_numvfs",
					 count, strlen(count), &err);
	return tree;
}

/* Borrowed from *ret_observed, which is new. NULL: not there. */
static const json_t *look(struct host_tree *tree, json_t **ret_observed)
{
	struct err err = {0};

	json_decref(*ret_observed);
	*ret_observed = host_observe(host_tree_host(tree), 0, &err);
	if (!*ret_observed)
		fail_msg("%s", err.text);
	return json_find(json_at(*ret_observed, "interfaces"), "pciAddress", TREE_MLX);
}

TEST(shows_a_port_without_carrier_until_it_is_repaired)
{
	json_auto_t *observed = NULL;
	int code;
	struct host_tree *tree = tree_with_vfs("0", &code);

	assert_null(json_at(look(tree, &observed), "host", "carrier"));
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_LINK, true));
	assert_false(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_LINK, true));
	assert_true(json_is_false(json_at(look(tree, &observed), "host", "carrier")));
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_LINK, false));
	assert_true(json_is_true(json_at(look(tree, &observed), "host", "carrier")));
	host_tree_free(tree);
}

TEST(loses_interface_and_vfs_with_its_driver)
{
	json_auto_t *observed = NULL;
	struct err err = {0};
	int code;
	struct host_tree *tree = tree_with_vfs("4", &code);
	const json_t *pf = look(tree, &observed);

	assert_int_equal(code, 0);
	assert_int_equal(json_array_size(json_at(pf, "Vfs")), 4);
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_DRIVER, true));
	/* Observed are functions with a driver. */
	assert_null(look(tree, &observed));
	assert_int_equal(host_tree_doors()->write(tree, -1, numvfs, "4", 1, &err), -1);
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_DRIVER, false));
	pf = look(tree, &observed);
	assert_string_equal(json_str_at(pf, "name"), tree_mlx.netdev);
	assert_string_equal(json_str_at(pf, "driver"), tree_mlx.driver);
	assert_int_equal(json_array_size(json_at(pf, "Vfs")), 0);
	host_tree_free(tree);
}

TEST(is_not_seen_while_it_is_off_the_bus)
{
	json_auto_t *observed = NULL;
	int code;
	struct host_tree *tree = tree_with_vfs("4", &code);

	/* A driver that is missing meanwhile stays away. */
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_GONE, true));
	assert_null(look(tree, &observed));
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_DRIVER, true));
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_GONE, false));
	assert_null(look(tree, &observed));
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_DRIVER, false));
	assert_string_equal(json_str_at(look(tree, &observed), "driver"), tree_mlx.driver);
	host_tree_free(tree);
}

TEST(refuses_vfs_until_the_firmware_is_repaired)
{
	int code;
	struct host_tree *tree = tree_with_vfs("0", &code);
	struct err err = {0};

	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_VFS, true));
	assert_int_equal(host_tree_doors()->write(tree, -1, numvfs, "4", 1, &err), -1);
	assert_int_equal(err.sys, 5); /* EIO */
	assert_true(host_tree_set_fault(tree, TREE_MLX, TREE_FAULT_VFS, false));
	assert_int_equal(host_tree_doors()->write(tree, -1, numvfs, "4", 1, &err), 0);
	host_tree_free(tree);
}

static nlink_t links_of(struct host_tree *tree, const char *path)
{
	auto_free char *full = str_printf("%s/%s", host_tree_folder(tree), path);
	struct stat st;

	assert_int_equal(stat(full, &st), 0);
	return st.st_nlink;
}

TEST(shares_equal_texts_and_changes_only_its_own)
{
	char folder[] = "/tmp/texts-XXXXXX";
	struct tree_texts *texts;
	struct host_tree *one, *two;
	auto_free char *was = NULL, *is = NULL;

	assert_non_null(mkdtemp(folder));
	texts = tree_texts_new(folder);
	one = host_tree_new_in(folder, texts);
	two = host_tree_new_in(folder, texts);
	host_tree_file(one, "etc/x", "same");
	host_tree_file(two, "etc/x", "same");
	assert_int_equal(links_of(one, "etc/x"), 3);
	host_tree_file(one, "etc/x", "other");
	is = host_tree_read(one, "etc/x");
	was = host_tree_read(two, "etc/x");
	assert_string_equal(is, "other");
	assert_string_equal(was, "same");
	host_tree_bytes(two, "etc/x", "own", 3);
	assert_int_equal(links_of(two, "etc/x"), 1);
	host_tree_free(one);
	host_tree_free(two);
	tree_texts_free(texts);
	assert_int_equal(rmdir(folder), 0);
}

static void write_count(struct host_tree *tree, const char *count)
{
	struct err err = {0};

	if (shared_kernel_doors()->write(tree, -1, numvfs, count, strlen(count), &err) < 0)
		fail_msg("%s", err.text);
}

/* As workers of the agent do. */
static void write_count_in_child(struct host_tree *tree, const char *count)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		shared_kernel_reopen(tree);
		write_count(tree, count);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static size_t vfs_of_netlink(struct host_tree *tree)
{
	struct netlink *netlink = netlink_new();
	struct rtnl_interfaces links = {0};
	struct rtnl_vfs list = {0};
	struct err err = {0};
	const struct rtnl_interface *pf;
	size_t n;

	netlink_set_door(netlink, shared_kernel_doors()->exchange, tree);
	assert_int_equal(rtnl_list(netlink, &links, &err), 0);
	pf = rtnl_by_name(&links, tree_mlx.netdev);
	assert_non_null(pf);
	assert_int_equal(rtnl_list_vfs(netlink, pf->index, false, &list, &err), 0);
	n = list.n;
	rtnl_vfs_done(&list);
	rtnl_interfaces_done(&links);
	netlink_free(netlink);
	return n;
}

TEST(is_one_kernel_to_processes_that_share_it)
{
	json_auto_t *observed = NULL;
	int code;
	struct host_tree *tree = tree_with_vfs("3", &code);

	shared_kernel_begin(tree);
	write_count_in_child(tree, "0");
	write_count_in_child(tree, "4");
	assert_int_equal(vfs_of_netlink(tree), 4);
	assert_int_equal(json_array_size(json_at(look(tree, &observed), "Vfs")), 4);
	write_count(tree, "0");
	write_count_in_child(tree, "1");
	assert_int_equal(vfs_of_netlink(tree), 1);
	shared_kernel_end();
	host_tree_free(tree);
}

TEST(refuses_as_the_kernel_does)
{
	struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
	struct err err = {0};
	int code;
	struct host_tree *tree = tree_with_vfs("0", &code);

	assert_int_equal(host_tree_doors()->ethtool(tree, "nothing0", &command, &err), -1);
	assert_string_equal(err.reason, "EthtoolRefused");
	assert_int_equal(host_tree_doors()->ethtool(tree, tree_mlx.netdev, &command, &err), 0);
	host_tree_refuse_reboots(tree, true);
	assert_int_equal(host_tree_doors()->reboot(tree, INIT_SYSTEMD, &err), -1);
	assert_string_equal(err.reason, "RebootRefused");
	assert_int_equal(host_tree_reboots(tree), 0);
	host_tree_free(tree);
}

TEST(lists_the_nics_when_one_is_unknown)
{
	struct vendor_nic nic;
	struct err err = {0};

	assert_int_equal(vendor_nic_read("connectx-99", &nic, &err), -1);
	assert_int_equal(err.class, ERR_INVALID);
	assert_non_null(strstr(err.text, "connectx-7, "));
	for (size_t i = 0; vendor_nic_names[i]; i++) {
		if (vendor_nic_read(vendor_nic_names[i], &nic, &err) < 0)
			fail_msg("%s", err.text);
		assert_non_null(nic.pf.driver);
		vendor_nic_done(&nic);
	}
}
