// SPDX-License-Identifier: Apache-2.0
/*
 * Requests of NETLINK_RDMA, for which libnl has nothing, and the decoding of their answers, apart
 * from each other: decoders see bytes only. The observed document, counters, evidence of use and
 * the step for the RDMA mode ask with this; watch.c decodes notifications.
 */
#include "nodeagent/host/rdma.h"

#include <assert.h>
#include <errno.h>
#include <rdma/rdma_netlink.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/sysfs.h"
#include "nodeagent/netlink/message.h"

/*
 * RDMA_NLDEV_ATTR_MAX of the headers is one past the last they know; kernels know more
 * (include/uapi/rdma/rdma_netlink.h).
 */
#define ATTR_MAX 117
/* Linux 6.12. */
#define NLDEV_CMD_MONITOR 28

#define NLDEV_TYPE(command) (RDMA_NL_NLDEV << 10 | (command))

/* ---- devices --------------------------------------------------------------------------------- */

void rdma_devices_done(struct rdma_devices *devices)
{
	for (size_t i = 0; i < devices->n; i++)
		free(devices->items[i].ports);
	free(devices->items);
	*devices = (struct rdma_devices){0};
}

static bool decode_device(const struct nlmsghdr *message, struct rdma_device *ret)
{
	struct nlattr *attrs[ATTR_MAX + 1];

	if (message->nlmsg_type != NLDEV_TYPE(RDMA_NLDEV_CMD_GET) ||
	    !netlink_parse(message, 0, attrs, ATTR_MAX) ||
	    !netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &ret->index) ||
	    !netlink_str(attrs[RDMA_NLDEV_ATTR_DEV_NAME], ret->name, sizeof(ret->name)))
		return false;
	(void)netlink_str(attrs[RDMA_NLDEV_ATTR_DEV_PROTOCOL], ret->protocol,
			  sizeof(ret->protocol));
	(void)netlink_str(attrs[RDMA_NLDEV_ATTR_FW_VERSION], ret->firmware, sizeof(ret->firmware));
	ret->has_node_guid = netlink_u64(attrs[RDMA_NLDEV_ATTR_NODE_GUID], &ret->node_guid);
	ret->has_sys_image_guid =
		netlink_u64(attrs[RDMA_NLDEV_ATTR_SYS_IMAGE_GUID], &ret->sys_image_guid);
	return true;
}

void rdma_decode_devices(const void *bytes, size_t len, struct rdma_devices *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	ret->items = mem_calloc(netlink_count(bytes, len) + 1, sizeof(*ret->items));
	ret->n = 0;
	while ((message = netlink_next(bytes, len, &at)))
		if (decode_device(message, &ret->items[ret->n]))
			ret->n++;
		else
			ret->items[ret->n] = (struct rdma_device){0};
}

static bool decode_port(const struct nlmsghdr *message, uint32_t device, struct rdma_port *ret)
{
	struct nlattr *attrs[ATTR_MAX + 1];
	uint32_t index;
	uint8_t byte;

	*ret = (struct rdma_port){0};
	if (message->nlmsg_type != NLDEV_TYPE(RDMA_NLDEV_CMD_PORT_GET) ||
	    !netlink_parse(message, 0, attrs, ATTR_MAX) ||
	    !netlink_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX], &index) || index != device ||
	    !netlink_u32(attrs[RDMA_NLDEV_ATTR_PORT_INDEX], &ret->number))
		return false;
	ret->state = netlink_u8(attrs[RDMA_NLDEV_ATTR_PORT_STATE], &byte) ? byte : -1;
	ret->phys_state = netlink_u8(attrs[RDMA_NLDEV_ATTR_PORT_PHYS_STATE], &byte) ? byte : -1;
	(void)netlink_u32(attrs[RDMA_NLDEV_ATTR_NDEV_INDEX], &ret->ndev_index);
	(void)netlink_str(attrs[RDMA_NLDEV_ATTR_NDEV_NAME], ret->ndev_name, sizeof(ret->ndev_name));
	return true;
}

