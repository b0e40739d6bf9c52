// SPDX-License-Identifier: Apache-2.0
/*
 * Each call is one ioctl or one question of netlink through the host's door, so that it asks in the
 * network namespace in which the caller is: counters.c for statistics, port_details.c for pages of
 * a transceiver. Lengths and counts that a driver returns are checked against what was asked for;
 * decoders of netlink see bytes only.
 */
#include "nodeagent/host/ethtool.h"

#include <assert.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/ethtool_netlink.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/netlink/message.h"

/* mlx5 has up to 4,000, with 64 channels. */
#define STATISTICS_MAX 65536
/*
 * The number may grow between two questions, with the number of channels, and the kernel writes as
 * many as there are by then (net/ethtool/ioctl.c, ethtool_get_stats()).
 */
#define ROOM_FOR_MORE 4096

static int ask_driver(struct host *host, const char *interface, void *command, struct err *err)
{
	return host->doors->ethtool(host->doors_ctx, interface, command, err);
}

/* 0: none, or a driver that does not know what is meant. -1 with err. */
static int count_statistics(struct host *host, const char *interface, uint32_t *ret,
			    struct err *err)
{
	union {
		struct ethtool_sset_info info;
		unsigned char room[sizeof(struct ethtool_sset_info) + sizeof(*ret)];
	} asked = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << ETH_SS_STATS}};
	struct err why = {0};

	*ret = 0;
	if (ask_driver(host, interface, &asked, &why) < 0) {
		if (why.sys == EOPNOTSUPP)
			return 0;
		*err = why;
		return -1;
	}
	/* The kernel clears what a driver does not have. */
	if (asked.info.sset_mask)
		memcpy(ret, asked.room + sizeof(asked.info), sizeof(*ret));
	return 0;
}

