// SPDX-License-Identifier: Apache-2.0
/*
 * RDMA netlink of the tree: devices, ports, contexts, queue pairs, counters, the mode of the
 * subsystem. From the doors (host_tree.c).
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "nodeagent/model/text.h"
#include "nodeagent/netlink/message.h"

#define RXE_INDEX      9000
#define NLDEV(command) (RDMA_NL_NLDEV << 10 | (command))

/* mlx5's rule for the node GUID of an Ethernet VF: zero without admin MAC. */
static uint64_t guid_of(const struct pf *pf, int number)
{
	const unsigned char *m = pf->vfs[number].admin_mac;
	const unsigned char octets[8] = {m[0], m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
	uint64_t guid = 0;

	if (pf->is.is_ib)
		return pf->vfs[number].node_guid;
	if (text_mac_is_zero(m))
		return 0;
	for (size_t i = 0; i < sizeof(octets); i++)
		guid = guid << 8 | octets[i];
	return guid;
}

static uint64_t contexts_of(const struct host_tree *tree, const char *device)
{
	for (int i = 0; i < tree->rdma.n_opened; i++)
		if (str_eq(tree->rdma.opened[i].name, device))
			return (uint64_t)tree->rdma.opened[i].contexts;
	return 0;
}

static void put_entry(struct nl_msg *msg, const char *name, uint64_t count)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY);

	netlink_put_str(msg, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME, name);
	netlink_put(msg, RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR, &count, sizeof(count));
	nla_nest_end(msg, entry);
}

/* The kernel itself has a few of each kind. */
static void add_resources(const struct host_tree *tree, struct strbuf *answer, uint32_t index,
			  const char *name)
{
	struct nl_msg *msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_RES_GET), 0, NULL, 0);
	struct nlattr *summary;

	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	summary = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_SUMMARY);
	put_entry(msg, "pd", 1);
	put_entry(msg, "qp", 2);
	put_entry(msg, "ctx", contexts_of(tree, name));
	nla_nest_end(msg, summary);
	tree_add_message(answer, msg);
}

/* Index 100 × PF + 1, and 100 × PF + 2 + VF. */
static void add_device(const struct host_tree *tree, int command, struct strbuf *answer,
		       uint32_t index, const char *name, bool is_ib, uint64_t guid)
{
	struct nl_msg *msg;

	if (command == RDMA_NLDEV_CMD_RES_GET) {
		add_resources(tree, answer, index, name);
		return;
	}
	msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_GET), 0, NULL, 0);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_NAME, name);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_DEV_PROTOCOL, is_ib ? "ib" : "roce");
	netlink_put(msg, RDMA_NLDEV_ATTR_NODE_GUID, &guid, sizeof(guid));
	tree_add_message(answer, msg);
}

/* Is the RDMA device of this VF visible in this namespace? */
static bool sees_vf(struct host_tree *tree, const struct pf *pf, int number)
{
	const struct interface *interface = tree_interface_at(tree, pf->vfs[number].address);
	auto_free char *path = str_printf("sys/class/infiniband/%sv%d", pf->is.rdma, number);
	struct stat st;

	if (interface && interface->netns && tree->rdma.mode == 0)
		return interface->netns == tree->here;
	return (!tree->here || tree->rdma.mode == 1) && fstatat(tree->root, path, &st, 0) == 0;
}

static void get_devices(struct host_tree *tree, int command, struct strbuf *answer)
{
	bool is_host = !tree->here || tree->rdma.mode == 1;

	if (tree->rdma.rxe && is_host)
		add_device(tree, command, answer, RXE_INDEX, "rxe0", false, 0x0200000000000009);
	for (size_t i = 0; i < tree->n_pfs; i++) {
		struct pf *pf = tree->pfs[i];

		if (!pf->is.rdma || !tree_is_bound(pf))
			continue;
		if (is_host)
			add_device(tree, command, answer, (uint32_t)(1000 * i + 1), pf->is.rdma,
				   pf->is.is_ib, 0x0200000000000001);
		for (int n = 0; n < pf->count && !pf->is.vfs_lack_rdma; n++) {
			auto_free char *name = str_printf("%sv%d", pf->is.rdma, n);

			if (sees_vf(tree, pf, n))
				add_device(tree, command, answer,
					   (uint32_t)(1000 * i + 2) + (uint32_t)n, name,
					   pf->is.is_ib, guid_of(pf, n));
		}
	}
}

/* Those of mlx5 (drivers/infiniband/hw/mlx5/counters.c), of a VF and a PF. */
static const char *const hardware_counters[] = {
	"rx_write_requests",
	"rx_read_requests",
	"rx_atomic_requests",
	"rx_dct_connect",
	"out_of_buffer",
	"out_of_sequence",
	"duplicate_request",
	"rnr_nak_retry_err",
	"packet_seq_err",
	"implied_nak_seq_err",
	"local_ack_timeout_err",
	"resp_local_length_error",
	"resp_cqe_error",
	"req_cqe_error",
	"req_remote_invalid_request",
	"req_remote_access_errors",
	"resp_remote_access_errors",
	"resp_cqe_flush_error",
	"req_cqe_flush_error",
	"roce_adp_retrans",
	"roce_adp_retrans_to",
	"roce_slow_restart",
	"roce_slow_restart_cnps",
	"roce_slow_restart_trans",
	"rp_cnp_ignored",
	"rp_cnp_handled",
	"np_ecn_marked_roce_packets",
	"np_cnp_sent",
	"rx_icrc_encapsulated",
};

