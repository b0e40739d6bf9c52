// SPDX-License-Identifier: Apache-2.0
/*
 * Requests of devlink and the decoding of their answers, apart from each other: decoders see bytes
 * only, and tests and fuzzers call them. observe.c reads modes and health with this, hostd's steps
 * set eSwitch modes and settings of firmware.
 */
#include "nodeagent/host/devlink.h"

#include <assert.h>
#include <errno.h>
#include <linux/devlink.h>
#include <linux/genetlink.h>

#include "lib/json/json.h"
#include "nodeagent/host/counted.h"
#include "nodeagent/host/pci.h"
#include "nodeagent/netlink/message.h"

/*
 * Types of values as they are on the way, which are the kernel's of its attributes
 * (include/net/netlink.h).
 */
enum { VALUE_U32 = 3, VALUE_FLAG = 6 };

/* Names of reporters are C identifiers of drivers; longer ones are left out. */
#define REPORTER_SIZE 64

/* devlink.h of the kernel has no name for it in its user's part (net/devlink/health.c). */
#define DEVLINK_HEALTH_REPORTER_STATE_HEALTHY 0

const char *devlink_mode_name(enum devlink_mode mode)
{
	switch (mode) {
	case DEVLINK_MODE_UNKNOWN:
		return NULL;
	case DEVLINK_MODE_LEGACY:
		return "legacy";
	case DEVLINK_MODE_SWITCHDEV:
		return "switchdev";
	}
	return NULL;
}

enum devlink_mode devlink_mode_of(const char *name)
{
	if (str_eq(name, "legacy"))
		return DEVLINK_MODE_LEGACY;
	return str_eq(name, "switchdev") ? DEVLINK_MODE_SWITCHDEV : DEVLINK_MODE_UNKNOWN;
}

/* address: NULL for all. *ret_msg new. */
static int new_request(struct host *host, uint8_t command, uint16_t flags, const char *address,
		       struct nl_msg **ret_msg, struct err *err)
{
	if (netlink_generic(host->netlink, DEVLINK_GENL_NAME, command, flags, ret_msg, err) < 0)
		return -1;
	if (!address)
		return 0;
	netlink_put_str(*ret_msg, DEVLINK_ATTR_BUS_NAME, "pci");
	netlink_put_str(*ret_msg, DEVLINK_ATTR_DEV_NAME, address);
	return 0;
}

static int ask_devlink(struct host *host, uint8_t command, uint16_t flags, const char *address,
		       enum devlink_mode mode, struct strbuf *answer, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = NULL;

	if (new_request(host, command, flags, address, &msg, err) < 0)
		return -1;
	if (mode != DEVLINK_MODE_UNKNOWN)
		netlink_put_u16(msg, DEVLINK_ATTR_ESWITCH_MODE, (uint16_t)mode);
	return netlink_ask(host->netlink, NETLINK_GENERIC, msg, answer, err);
}

json_t *devlink_decode_list(const void *bytes, size_t len)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1];
	json_t *addresses = json_array();
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		char bus[16], name[PCI_ADDRESS_SIZE];

		if (netlink_parse(message, GENL_HDRLEN, attrs, DEVLINK_ATTR_MAX) &&
		    netlink_str(attrs[DEVLINK_ATTR_BUS_NAME], bus, sizeof(bus)) &&
		    str_eq(bus, "pci") &&
		    netlink_str(attrs[DEVLINK_ATTR_DEV_NAME], name, sizeof(name)) &&
		    pci_address_is_valid(name))
			json_array_append_new(addresses, json_string(name));
	}
	return addresses;
}

int devlink_list(struct host *host, json_t **ret, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};
	struct err problem = {0};

	if (ask_devlink(host, DEVLINK_CMD_GET, NLM_F_DUMP, NULL, DEVLINK_MODE_UNKNOWN, &answer,
			&problem) < 0) {
		if (problem.sys != ENOENT) {
			if (err)
				*err = problem;
			return err_in(err, "list devlink instances");
		}
		*ret = json_array();
		return 0;
	}
	*ret = devlink_decode_list(answer.data, answer.len);
	return 0;
}