void rdma_decode_ports(const void *bytes, size_t len, struct rdma_device *device)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	free(device->ports);
	device->ports = mem_calloc(netlink_count(bytes, len) + 1, sizeof(*device->ports));
	device->n_ports = 0;
	while ((message = netlink_next(bytes, len, &at)))
		if (decode_port(message, device->index, &device->ports[device->n_ports]))
			device->n_ports++;
}

int rdma_list_ports(struct netlink *netlink, struct rdma_device *device, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_PORT_GET), NLM_F_DUMP, NULL, 0);
	auto_strbuf struct strbuf answer = {0};

	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, device->index);
	if (netlink_ask(netlink, NETLINK_RDMA, msg, &answer, err) < 0)
		return -1;
	rdma_decode_ports(answer.data, answer.len, device);
	return 0;
}

int rdma_list_names(struct netlink *netlink, struct rdma_devices *ret, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_GET), NLM_F_DUMP, NULL, 0);
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netlink, NETLINK_RDMA, msg, &answer, err) < 0)
		return err_in(err, "list RDMA devices");
	rdma_decode_devices(answer.data, answer.len, ret);
	return 0;
}

int rdma_list(struct host *host, struct rdma_devices *ret, struct err *err)
{
	struct err gone = {0};

	if (rdma_list_names(host->netlink, ret, err) < 0)
		return -1;
	/* EINVAL: the device went away between the two questions; it then has no ports. */
	for (size_t i = 0; i < ret->n; i++)
		(void)rdma_list_ports(host->netlink, &ret->items[i], &gone);
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

void rdma_decode_counters(const void *bytes, size_t len, json_t *counters)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		struct nlattr *attrs[ATTR_MAX + 1];
		const struct nlattr *entry;
		int left;

		if (message->nlmsg_type != NLDEV_TYPE(RDMA_NLDEV_CMD_STAT_GET) ||
		    !netlink_parse(message, 0, attrs, ATTR_MAX) ||
		    !attrs[RDMA_NLDEV_ATTR_STAT_HWCOUNTERS])
			continue;
		nla_for_each_nested(entry, attrs[RDMA_NLDEV_ATTR_STAT_HWCOUNTERS], left)
		{
			struct nlattr *values[ATTR_MAX + 1];
			char name[COUNTED_NAME_SIZE + 1];
			uint64_t value;

			netlink_parse_nested(entry, values, ATTR_MAX);
			if (netlink_str(values[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME], name,
					sizeof(name)) &&
			    netlink_u64(values[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE], &value))
				counted_add(counters, name, value);
		}
	}
}

int rdma_counters(struct host *host, uint32_t device, uint32_t port, json_t *counters,
		  struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_STAT_GET), 0, NULL, 0);
	auto_strbuf struct strbuf answer = {0};
	struct err why = {0};

	netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, device);
	netlink_put_u32(msg, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (netlink_ask(host->netlink, NETLINK_RDMA, msg, &answer, &why) == 0) {
		rdma_decode_counters(answer.data, answer.len, counters);
		return 0;
	}
	/*
	 * nldev_stat_get_doit(), also for a device that is gone, of which there is nothing to
	 * report.
	 */
	if (why.sys == EINVAL || why.sys == EOPNOTSUPP)
		return 0;
	*err = why;
	return err_in(err, "counters of RDMA device %u, port %u", device, port);
}

/* ---- users ----------------------------------------------------------------------------------- */

static bool decode_count(const struct nlattr *summary, const char *what, uint64_t *ret)
{
	const struct nlattr *entry;
	int left;

	nla_for_each_nested(entry, summary, left)
	{
		struct nlattr *attrs[ATTR_MAX + 1];
		char name[16];

		netlink_parse_nested(entry, attrs, ATTR_MAX);
		if (netlink_str(attrs[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME], name,
				sizeof(name)) &&
		    str_eq(name, what))
			return netlink_u64(attrs[RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR], ret);
	}
	return false;
}

