// SPDX-License-Identifier: Apache-2.0
/* Interfaces of a pod with RDMA devices and GIDs, and the script that is made of them. */
#include "tests/support/test.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/rdma_rows.h"
#include "tests/support/yaml.h"

static const char LOOK[] = "links:\n"
			   "- {name: lo, flags: 9, type: 772}\n"
			   "- {name: eth0, flags: 1, type: 1}\n"
			   "- {name: net10, flags: 1, type: 1, parent: '0000:3c:00.2'}\n"
			   "- {name: net2, flags: 1, type: 1, parent: '0000:3b:00.2'}\n"
			   "- {name: ib0, flags: 1, type: 32}\n"
			   "- {name: 'a$(b)', flags: 1, type: 1}\n"
			   "- {name: plain, flags: 1, type: 1}\n"
			   "addresses:\n"
			   "- {dev: eth0, address: 10.1.0.9/24}\n"
			   "- {dev: net2, address: 10.6.0.1/16}\n"
			   "- {dev: net2, address: 'fe80::1/64'}\n"
			   "- {dev: net10, address: 10.7.0.1/16}\n"
			   "- {dev: net10, address: 'fd00::1/64'}\n"
			   "- {dev: ib0, address: 10.8.0.1/16}\n";

static const char GIDS[] =
	"10.6.0.1: [{device: mlx5_2, port: 1, index: 2, version: 1}, {device: mlx5_2, port: 1, "
	"index: 3, version: 2}]\n"
	"10.7.0.1: [{device: mlx5_3, port: 1, index: 3, version: 2}, {device: other, port: 1, "
	"index: 9, version: 2}]\n"
	"'fd00::1': [{device: mlx5_3, port: 1, index: 5, version: 2}]\n"
	"10.1.0.9: [{device: mlx5_9, port: 1, index: 1, version: 2}]\n";

static void assert_yaml(const json_t *got, const char *want_text)
{
	json_auto_t *want = yaml(want_text);
	auto_free char *text = json_text(got);

	if (!json_same(got, want))
		fail_msg("%s, not %s", text, want_text);
}

TEST(looks_for_addresses_that_reach_beyond_the_link)
{
	json_auto_t *look = yaml(LOOK), *wanted = rdma_rows_wanted(look), *gids = yaml(GIDS);

	assert_yaml(wanted, "{addresses: [10.7.0.1, 'fd00::1', 10.6.0.1], functions: "
			    "['0000:3c:00.2', '0000:3b:00.2']}");
	assert_true(rdma_rows_are_complete(wanted, gids));
	(void)json_object_del(gids, "fd00::1");
	assert_false(rdma_rows_are_complete(wanted, gids));
	/* RoCE v1 alone does not do. */
	json_put(gids, "fd00::1", yaml("[{device: mlx5_3, port: 1, index: 4, version: 1}]"));
	assert_false(rdma_rows_are_complete(wanted, gids));
}

TEST(shared_devices_are_known_by_their_gids)
{
	json_auto_t *look = yaml(LOOK), *gids = yaml(GIDS), *none = json_array();
	json_auto_t *rows = rdma_rows(look, none, gids, false);

	assert_yaml(rows,
		    "- {interface: net10, function: '0000:3c:00.2', rdmaDevice: mlx5_3, addresses: "
		    "[10.7.0.1, 'fd00::1'], gids: [{port: 1, index: 3, version: 2, address: "
		    "10.7.0.1}, {port: 1, index: 5, version: 2, address: 'fd00::1'}]}\n"
		    "- {interface: net2, function: '0000:3b:00.2', rdmaDevice: mlx5_2, addresses: "
		    "[10.6.0.1], gids: [{port: 1, index: 2, version: 1, address: 10.6.0.1}, {port: "
		    "1, index: 3, version: 2, address: 10.6.0.1}]}\n");
}