json_t *devlink_decode_errors(const void *bytes, size_t len, json_t *counts)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1];
	json_t *errors = json_object();
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at))) {
		char bus[16], address[PCI_ADDRESS_SIZE], name[REPORTER_SIZE];
		uint64_t n;
		uint8_t state;

		if (!netlink_parse(message, GENL_HDRLEN, attrs, DEVLINK_ATTR_MAX) ||
		    !netlink_str(attrs[DEVLINK_ATTR_BUS_NAME], bus, sizeof(bus)) ||
		    !str_eq(bus, "pci") ||
		    !netlink_str(attrs[DEVLINK_ATTR_DEV_NAME], address, sizeof(address)) ||
		    !pci_address_is_valid(address) || !attrs[DEVLINK_ATTR_HEALTH_REPORTER])
			continue;
		netlink_parse_nested(attrs[DEVLINK_ATTR_HEALTH_REPORTER], attrs, DEVLINK_ATTR_MAX);
		if (!netlink_str(attrs[DEVLINK_ATTR_HEALTH_REPORTER_NAME], name, sizeof(name)))
			continue;
		if (counts && netlink_u64(attrs[DEVLINK_ATTR_HEALTH_REPORTER_ERR_COUNT], &n))
			counted_add(json_need_object(counts, address), name, n);
		if (!netlink_u8(attrs[DEVLINK_ATTR_HEALTH_REPORTER_STATE], &state) ||
		    state == DEVLINK_HEALTH_REPORTER_STATE_HEALTHY)
			continue;
		if (!json_object_get(errors, address))
			json_put(errors, address, json_array());
		/* Each port has its tx and its rx. */
		if (!json_list_has(json_object_get(errors, address), name))
			json_array_append_new(json_object_get(errors, address), json_string(name));
	}
	return errors;
}

int devlink_list_errors(struct host *host, json_t *counts, json_t **ret, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};
	struct err problem = {0};

	if (ask_devlink(host, DEVLINK_CMD_HEALTH_REPORTER_GET, NLM_F_DUMP, NULL,
			DEVLINK_MODE_UNKNOWN, &answer, &problem) < 0) {
		if (problem.sys != ENOENT && problem.sys != EOPNOTSUPP) {
			*err = problem;
			return err_in(err, "list devlink health reporters");
		}
		*ret = json_object();
		return 0;
	}
	*ret = devlink_decode_errors(answer.data, answer.len, counts);
	return 0;
}

enum devlink_mode devlink_decode_mode(const void *bytes, size_t len)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1];
	size_t at = 0;
	uint16_t mode;

	while ((message = netlink_next(bytes, len, &at)))
		if (netlink_parse(message, GENL_HDRLEN, attrs, DEVLINK_ATTR_MAX) &&
		    netlink_u16(attrs[DEVLINK_ATTR_ESWITCH_MODE], &mode) && mode <= 1)
			return mode == 0 ? DEVLINK_MODE_LEGACY : DEVLINK_MODE_SWITCHDEV;
	return DEVLINK_MODE_UNKNOWN;
}

int devlink_get_mode(struct host *host, const char *address, enum devlink_mode *ret,
		     struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	if (ask_devlink(host, DEVLINK_CMD_ESWITCH_GET, 0, address, DEVLINK_MODE_UNKNOWN, &answer,
			err) < 0)
		return err_in(err, "%s: ask for the eSwitch mode", address);
	*ret = devlink_decode_mode(answer.data, answer.len);
	return 0;
}

int devlink_set_mode(struct host *host, const char *address, enum devlink_mode mode,
		     struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	assert(mode != DEVLINK_MODE_UNKNOWN);
	return ask_devlink(host, DEVLINK_CMD_ESWITCH_SET, 0, address, mode, &answer, err);
}

/* ---- settings of the firmware ---------------------------------------------------------------- */

