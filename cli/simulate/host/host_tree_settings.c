// SPDX-License-Identifier: Apache-2.0
/*
 * Settings of PFs in the tree: DCB, and of ethtool pauses, rings and channels, as drivers keep
 * them; configfs of rdma_cm, PCI Express, and what NVIDIA's own driver has in sysfs, as files. From
 * the doors and ethtool's netlink, on what host_tree_drivers.c has started.
 */
#include <errno.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/pci_regs.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "nodeagent/netlink/message.h"

/* mlx5: the unit of buffers (port_buffer.c). */
enum { BUFFER_CELL = 128 };
/* What devices have while they have no folder. */
#define KEPT "sys/kernel/rdma_cm-"

static bool exists(const struct host_tree *tree, const char *path)
{
	struct stat st;

	return fstatat(tree->root, path, &st, 0) == 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

int tree_write_setting(struct host_tree *tree, const char *path, const char *text)
{
	auto_free char *line = str_printf("%s\n", text), *class = NULL;

	if (!exists(tree, path))
		return -ENOENT;
	if (str_ends(path, "/traffic_class")) {
		class = str_printf("Global tclass=%s\n", text);
		host_tree_file(tree, path, text[0] == '-' ? "" : class);
		return 0;
	}
	if (str_ends(path, "/default_roce_mode") && !str_eq(text, "RoCE v2") &&
	    !str_eq(text, "IB/RoCE v1"))
		return -EINVAL;
	host_tree_file(tree, path, line);
	return 0;
}

int tree_make_cm_folder(struct host_tree *tree, const char *path)
{
	const char *device = strrchr(path, '/') + 1;
	auto_free char *kept = str_printf(KEPT "%s", device);
	auto_free char *known = str_printf("sys/class/infiniband/%s", device);
	auto_free char *tos = str_printf("%s/ports/1/default_roce_tos", path);
	auto_free char *mode = str_printf("%s/ports/1/default_roce_mode", path);

	if (!exists(tree, known))
		return -ENODEV;
	if (renameat(tree->root, kept, tree->root, path) == 0)
		return 0;
	host_tree_file(tree, tos, "0\n");
	host_tree_file(tree, mode, "RoCE v2\n");
	return 0;
}

void tree_remove_cm_folder(struct host_tree *tree, const char *path)
{
	auto_free char *kept = str_printf(KEPT "%s", strrchr(path, '/') + 1);

	tree_need(renameat(tree->root, path, tree->root, kept) == 0, path);
}

int tree_write_config(struct host_tree *tree, const char *path, size_t at, const void *data,
		      size_t len)
{
	auto_strbuf struct strbuf bytes = {0};

	if (!sysfs_read_file(tree->host, path, PCI_CFG_SPACE_SIZE, &bytes))
		return -ENOENT;
	if (at != TREE_EXPRESS_AT + PCI_EXP_DEVCTL || len != 2)
		return -EPERM;
	memcpy(bytes.data + at, data, len);
	host_tree_bytes(tree, path, bytes.data, bytes.len);
	return 0;
}

/* ---- ethtool --------------------------------------------------------------------------------- */

/* As net/ethtool/pause.c, rings.c and channels.c answer. */
static const struct pair_kind {
	uint8_t get, set, reply;
	int rx, tx, rx_max, tx_max;
	size_t pair; /* in struct tree_settings */
} kinds[] = {
	{ETHTOOL_MSG_PAUSE_GET, ETHTOOL_MSG_PAUSE_SET, ETHTOOL_MSG_PAUSE_GET_REPLY,
	 ETHTOOL_A_PAUSE_RX, ETHTOOL_A_PAUSE_TX, 0, 0, offsetof(struct tree_settings, pauses)},
	{ETHTOOL_MSG_RINGS_GET, ETHTOOL_MSG_RINGS_SET, ETHTOOL_MSG_RINGS_GET_REPLY,
	 ETHTOOL_A_RINGS_RX, ETHTOOL_A_RINGS_TX, ETHTOOL_A_RINGS_RX_MAX, ETHTOOL_A_RINGS_TX_MAX,
	 offsetof(struct tree_settings, rings)},
	{ETHTOOL_MSG_CHANNELS_GET, ETHTOOL_MSG_CHANNELS_SET, ETHTOOL_MSG_CHANNELS_GET_REPLY,
	 ETHTOOL_A_CHANNELS_COMBINED_COUNT, 0, ETHTOOL_A_CHANNELS_COMBINED_MAX, 0,
	 offsetof(struct tree_settings, channels)},
};

static void answer_pair(const struct pair_kind *kind, const struct ethtool_pair *pair,
			struct strbuf *answer)
{
	struct genlmsghdr header = {.cmd = kind->reply};
	struct nl_msg *msg = netlink_request(TREE_ETHTOOL_FAMILY, 0, &header, sizeof(header));
	bool is_pause = kind->reply == ETHTOOL_MSG_PAUSE_GET_REPLY;

	if (is_pause) {
		netlink_put_u8(msg, ETHTOOL_A_PAUSE_AUTONEG, pair->is_negotiated);
		netlink_put_u8(msg, kind->rx, (uint8_t)pair->rx.is);
		netlink_put_u8(msg, kind->tx, (uint8_t)pair->tx.is);
	} else {
		netlink_put_u32(msg, kind->rx, pair->rx.is);
		netlink_put_u32(msg, kind->rx_max, pair->rx.max);
		if (kind->tx)
			netlink_put_u32(msg, kind->tx, pair->tx.is);
		if (kind->tx)
			netlink_put_u32(msg, kind->tx_max, pair->tx.max);
	}
	tree_add_message(answer, msg);
}

/* mlx5 takes the next power of two for a ring (en_ethtool.c). */
static int take_value(const struct pair_kind *kind, struct nlattr *const *attrs, int type,
		      uint32_t max, uint32_t *is)
{
	bool is_ring = kind->set == ETHTOOL_MSG_RINGS_SET;
	uint32_t value, taken = 1;
	uint8_t octet;

	if (!type || !attrs[type])
		return 0;
	if (netlink_u8(attrs[type], &octet))
		value = octet;
	else if (!netlink_u32(attrs[type], &value))
		return -EINVAL;
	if (max > 0 && value > max)
		return -EINVAL;
	while (is_ring && taken < value)
		taken *= 2;
	*is = is_ring ? taken : value;
	return 0;
}

int tree_settings_request(struct host_tree *tree, struct pf *pf, const struct nlmsghdr *request,
			  struct strbuf *answer)
{
	uint8_t command = ((const struct genlmsghdr *)nlmsg_data(request))->cmd, autoneg;
	struct nlattr *attrs[ETHTOOL_A_RINGS_MAX + 1];
	int ret = 0;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct pair_kind *kind = &kinds[i];
		struct ethtool_pair *pair = (void *)((char *)&pf->settings + kind->pair);

		if (command == kind->get)
			answer_pair(kind, pair, answer);
		ret |= command == kind->get || command == kind->set;
		if (command != kind->set)
			continue;
		(void)netlink_parse(request, GENL_HDRLEN, attrs, ETHTOOL_A_RINGS_MAX);
		if (tree_fails_now(tree))
			return -EIO;
		if (take_value(kind, attrs, kind->rx, pair->rx.max, &pair->rx.is) < 0 ||
		    take_value(kind, attrs, kind->tx, pair->tx.max, &pair->tx.is) < 0)
			return -EINVAL;
		if (command == ETHTOOL_MSG_PAUSE_SET &&
		    netlink_u8(attrs[ETHTOOL_A_PAUSE_AUTONEG], &autoneg))
			pair->is_negotiated = autoneg;
	}
	return ret;
}