int ethtool_statistics(struct host *host, const char *interface,
		       bool (*is_wanted)(const char *name), json_t *counters, struct err *err)
{
	auto_free struct ethtool_gstrings *names = NULL;
	auto_free struct ethtool_stats *values = NULL;
	uint32_t n;

	assert(is_wanted && json_is_object(counters));
	if (count_statistics(host, interface, &n, err) < 0)
		return -1;
	if (n == 0 || n > STATISTICS_MAX)
		return 0;
	names = mem_zalloc(sizeof(*names) + (size_t)(n + ROOM_FOR_MORE) * ETH_GSTRING_LEN);
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = ETH_SS_STATS;
	names->len = n;
	values = mem_zalloc(sizeof(*values) + (size_t)(n + ROOM_FOR_MORE) * sizeof(uint64_t));
	values->cmd = ETHTOOL_GSTATS;
	values->n_stats = n;
	if (ask_driver(host, interface, names, err) < 0 ||
	    ask_driver(host, interface, values, err) < 0)
		return -1;
	/* Names and values are of different moments. */
	if (names->len != values->n_stats || names->len > n + ROOM_FOR_MORE)
		return 0;
	for (uint32_t i = 0; i < names->len; i++) {
		char name[ETH_GSTRING_LEN + 1] = "";
		uint64_t value;

		memcpy(name, names->data + (size_t)i * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		memcpy(&value, &values->data[i], sizeof(value));
		if (is_wanted(name))
			counted_add(counters, name, value);
	}
	return 0;
}

bool ethtool_speed(struct host *host, const char *interface, int64_t *ret)
{
	struct ethtool_cmd asked = {.cmd = ETHTOOL_GSET};
	uint32_t speed;

	if (ask_driver(host, interface, &asked, NULL) < 0)
		return false;
	/* ethtool_cmd_speed() shifts an int, which has no room for what stands for unknown. */
	speed = (uint32_t)asked.speed_hi << 16 | asked.speed;
	if (speed == 0 || speed == (uint32_t)SPEED_UNKNOWN)
		return false;
	*ret = speed;
	return true;
}

bool ethtool_bus(struct host *host, const char *interface, char ret[ETHTOOL_BUS_SIZE])
{
	struct ethtool_drvinfo asked = {.cmd = ETHTOOL_GDRVINFO};

	if (ask_driver(host, interface, &asked, NULL) < 0)
		return false;
	(void)snprintf(ret, ETHTOOL_BUS_SIZE, "%.*s", (int)sizeof(asked.bus_info) - 1,
		       asked.bus_info);
	return ret[0] != '\0';
}

/* ---- by netlink ------------------------------------------------------------------------------ */

/* Bits of ETHTOOL_A_STATS_GROUPS: 2^ETHTOOL_STATS_ETH_PHY and the three behind it. */
#define ALL_GROUPS 0xf
/* Behind ETHTOOL_STATS_RMON: what is answered elsewhere than by STATS_GET. */
enum { GROUP_FEC = 16, GROUP_PAUSE };

static const struct {
	uint32_t group;
	int type;
	const char *name;
} wire_counters[] = {
	{ETHTOOL_STATS_ETH_PHY, ETHTOOL_A_STATS_ETH_PHY_5_SYM_ERR, "ethernet_symbol_errors"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_2_TX_PKT, "ethernet_frames_transmitted"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_5_RX_PKT, "ethernet_frames_received"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_6_FCS_ERR, "ethernet_checksum_errors"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_8_TX_BYTES, "ethernet_bytes_transmitted"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_12_TX_INT_ERR,
	 "ethernet_internal_transmit_errors"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_14_RX_BYTES, "ethernet_bytes_received"},
	{ETHTOOL_STATS_ETH_MAC, ETHTOOL_A_STATS_ETH_MAC_15_RX_INT_ERR,
	 "ethernet_internal_receive_errors"},
	{ETHTOOL_STATS_ETH_CTRL, ETHTOOL_A_STATS_ETH_CTRL_3_TX,
	 "ethernet_control_frames_transmitted"},
	{ETHTOOL_STATS_ETH_CTRL, ETHTOOL_A_STATS_ETH_CTRL_4_RX, "ethernet_control_frames_received"},
	{ETHTOOL_STATS_RMON, ETHTOOL_A_STATS_RMON_UNDERSIZE, "ethernet_undersize_frames"},
	{ETHTOOL_STATS_RMON, ETHTOOL_A_STATS_RMON_OVERSIZE, "ethernet_oversize_frames"},
	{ETHTOOL_STATS_RMON, ETHTOOL_A_STATS_RMON_FRAG, "ethernet_fragments"},
	{ETHTOOL_STATS_RMON, ETHTOOL_A_STATS_RMON_JABBER, "ethernet_jabbers"},
	{GROUP_FEC, ETHTOOL_A_FEC_STAT_CORRECTED, "fec_corrected_blocks"},
	{GROUP_FEC, ETHTOOL_A_FEC_STAT_UNCORR, "fec_uncorrectable_blocks"},
	{GROUP_FEC, ETHTOOL_A_FEC_STAT_CORR_BITS, "fec_corrected_bits"},
	{GROUP_PAUSE, ETHTOOL_A_PAUSE_STAT_TX_FRAMES, "pause_frames_transmitted"},
	{GROUP_PAUSE, ETHTOOL_A_PAUSE_STAT_RX_FRAMES, "pause_frames_received"},
};

/* A request about an interface, new; NULL with err: the kernel does not have the family. */
static struct nl_msg *new_request(struct host *host, uint8_t command, int header,
				  const char *interface, uint32_t flags, struct err *err)
{
	struct nl_msg *ret = NULL;
	struct nlattr *nest;

	errno = ENODEV;
	if (strlen(interface) >= ALTIFNAMSIZ) {
		(void)err_sys(err, "NetlinkRefused", "%.32s…", interface);
		return NULL;
	}
	if (netlink_generic(host->netlink, ETHTOOL_GENL_NAME, command, 0, &ret, err) < 0) {
		if (err->sys == ENOENT)
			err->sys = EOPNOTSUPP;
		return NULL;
	}
	nest = nla_nest_start(ret, header | NLA_F_NESTED);
	netlink_put_str(ret, ETHTOOL_A_HEADER_DEV_NAME, interface);
	netlink_put_u32(ret, ETHTOOL_A_HEADER_FLAGS, flags);
	nla_nest_end(ret, nest);
	return ret;
}

static void add_counter(uint32_t group, const struct nlattr *attr, json_t *counters)
{
	uint64_t value;

	/* Of forward error correction an array: the sum, then each lane. */
	if (nla_len(attr) < (int)sizeof(value))
		return;
	memcpy(&value, nla_data(attr), sizeof(value));
	for (size_t i = 0; i < ARRAY_LEN(wire_counters); i++)
		if (wire_counters[i].group == group && wire_counters[i].type == nla_type(attr))
			counted_add(counters, wire_counters[i].name, value);
}

static void add_nested(uint32_t group, const struct nlattr *nest, json_t *counters)
{
	struct nlattr *attr;
	int left;

	if (nest)
		nla_for_each_nested(attr, nest, left) add_counter(group, attr, counters);
}

/* One statistic is one nest, and one group, too. */
static void add_group(const struct nlattr *nest, json_t *counters)
{
	struct nlattr *attrs[ETHTOOL_A_STATS_GRP_MAX + 1], *attr;
	uint32_t group;
	int left;

	netlink_parse_nested(nest, attrs, ETHTOOL_A_STATS_GRP_MAX);
	if (!netlink_u32(attrs[ETHTOOL_A_STATS_GRP_ID], &group) || group > ETHTOOL_STATS_RMON)
		return;
	nla_for_each_nested(attr, nest, left) if (nla_type(attr) == ETHTOOL_A_STATS_GRP_STAT)
		add_nested(group, attr, counters);
}

void ethtool_decode_wire(const void *bytes, size_t len, json_t *counters)
{
	struct nlattr *attrs[ETHTOOL_A_FEC_MAX + ETHTOOL_A_PAUSE_MAX + 1], *attr;
	const int max = ARRAY_LEN(attrs) - 1;
	const struct nlmsghdr *message;
	size_t at = 0;
	int left;

	while ((message = netlink_next(bytes, len, &at))) {
		const struct genlmsghdr *header = nlmsg_data(message);

		if (!netlink_parse(message, GENL_HDRLEN, attrs, max))
			continue;
		if (header->cmd == ETHTOOL_MSG_FEC_GET_REPLY)
			add_nested(GROUP_FEC, attrs[ETHTOOL_A_FEC_STATS], counters);
		else if (header->cmd == ETHTOOL_MSG_PAUSE_GET_REPLY)
			add_nested(GROUP_PAUSE, attrs[ETHTOOL_A_PAUSE_STATS], counters);
		else if (header->cmd == ETHTOOL_MSG_STATS_GET_REPLY)
			nlmsg_for_each_attr(attr, (struct nlmsghdr *)message, GENL_HDRLEN, left)
			{
				if (nla_type(attr) == ETHTOOL_A_STATS_GRP)
					add_group(attr, counters);
			}
	}
}

void ethtool_wire(struct host *host, const char *interface, json_t *counters)
{
	static const struct {
		uint8_t command;
		int header;
	} questions[] = {
		{ETHTOOL_MSG_STATS_GET, ETHTOOL_A_STATS_HEADER},
		{ETHTOOL_MSG_FEC_GET, ETHTOOL_A_FEC_HEADER},
		{ETHTOOL_MSG_PAUSE_GET, ETHTOOL_A_PAUSE_HEADER},
	};

	assert(json_is_object(counters));
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		bool is_groups = questions[i].command == ETHTOOL_MSG_STATS_GET;
		struct err err = {0};
		auto_nl_msg struct nl_msg *msg =
			new_request(host, questions[i].command, questions[i].header, interface,
				    is_groups ? 0 : ETHTOOL_FLAG_STATS, &err);
		auto_strbuf struct strbuf answer = {0};

		if (msg && is_groups) {
			struct nlattr *nest =
				nla_nest_start(msg, ETHTOOL_A_STATS_GROUPS | NLA_F_NESTED);

			netlink_put(msg, ETHTOOL_A_BITSET_NOMASK, NULL, 0);
			netlink_put_u32(msg, ETHTOOL_A_BITSET_SIZE, 4);
			netlink_put_u32(msg, ETHTOOL_A_BITSET_VALUE, ALL_GROUPS);
			nla_nest_end(msg, nest);
		}
		if (msg && netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, &err) == 0)
			ethtool_decode_wire(answer.data, answer.len, counters);
	}
}

