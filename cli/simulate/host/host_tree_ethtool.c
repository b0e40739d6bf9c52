// SPDX-License-Identifier: Apache-2.0
/*
 * ethtool's netlink of the tree: errors of the wire, and a QSFP28 module in each port that counts.
 * From the generic netlink of host_tree_devlink.c.
 */
#include <errno.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <string.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "nodeagent/netlink/message.h"

/* As net/ethtool/stats.c, fec.c and pause.c answer. */
#define STATS(group, type, name)                                                                   \
	{                                                                                          \
		ETHTOOL_MSG_STATS_GET, ETHTOOL_MSG_STATS_GET_REPLY, ETHTOOL_A_STATS_GRP, type,     \
			group, name                                                                \
	}
static const struct {
	uint8_t question, reply;
	int list, type;
	uint32_t group;
	const char *name;
} counters[] = {
	STATS(ETHTOOL_STATS_ETH_PHY, ETHTOOL_A_STATS_ETH_PHY_5_SYM_ERR, "ethernet_symbol_errors"),
	STATS(ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_6_FCS_ERR, "ethernet_checksum_errors"),
	STATS(ETHTOOL_STATS_RMON, ETHTOOL_A_STATS_RMON_FRAG, "ethernet_fragments"),
	{ETHTOOL_MSG_FEC_GET, ETHTOOL_MSG_FEC_GET_REPLY, ETHTOOL_A_FEC_STATS,
	 ETHTOOL_A_FEC_STAT_CORRECTED, 0, "fec_corrected_blocks"},
	{ETHTOOL_MSG_FEC_GET, ETHTOOL_MSG_FEC_GET_REPLY, ETHTOOL_A_FEC_STATS,
	 ETHTOOL_A_FEC_STAT_UNCORR, 0, "fec_uncorrectable_blocks"},
	{ETHTOOL_MSG_PAUSE_GET, ETHTOOL_MSG_PAUSE_GET_REPLY, ETHTOOL_A_PAUSE_STATS,
	 ETHTOOL_A_PAUSE_STAT_RX_FRAMES, 0, "pause_frames_received"},
};

/* SFF-8636: 41.5 °C, 3.3 V, lanes of 1 mW; upper page 0; of page 3, it warns above 70 °C. */
static const char lower[128] = {
	[0] = 0x11, [22] = 41, '\x80', [26] = '\x80', '\xe8', [34] = 39, 16, 39, 16, 39,
	16,         39,        16,     [50] = 39,     16,     39,        16, 39, 16, 39,
	16};
static const char names[128] = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0Mellanox            "
			       "MMA1B00-C100D   \0\0\0\0\0\0\0\0\0\0\0\0MT0000VS00001   "
			       "\0\0\0\0\0\0\0\0\4";
static const char limits[128] = {[4] = 70};

static void answer_module(struct nlattr **attrs, struct strbuf *answer)
{
	struct genlmsghdr header = {.cmd = ETHTOOL_MSG_MODULE_EEPROM_GET_REPLY};
	struct nl_msg *msg = netlink_request(TREE_ETHTOOL_FAMILY, 0, &header, sizeof(header));
	uint32_t offset = 0;
	uint8_t page = 0;

	(void)netlink_u32(attrs[ETHTOOL_A_MODULE_EEPROM_OFFSET], &offset);
	(void)netlink_u8(attrs[ETHTOOL_A_MODULE_EEPROM_PAGE], &page);
	netlink_put(msg, ETHTOOL_A_MODULE_EEPROM_DATA, page ? limits : offset ? names : lower, 128);
	tree_add_message(answer, msg);
}

static void answer_counter(size_t i, uint64_t value, struct strbuf *answer)
{
	struct genlmsghdr header = {.cmd = counters[i].reply};
	struct nl_msg *msg = netlink_request(TREE_ETHTOOL_FAMILY, 0, &header, sizeof(header));
	struct nlattr *list = nla_nest_start(msg, counters[i].list), *one = NULL;

	if (counters[i].question == ETHTOOL_MSG_STATS_GET) {
		netlink_put_u32(msg, ETHTOOL_A_STATS_GRP_ID, counters[i].group);
		one = nla_nest_start(msg, ETHTOOL_A_STATS_GRP_STAT);
	}
	netlink_put(msg, counters[i].type, &value, sizeof(value));
	if (one)
		nla_nest_end(msg, one);
	nla_nest_end(msg, list);
	tree_add_message(answer, msg);
}

int tree_ethtool_request(struct host_tree *tree, const struct nlmsghdr *request,
			 struct strbuf *answer)
{
	uint8_t command = ((const struct genlmsghdr *)nlmsg_data(request))->cmd;
	struct nlattr *attrs[ETHTOOL_A_MODULE_EEPROM_MAX + 1], *of[ETHTOOL_A_HEADER_MAX + 1], *nest;
	const struct interface *interface;
	char name[16] = "";
	struct pf *pf;
	int code;

	(void)netlink_parse(request, GENL_HDRLEN, attrs, ETHTOOL_A_MODULE_EEPROM_MAX);
	/* ETHTOOL_A_FEC_HEADER and others are one number, that of statistics is another. */
	nest = attrs[command == ETHTOOL_MSG_STATS_GET ? ETHTOOL_A_STATS_HEADER
						      : ETHTOOL_A_FEC_HEADER];
	if (!nest)
		return -EINVAL;
	netlink_parse_nested(nest, of, ETHTOOL_A_HEADER_MAX);
	(void)netlink_str(of[ETHTOOL_A_HEADER_DEV_NAME], name, sizeof(name));
	interface = tree_interface_by(tree, name);
	if (!interface || !tree_is_here(tree, interface))
		return -ENODEV;
	pf = tree_pf_by(tree, interface->parent);
	code = pf ? tree_settings_request(tree, pf, request, answer) : 0;
	if (code < 0)
		return code;
	if (!tree_counts(tree_driver_of(tree, interface->parent)))
		return code ? 0 : -EOPNOTSUPP;
	if (command == ETHTOOL_MSG_MODULE_EEPROM_GET)
		answer_module(attrs, answer);
	for (size_t i = 0; i < ARRAY_LEN(counters); i++)
		if (counters[i].question == command)
			answer_counter(i,
				       tree_value_of(tree, counters[i].name,
						     (unsigned)interface->index,
						     (uint64_t)interface->index * 100 + i),
				       answer);
	return 0;
}