/* The permanent value of a list of them. A flag that is off has no data. */
static bool permanent_value(const struct nlattr *list, uint8_t type, struct devlink_setting *ret)
{
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1], *value;
	int left;

	nla_for_each_nested(value, list, left)
	{
		uint8_t cmode;

		netlink_parse_nested(value, attrs, DEVLINK_ATTR_MAX);
		if (!netlink_u8(attrs[DEVLINK_ATTR_PARAM_VALUE_CMODE], &cmode) ||
		    cmode != DEVLINK_PARAM_CMODE_PERMANENT)
			continue;
		ret->is_flag = type == VALUE_FLAG;
		ret->value = attrs[DEVLINK_ATTR_PARAM_VALUE_DATA] != NULL;
		return type == VALUE_FLAG ||
		       (type == VALUE_U32 &&
			netlink_u32(attrs[DEVLINK_ATTR_PARAM_VALUE_DATA], &ret->value));
	}
	return false;
}

bool devlink_decode_setting(const void *bytes, size_t len, struct devlink_setting *ret)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[DEVLINK_ATTR_MAX + 1], *param[DEVLINK_ATTR_MAX + 1];
	size_t at = 0;
	uint8_t type;

	while ((message = netlink_next(bytes, len, &at))) {
		if (!netlink_parse(message, GENL_HDRLEN, attrs, DEVLINK_ATTR_MAX) ||
		    !attrs[DEVLINK_ATTR_PARAM])
			continue;
		netlink_parse_nested(attrs[DEVLINK_ATTR_PARAM], param, DEVLINK_ATTR_MAX);
		if (netlink_u8(param[DEVLINK_ATTR_PARAM_TYPE], &type) &&
		    param[DEVLINK_ATTR_PARAM_VALUES_LIST] &&
		    permanent_value(param[DEVLINK_ATTR_PARAM_VALUES_LIST], type, ret))
			return true;
	}
	return false;
}

int devlink_get_setting(struct host *host, const char *address, const char *name,
			struct devlink_setting *ret, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = NULL;
	auto_strbuf struct strbuf answer = {0};

	if (new_request(host, DEVLINK_CMD_PARAM_GET, 0, address, &msg, err) < 0)
		return -1;
	netlink_put_str(msg, DEVLINK_ATTR_PARAM_NAME, name);
	if (netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, err) < 0)
		return err_in(err, "%s: ask for %s", address, name);
	if (devlink_decode_setting(answer.data, answer.len, ret))
		return 0;
	errno = EOPNOTSUPP;
	return err_sys(err, "NetlinkRefused", "%s: %s has no permanent value", address, name);
}

int devlink_set_setting(struct host *host, const char *address, const char *name,
			const struct devlink_setting *setting, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = NULL;
	auto_strbuf struct strbuf answer = {0};

	assert(!setting->is_flag || setting->value <= 1);
	if (new_request(host, DEVLINK_CMD_PARAM_SET, 0, address, &msg, err) < 0)
		return -1;
	netlink_put_str(msg, DEVLINK_ATTR_PARAM_NAME, name);
	netlink_put_u8(msg, DEVLINK_ATTR_PARAM_TYPE, setting->is_flag ? VALUE_FLAG : VALUE_U32);
	netlink_put_u8(msg, DEVLINK_ATTR_PARAM_VALUE_CMODE, DEVLINK_PARAM_CMODE_PERMANENT);
	if (!setting->is_flag)
		netlink_put_u32(msg, DEVLINK_ATTR_PARAM_VALUE_DATA, setting->value);
	else if (setting->value)
		netlink_put(msg, DEVLINK_ATTR_PARAM_VALUE_DATA, NULL, 0);
	if (netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, err) < 0)
		return err_in(err, "%s: set %s", address, name);
	return 0;
}

int devlink_activate(struct host *host, const char *address, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = NULL;
	auto_strbuf struct strbuf answer = {0};

	if (new_request(host, DEVLINK_CMD_RELOAD, 0, address, &msg, err) < 0)
		return -1;
	netlink_put_u8(msg, DEVLINK_ATTR_RELOAD_ACTION, DEVLINK_RELOAD_ACTION_FW_ACTIVATE);
	if (netlink_ask(host->netlink, NETLINK_GENERIC, msg, &answer, err) < 0)
		return err_in(err, "%s: reset the card", address);
	return 0;
}