/* ---- DCB ------------------------------------------------------------------------------------- */

static void answer_dcb(const struct dcb *dcb, struct strbuf *answer)
{
	const struct dcbmsg header = {.cmd = DCB_CMD_IEEE_GET};
	struct nl_msg *msg = netlink_request(RTM_GETDCB, 0, &header, sizeof(header));
	struct nlattr *nest = nla_nest_start(msg, DCB_ATTR_IEEE), *table;
	struct dcb_app app = {.selector = IEEE_8021QAZ_APP_SEL_DSCP};

	netlink_put(msg, DCB_ATTR_IEEE_ETS, &dcb->ets, sizeof(dcb->ets));
	netlink_put(msg, DCB_ATTR_IEEE_PFC, &dcb->pfc, sizeof(dcb->pfc));
	if (dcb->has_buffers)
		netlink_put(msg, DCB_ATTR_DCB_BUFFER, &dcb->buffers, sizeof(dcb->buffers));
	table = nla_nest_start(msg, DCB_ATTR_IEEE_APP_TABLE);
	for (app.protocol = 0; app.protocol < DCB_DSCPS; app.protocol++)
		for (app.priority = 0; app.priority < IEEE_8021QAZ_MAX_TCS; app.priority++)
			if (dcb->dscps[app.protocol] & 1U << app.priority)
				netlink_put(msg, DCB_ATTR_IEEE_APP, &app, sizeof(app));
	nla_nest_end(msg, table);
	nla_nest_end(msg, nest);
	tree_add_message(answer, msg);
}