/* Attributes of the values and their limits, first of what is received; 0: there is none. */
static const struct pair_kind {
	const char *setting;
	uint8_t get, set, reply;
	int header, rx, tx, rx_max, tx_max;
} pair_kinds[] = {
	{"pauseFrames", ETHTOOL_MSG_PAUSE_GET, ETHTOOL_MSG_PAUSE_SET, ETHTOOL_MSG_PAUSE_GET_REPLY,
	 ETHTOOL_A_PAUSE_HEADER, ETHTOOL_A_PAUSE_RX, ETHTOOL_A_PAUSE_TX, 0, 0},
	{"rings", ETHTOOL_MSG_RINGS_GET, ETHTOOL_MSG_RINGS_SET, ETHTOOL_MSG_RINGS_GET_REPLY,
	 ETHTOOL_A_RINGS_HEADER, ETHTOOL_A_RINGS_RX, ETHTOOL_A_RINGS_TX, ETHTOOL_A_RINGS_RX_MAX,
	 ETHTOOL_A_RINGS_TX_MAX},
	{"channels", ETHTOOL_MSG_CHANNELS_GET, ETHTOOL_MSG_CHANNELS_SET,
	 ETHTOOL_MSG_CHANNELS_GET_REPLY, ETHTOOL_A_CHANNELS_HEADER,
	 ETHTOOL_A_CHANNELS_COMBINED_COUNT, 0, ETHTOOL_A_CHANNELS_COMBINED_MAX, 0},
};

