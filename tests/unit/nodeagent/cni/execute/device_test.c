// SPDX-License-Identifier: Apache-2.0
/* What sysfs tells of a VF that is to be attached, and of its PF. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <unistd.h>

#include "cli/simulate/host/host_tree.h"
#include "lib/base/own_fd.h"
#include "nodeagent/cni/execute/device.h"
#include "nodeagent/host/host.h"

#define VF "0000:3c:00.0"

/* In switchdev the PF's folder has the representors of its VFs beside its own interface. */
TEST(a_pf_s_interface_is_its_uplink)
{
	struct host_tree *tree = host_tree_new();
	auto_close int root = open(host_tree_folder(tree), O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_host struct host *host = device_host(root, NULL);
	struct device device;

	host_tree_file(tree, "sys/bus/pci/devices/0000:3b:00.0/net/eth4/phys_port_name", "pf0vf0");
	host_tree_file(tree, "sys/bus/pci/devices/0000:3b:00.0/net/railA/phys_port_name", "p0");
	host_tree_file(tree, "sys/class/net/eth4/phys_port_name", "pf0vf0\n");
	host_tree_file(tree, "sys/class/net/eth4/phys_switch_id", "5e00\n");
	host_tree_file(tree, "sys/class/net/railA/phys_port_name", "p0\n");
	host_tree_file(tree, "sys/class/net/railA/phys_switch_id", "5e00\n");
	host_tree_file(tree, "sys/bus/pci/devices/" VF "/net/eth6/ifindex", "6\n");
	host_tree_link(tree, "sys/bus/pci/devices/" VF "/physfn", "../0000:3b:00.0");
	host_tree_link(tree, "sys/bus/pci/devices/0000:3b:00.0/virtfn0", "../" VF);
	assert_int_equal(device_look(host, VF, &device, NULL), 0);
	assert_string_equal(device.pf, "railA");
	assert_string_equal(device.netdev, "eth6");
	assert_int_equal(device.vf, 0);
	host_tree_free(tree);
}