TEST(devices_of_the_pod_alone_are_known_by_its_namespace)
{
	json_auto_t *look = yaml(LOOK), *none = json_object();
	json_auto_t *ports = yaml("[{device: mlx5_2, interface: net2}, {device: mlx5_4, interface: "
				  "ib0}, {device: mlx5_5}, {device: 'x`y`', interface: plain}]");
	json_auto_t *rows = rdma_rows(look, ports, none, true);
	json_auto_t *shared = rdma_rows(look, ports, none, false);

	assert_yaml(rows,
		    "- {interface: net2, function: '0000:3b:00.2', rdmaDevice: mlx5_2, addresses: "
		    "[10.6.0.1]}\n"
		    "- {interface: ib0, rdmaDevice: mlx5_4, infiniband: true, addresses: "
		    "[10.8.0.1]}\n"
		    "- {rdmaDevice: mlx5_5, infiniband: true, addresses: []}\n");
	assert_int_equal(json_array_size(shared), 2);
}

TEST(rows_are_in_the_order_of_rails)
{
	static const char unsorted[] = "[{interface: net10, pf: p1}, {interface: net2, pf: p0}, "
				       "{interface: net1, pf: p2}]";
	json_auto_t *rows = yaml(unsorted), *others = yaml(unsorted);
	/* Two are of one rail. */
	json_auto_t *all = yaml("{nics: [{pciAddress: p2, rail: 0}, {pciAddress: p1, rail: 0}, "
				"{pciAddress: p0, rail: 2}]}");
	json_auto_t *some = yaml("{nics: [{pciAddress: p2, rail: 7}]}");

	rdma_rows_sort(rows, all);
	assert_yaml(rows, "[{interface: net1, pf: p2, rail: 0}, {interface: net10, pf: p1, rail: "
			  "0}, {interface: net2, pf: p0, rail: 2}]");
	rdma_rows_sort(others, some);
	assert_yaml(others, "[{interface: net1, pf: p2, rail: 7}, {interface: net2, pf: p0}, "
			    "{interface: net10, pf: p1}]");
}

#define HEAD                  "# sandbox c1\n# Read by a shell: . /run/orbweaver/nccl.env. What is set stays.\n"
#define EXPORT(name_, value_) "export " name_ "=\"${" name_ "-" value_ "}\"\n"
#define SOCKETS               EXPORT("NCCL_SOCKET_IFNAME", "=eth0") EXPORT("GLOO_SOCKET_IFNAME", "eth0")
#define TRAFFIC                                                                                    \
	"[ -z \"${NCCL_IB_TC-}\" ] || export "                                                     \
	"UCX_IB_TRAFFIC_CLASS=\"${UCX_IB_TRAFFIC_CLASS-$NCCL_IB_TC}\"\n"

TEST(the_script_has_one_index_or_lets_nccl_choose)
{
	json_auto_t *same = yaml("[{rdmaDevice: mlx5_2, addresses: [10.6.0.1], gids: [{port: 1, "
				 "index: 3, version: 2, address: 10.6.0.1}]}]");
	json_auto_t *other = yaml("[{rdmaDevice: mlx5_2, addresses: [10.6.0.1], gids: [{port: 1, "
				  "index: 3, version: 2, address: 10.6.0.1}]}, {rdmaDevice: "
				  "mlx5_3, addresses: [10.7.0.1], gids: [{port: 1, index: 5, "
				  "version: 2, address: 10.7.0.1}]}]");
	json_auto_t *none = json_array();
	auto_free char *one = job_env_text(same, "c1"), *two = job_env_text(other, "c1");
	auto_free char *owner = job_env_owner(one);

	assert_string_equal(
		one, HEAD EXPORT("NCCL_IB_HCA", "=mlx5_2:1") EXPORT("UCX_NET_DEVICES", "mlx5_2:1")
			     EXPORT("NCCL_IB_GID_INDEX", "3") EXPORT("UCX_IB_GID_INDEX", "3")
				     SOCKETS TRAFFIC);
	assert_non_null(strstr(two, "# the GID indices differ, "));
	assert_non_null(strstr(two, EXPORT("NCCL_IB_HCA", "=mlx5_2:1,mlx5_3:1")));
	assert_non_null(strstr(two, EXPORT("NCCL_IB_ADDR_FAMILY", "AF_INET")
					    EXPORT("NCCL_IB_ROCE_VERSION_NUM", "2")));
	assert_null(strstr(two, "GID_INDEX=\""));
	assert_string_equal(owner, "c1");
	assert_null(job_env_text(none, "c1"));
	assert_null(job_env_owner("# other"));
}