static const struct pair_kind *pair_kind_of(const char *setting)
{
	size_t i = 0;

	while (i < ARRAY_LEN(pair_kinds) && !str_eq(pair_kinds[i].setting, setting))
		i++;
	assert(i < ARRAY_LEN(pair_kinds));
	return &pair_kinds[i];
}

/* Pauses are octets. */
static bool pair_value(struct nlattr *const *attrs, int type, uint32_t *ret)
{
	uint8_t octet;

	if (!type || !netlink_u8(attrs[type], &octet))
		return type && netlink_u32(attrs[type], ret);
	*ret = octet;
	return true;
}

bool ethtool_decode_pair(const void *bytes, size_t len, const char *setting,
			 struct ethtool_pair *ret)
{
	const struct pair_kind *kind = pair_kind_of(setting);
	struct nlattr *attrs[ETHTOOL_A_RINGS_MAX + 1];
	const struct nlmsghdr *message;
	uint8_t autoneg = 0;
	size_t at = 0;

	*ret = (struct ethtool_pair){0};
	while ((message = netlink_next(bytes, len, &at))) {
		const struct genlmsghdr *header = nlmsg_data(message);

		if (!netlink_parse(message, GENL_HDRLEN, attrs, ETHTOOL_A_RINGS_MAX) ||
		    header->cmd != kind->reply)
			continue;
		ret->rx.is_there = pair_value(attrs, kind->rx, &ret->rx.is);
		ret->tx.is_there = pair_value(attrs, kind->tx, &ret->tx.is);
		(void)pair_value(attrs, kind->rx_max, &ret->rx.max);
		(void)pair_value(attrs, kind->tx_max, &ret->tx.max);
		if (kind->reply == ETHTOOL_MSG_PAUSE_GET_REPLY)
			(void)netlink_u8(attrs[ETHTOOL_A_PAUSE_AUTONEG], &autoneg);
		ret->is_negotiated = autoneg;
		return true;
	}
	return false;
}