void rdma_decode_contexts(const void *bytes, size_t len, json_t *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		struct nlattr *attrs[ATTR_MAX + 1];
		json_auto_t *key = NULL;
		char name[RDMA_NAME_SIZE];
		uint64_t count;

		if (message->nlmsg_type != NLDEV_TYPE(RDMA_NLDEV_CMD_RES_GET) ||
		    !netlink_parse(message, 0, attrs, ATTR_MAX) ||
		    !netlink_str(attrs[RDMA_NLDEV_ATTR_DEV_NAME], name, sizeof(name)) ||
		    !attrs[RDMA_NLDEV_ATTR_RES_SUMMARY] ||
		    !decode_count(attrs[RDMA_NLDEV_ATTR_RES_SUMMARY], "ctx", &count))
			continue;
		key = json_fmt("%s", name);
		json_put_int(ret, json_string_value(key),
			     count > INT32_MAX ? INT32_MAX : (int64_t)count);
	}
}

json_t *rdma_contexts(struct host *host, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_RES_GET), NLM_F_DUMP, NULL, 0);
	auto_strbuf struct strbuf answer = {0};
	json_t *ret;

	if (netlink_ask(host->netlink, NETLINK_RDMA, msg, &answer, err) < 0)
		return NULL;
	ret = json_object();
	rdma_decode_contexts(answer.data, answer.len, ret);
	return ret;
}

/* Modules of drivers, whose QPs every device has, and those of the core and of IPoIB. */
static bool is_own_module(const char *name)
{
	static const char *const own[] = {
		"ib_core", "ib_ipoib", "mlx4_ib", "mlx5_ib",  "mana_ib",
		"irdma",   "bnxt_re",  "efa",     "erdma",    "qedr",
		"cxgb4",   "hns_roce", "hfi1",    "rdma_rxe", "siw",
	};

	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (str_starts(name, own[i]))
			return true;
	return false;
}

/* enum ib_qp_type, include/rdma/ib_verbs.h; enum rdma_cm_state, include/rdma/rdma_cm.h. */
enum { QP_TYPE_GSI = 1, CM_STATE_LISTEN = 8 };

static bool is_kernel_user(const struct nlattr *entry, bool is_qp, char ret_name[RDMA_NAME_SIZE])
{
	struct nlattr *attrs[ATTR_MAX + 1];
	uint8_t byte;

	netlink_parse_nested(entry, attrs, ATTR_MAX);
	/* Processes have a PID in its place, and a context. */
	if (!netlink_str(attrs[RDMA_NLDEV_ATTR_RES_KERN_NAME], ret_name, RDMA_NAME_SIZE) ||
	    is_own_module(ret_name))
		return false;
	if (is_qp)
		return !netlink_u8(attrs[RDMA_NLDEV_ATTR_RES_TYPE], &byte) || byte > QP_TYPE_GSI;
	return !netlink_u8(attrs[RDMA_NLDEV_ATTR_RES_STATE], &byte) || byte != CM_STATE_LISTEN;
}

bool rdma_decode_kernel_user(const void *bytes, size_t len, char ret_name[RDMA_NAME_SIZE])
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		bool is_qp = message->nlmsg_type == NLDEV_TYPE(RDMA_NLDEV_CMD_RES_QP_GET);
		struct nlattr *attrs[ATTR_MAX + 1];
		const struct nlattr *list, *entry;
		int left;

		if ((!is_qp && message->nlmsg_type != NLDEV_TYPE(RDMA_NLDEV_CMD_RES_CM_ID_GET)) ||
		    !netlink_parse(message, 0, attrs, ATTR_MAX))
			continue;
		list = attrs[is_qp ? RDMA_NLDEV_ATTR_RES_QP : RDMA_NLDEV_ATTR_RES_CM_ID];
		if (!list)
			continue;
		nla_for_each_nested(entry, list,
				    left) if (is_kernel_user(entry, is_qp, ret_name)) return true;
	}
	return false;
}

char *rdma_kernel_user(struct host *host, uint32_t device, struct err *err)
{
	static const int commands[] = {RDMA_NLDEV_CMD_RES_CM_ID_GET, RDMA_NLDEV_CMD_RES_QP_GET};

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		auto_nl_msg struct nl_msg *msg =
			netlink_request(NLDEV_TYPE(commands[i]), NLM_F_DUMP, NULL, 0);
		auto_strbuf struct strbuf answer = {0};
		char name[RDMA_NAME_SIZE];
		struct err why = {0};

		netlink_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, device);
		if (netlink_ask(host->netlink, NETLINK_RDMA, msg, &answer, &why) == 0) {
			if (rdma_decode_kernel_user(answer.data, answer.len, name))
				return str_dup(name);
			continue;
		}
		/* EINVAL: a kernel without the command, or the device is gone. */
		if (why.sys != EINVAL && why.sys != EOPNOTSUPP && why.sys != EPROTONOSUPPORT &&
		    why.sys != ENODEV) {
			*err = why;
			(void)err_in(err, "who in the kernel uses RDMA device %u", device);
			return NULL;
		}
	}
	return NULL;
}