/* Is there an RDMA device with this index, of a driver that counts, in sight? */
static bool counts_rdma(struct host_tree *tree, uint32_t index)
{
	size_t i = index / 1000;
	int n = (int)(index % 1000) - 2;

	if (index == RXE_INDEX || i >= tree->n_pfs || !tree_counts(tree->pfs[i]->is.driver) ||
	    !tree_is_bound(tree->pfs[i]))
		return false;
	return n < 0 ? !tree->here || tree->rdma.mode == 1
		     : n < tree->pfs[i]->count && sees_vf(tree, tree->pfs[i], n);
}

static int get_counters(struct host_tree *tree, const struct nlmsghdr *request,
			struct strbuf *answer)
{
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1], *list;
	struct nl_msg *msg;
	uint32_t index = 0;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	if (!netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index) ||
	    !attrs[RDMA_NLDEV_ATTR_PORT_INDEX] || !counts_rdma(tree, index))
		return -EINVAL;
	msg = nlmsg_alloc_size(16384);
	assert(nlmsg_put(msg, 0, 0, NLDEV(RDMA_NLDEV_CMD_STAT_GET), 0, 0));
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	list = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	for (size_t i = 0; i < ARRAY_LEN(hardware_counters); i++) {
		struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY);
		uint64_t value = tree_value_of(tree, hardware_counters[i], index,
					       (uint64_t)index * 1000 + i);

		netlink_put_str(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME,
				hardware_counters[i]);
		netlink_put(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE, &value, sizeof(value));
		nla_nest_end(msg, entry);
	}
	nla_nest_end(msg, list);
	tree_add_message(answer, msg);
	return 0;
}

static void get_port(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	struct nl_msg *msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_PORT_GET), 0, NULL, 0);
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1];
	uint32_t index = 0;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	(void)netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, 1);
	netlink_put_u8(msg, RDMA_NLDEV_ATTR_PORT_STATE, 4);
	netlink_put_u8(msg, RDMA_NLDEV_ATTR_PORT_PHYS_STATE, 5);
	if (index == RXE_INDEX) {
		netlink_put_u32(msg, RDMA_NLDEV_ATTR_NDEV_INDEX,
				(uint32_t)tree_interface_by(tree, tree->rdma.rxe)->index);
		netlink_put_str(msg, RDMA_NLDEV_ATTR_NDEV_NAME, tree->rdma.rxe);
	}
	tree_add_message(answer, msg);
}

static int set_rdma_mode(struct host_tree *tree, const struct nlmsghdr *request)
{
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1];
	uint8_t mode;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	if (!netlink_u8(attrs[RDMA_NLDEV_SYS_ATTR_NETNS_MODE], &mode) || mode > 1)
		return -EINVAL;
	if (mode == tree->rdma.mode)
		return 0;
	if (tree->namespaces)
		return -EBUSY;
	tree->rdma.mode = mode;
	return 0;
}

static void add_qp(struct nl_msg *msg, uint8_t type, const char *module)
{
	struct nlattr *entry = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP_ENTRY);

	netlink_put_u8(msg, RDMA_NLDEV_ATTR_RES_TYPE, type);
	netlink_put_str(msg, RDMA_NLDEV_ATTR_RES_KERN_NAME, module);
	nla_nest_end(msg, entry);
}

/* QPs 0 and 1 (IB_QPT_SMI, IB_QPT_GSI), the driver's own, and a connected one of IB_QPT_RC. */
static void get_qps(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	struct nl_msg *msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_RES_QP_GET), 0, NULL, 0);
	struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX + 1], *list;
	uint32_t index = 0;

	(void)netlink_parse(request, 0, attrs, RDMA_NLDEV_ATTR_MAX);
	(void)netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index);
	list = nla_nest_start(msg, RDMA_NLDEV_ATTR_RES_QP);
	add_qp(msg, 0, "ib_core");
	add_qp(msg, 1, "ib_core");
	add_qp(msg, 4, "mlx5_ib");
	if (tree->rdma.module && index == tree->rdma.module_index)
		add_qp(msg, 2, tree->rdma.module);
	nla_nest_end(msg, list);
	tree_add_message(answer, msg);
}

int tree_rdma_request(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	struct nl_msg *msg;

	if (tree->rdma.is_away)
		return -EPROTONOSUPPORT;
	switch (request->nlmsg_type) {
	case NLDEV(RDMA_NLDEV_CMD_GET):
		get_devices(tree, RDMA_NLDEV_CMD_GET, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_RES_GET):
		get_devices(tree, RDMA_NLDEV_CMD_RES_GET, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_RES_QP_GET):
		get_qps(tree, request, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_PORT_GET):
		get_port(tree, request, answer);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_STAT_GET):
		return get_counters(tree, request, answer);
	case NLDEV(RDMA_NLDEV_CMD_SYS_GET):
		msg = netlink_request(NLDEV(RDMA_NLDEV_CMD_SYS_GET), 0, NULL, 0);
		netlink_put_u8(msg, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, tree->rdma.mode);
		tree_add_message(answer, msg);
		return 0;
	case NLDEV(RDMA_NLDEV_CMD_SYS_SET):
		return tree_fails_now(tree) ? -EIO : set_rdma_mode(tree, request);
	default:
		return -EINVAL;
	}
}