int ethtool_get_pair(struct host *host, const char *interface, const char *setting,
		     struct ethtool_pair *ret, struct err *err)
{
	const struct pair_kind *kind = pair_kind_of(setting);
	auto_nl_msg struct nl_msg *msg =
		new_request(host, kind->get, kind->header, interface, 0, err);
	auto_strbuf struct strbuf answer = {0};

	if (!msg || netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, err) < 0)
		return -1;
	if (ethtool_decode_pair(answer.data, answer.len, setting, ret) &&
	    (ret->rx.is_there || ret->tx.is_there))
		return 0;
	errno = EOPNOTSUPP;
	return err_sys(err, "NetlinkRefused", "the driver does not say");
}

static void put_value(struct nl_msg *msg, int type, bool is_octet, uint32_t value)
{
	if (is_octet)
		netlink_put_u8(msg, type, (uint8_t)value);
	else
		netlink_put_u32(msg, type, value);
}

int ethtool_set_pair(struct host *host, const char *interface, const char *setting,
		     const struct ethtool_pair *pair, struct err *err)
{
	const struct pair_kind *kind = pair_kind_of(setting);
	bool is_octet = kind->set == ETHTOOL_MSG_PAUSE_SET;
	auto_nl_msg struct nl_msg *msg =
		new_request(host, kind->set, kind->header, interface, 0, err);
	auto_strbuf struct strbuf answer = {0};

	if (!msg)
		return -1;
	if (is_octet)
		netlink_put_u8(msg, ETHTOOL_A_PAUSE_AUTONEG, pair->is_negotiated);
	if (pair->rx.is_there)
		put_value(msg, kind->rx, is_octet, pair->rx.is);
	if (pair->tx.is_there)
		put_value(msg, kind->tx, is_octet, pair->tx.is);
	return netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, err);
}

bool ethtool_decode_eeprom(const void *bytes, size_t len, unsigned char ret[ETHTOOL_EEPROM_SIZE])
{
	struct nlattr *attrs[ETHTOOL_A_MODULE_EEPROM_MAX + 1], *data;
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		if (!netlink_parse(message, GENL_HDRLEN, attrs, ETHTOOL_A_MODULE_EEPROM_MAX))
			continue;
		data = attrs[ETHTOOL_A_MODULE_EEPROM_DATA];
		if (!data || nla_len(data) != ETHTOOL_EEPROM_SIZE)
			continue;
		memcpy(ret, nla_data(data), ETHTOOL_EEPROM_SIZE);
		return true;
	}
	return false;
}

bool ethtool_read_eeprom(struct host *host, const char *interface, struct ethtool_half what,
			 unsigned char ret[ETHTOOL_EEPROM_SIZE])
{
	struct err err = {0};
	auto_nl_msg struct nl_msg *msg =
		new_request(host, ETHTOOL_MSG_MODULE_EEPROM_GET, ETHTOOL_A_MODULE_EEPROM_HEADER,
			    interface, 0, &err);
	auto_strbuf struct strbuf answer = {0};

	assert(what.offset == 0 || what.offset == ETHTOOL_EEPROM_SIZE);
	if (!msg)
		return false;
	netlink_put_u32(msg, ETHTOOL_A_MODULE_EEPROM_OFFSET, what.offset);
	netlink_put_u32(msg, ETHTOOL_A_MODULE_EEPROM_LENGTH, ETHTOOL_EEPROM_SIZE);
	netlink_put_u8(msg, ETHTOOL_A_MODULE_EEPROM_PAGE, what.page);
	netlink_put_u8(msg, ETHTOOL_A_MODULE_EEPROM_BANK, 0);
	netlink_put_u8(msg, ETHTOOL_A_MODULE_EEPROM_I2C_ADDRESS, what.i2c_address);
	return netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, &err) == 0 &&
	       ethtool_decode_eeprom(answer.data, answer.len, ret);
}
