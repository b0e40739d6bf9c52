// SPDX-License-Identifier: Apache-2.0
/*
 * Each call is one ioctl through the host's door, so that it asks in the network namespace in which
 * the caller is. counters.c calls this for what netlink does not have; lengths and counts that a
 * driver returns are checked against what was asked for.
 */
#include "nodeagent/host/ethtool.h"

#include <assert.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/sysfs.h"

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