/* ---- mode ------------------------------------------------------------------------------------ */

const char *rdma_mode_name(enum rdma_mode mode)
{
	switch (mode) {
	case RDMA_MODE_UNKNOWN:
		return NULL;
	case RDMA_MODE_EXCLUSIVE:
		return "exclusive";
	case RDMA_MODE_SHARED:
		return "shared";
	}
	return NULL;
}

enum rdma_mode rdma_mode_of(const char *name)
{
	if (str_eq(name, "exclusive"))
		return RDMA_MODE_EXCLUSIVE;
	return str_eq(name, "shared") ? RDMA_MODE_SHARED : RDMA_MODE_UNKNOWN;
}

enum rdma_mode rdma_decode_mode(const void *bytes, size_t len)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[ATTR_MAX + 1];
	size_t at = 0;
	uint8_t mode;

	while ((message = netlink_next(bytes, len, &at)))
		if (message->nlmsg_type == NLDEV_TYPE(RDMA_NLDEV_CMD_SYS_GET) &&
		    netlink_parse(message, 0, attrs, ATTR_MAX) &&
		    netlink_u8(attrs[RDMA_NLDEV_SYS_ATTR_NETNS_MODE], &mode) && mode <= 1)
			return mode == 0 ? RDMA_MODE_EXCLUSIVE : RDMA_MODE_SHARED;
	return RDMA_MODE_UNKNOWN;
}

int rdma_get_mode(struct netlink *netlink, enum rdma_mode *ret, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_SYS_GET), 0, NULL, 0);
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netlink, NETLINK_RDMA, msg, &answer, err) < 0)
		return err_in(err, "ask for the RDMA subsystem's mode");
	*ret = rdma_decode_mode(answer.data, answer.len);
	return 0;
}

int rdma_set_mode(struct host *host, enum rdma_mode mode, struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		netlink_request(NLDEV_TYPE(RDMA_NLDEV_CMD_SYS_SET), 0, NULL, 0);
	auto_strbuf struct strbuf answer = {0};

	assert(mode != RDMA_MODE_UNKNOWN);
	netlink_put_u8(msg, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, (uint8_t)mode);
	return netlink_ask(host->netlink, NETLINK_RDMA, msg, &answer, err);
}

/* ---- names and events ------------------------------------------------------------------------ */

/* As sysfs has them, drivers/infiniband/core/sysfs.c. */
const char *rdma_port_state_name(int state)
{
	static const char *const names[] = {"NOP",   "DOWN",   "INIT",
					    "ARMED", "ACTIVE", "ACTIVE_DEFER"};

	return state >= 0 && (size_t)state < ARRAY_LEN(names) ? names[state] : NULL;
}

const char *rdma_phys_state_name(int state)
{
	static const char *const names[] = {NULL,
					    "Sleep",
					    "Polling",
					    "Disabled",
					    "PortConfigurationTraining",
					    "LinkUp",
					    "LinkErrorRecovery",
					    "Phy Test"};

	return state >= 0 && (size_t)state < ARRAY_LEN(names) ? names[state] : NULL;
}

bool rdma_decode_event(const void *bytes, size_t len, char ret_name[RDMA_NAME_SIZE])
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[ATTR_MAX + 1];
	size_t at = 0;

	message = netlink_next(bytes, len, &at);
	if (!message || message->nlmsg_type != NLDEV_TYPE(NLDEV_CMD_MONITOR) ||
	    !netlink_parse(message, 0, attrs, ATTR_MAX))
		return false;
	if (!netlink_str(attrs[RDMA_NLDEV_ATTR_DEV_NAME], ret_name, RDMA_NAME_SIZE))
		ret_name[0] = '\0';
	return true;
}