/* mlx5: a DSCP has one entry, and only one that is there can be removed (en_dcbnl.c). */
static int change_dscps(struct dcb *dcb, uint8_t command, const struct nlattr *table)
{
	const struct nlattr *attr;
	struct dcb_app app;
	int left;

	nla_for_each_nested(attr, table, left)
	{
		memcpy(&app, nla_data(attr), sizeof(app));
		if (app.selector != IEEE_8021QAZ_APP_SEL_DSCP || app.protocol >= DCB_DSCPS)
			return -EINVAL;
		if (command == DCB_CMD_IEEE_DEL && !(dcb->dscps[app.protocol] & 1 << app.priority))
			return -ENOENT;
		dcb->dscps[app.protocol] =
			command == DCB_CMD_IEEE_DEL ? 0 : (uint8_t)(1 << app.priority);
	}
	return 0;
}

static int change_dcb(struct dcb *dcb, uint8_t command, const struct nlattr *nest)
{
	struct nlattr *ieee[DCB_ATTR_IEEE_MAX + 1];
	const struct nlattr *ets, *pfc, *buffers;

	if (!nest)
		return -EINVAL;
	netlink_parse_nested(nest, ieee, DCB_ATTR_IEEE_MAX);
	ets = ieee[DCB_ATTR_IEEE_ETS];
	pfc = ieee[DCB_ATTR_IEEE_PFC];
	buffers = dcb->has_buffers ? ieee[DCB_ATTR_DCB_BUFFER] : NULL;
	if (ets)
		memcpy(&dcb->ets, nla_data(ets), sizeof(dcb->ets));
	if (pfc)
		memcpy(&dcb->pfc, nla_data(pfc), sizeof(dcb->pfc));
	if (buffers) {
		memcpy(&dcb->buffers, nla_data(buffers), sizeof(dcb->buffers));
		for (int i = 0; i < DCBX_MAX_BUFFERS; i++)
			dcb->buffers.buffer_size[i] -= dcb->buffers.buffer_size[i] % BUFFER_CELL;
	}
	return ieee[DCB_ATTR_IEEE_APP_TABLE]
		       ? change_dscps(dcb, command, ieee[DCB_ATTR_IEEE_APP_TABLE])
		       : 0;
}

int tree_dcb_request(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	struct dcbmsg header = *(const struct dcbmsg *)nlmsg_data(request);
	struct nlattr *attrs[DCB_ATTR_MAX + 1];
	const struct interface *interface;
	struct nl_msg *msg;
	char name[16] = "";
	struct pf *pf;
	int code;

	(void)netlink_parse(request, sizeof(header), attrs, DCB_ATTR_MAX);
	(void)netlink_str(attrs[DCB_ATTR_IFNAME], name, sizeof(name));
	interface = tree_interface_by(tree, name);
	if (!interface || !tree_is_here(tree, interface))
		return -ENODEV;
	pf = tree_pf_by(tree, interface->parent);
	if (!pf || !pf->settings.has_dcb)
		return -EOPNOTSUPP;
	if (request->nlmsg_type == RTM_GETDCB) {
		answer_dcb(&pf->settings.dcb, answer);
		return 0;
	}
	/* Acknowledged, whatever the driver says: its word is in the reply. */
	code = tree_fails_now(tree)
		       ? -EIO
		       : change_dcb(&pf->settings.dcb, header.cmd, attrs[DCB_ATTR_IEEE]);
	msg = netlink_request(RTM_SETDCB, 0, &header, sizeof(header));
	netlink_put_u8(msg, DCB_ATTR_IEEE, (uint8_t)code);
	tree_add_message(answer, msg);
	return 0;
}
