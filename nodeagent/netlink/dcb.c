// SPDX-License-Identifier: Apache-2.0
/*
 * One message for each question and change. A change is acknowledged whatever its driver said; the
 * driver's answer is a number in the reply (net/dcb/dcbnl.c, dcbnl_ieee_set()).
 */
#include "nodeagent/netlink/dcb.h"

#include <assert.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "nodeagent/netlink/message.h"

/* ---- decoding -------------------------------------------------------------------------------- */

static bool is_answer(const struct nlmsghdr *message, uint16_t type)
{
	return message->nlmsg_type == type && nlmsg_datalen(message) >= (int)sizeof(struct dcbmsg);
}

/* Newer kernels may append to a structure. */
static bool copy_to(void *ret, size_t size, const struct nlattr *attr)
{
	if (!attr || nla_len(attr) < (int)size)
		return false;
	memcpy(ret, nla_data(attr), size);
	return true;
}

static void decode_dscps(const struct nlattr *table, uint8_t *ret)
{
	const struct nlattr *attr;
	struct dcb_app app;
	int left;

	if (!table)
		return;
	nla_for_each_nested(attr, table, left)
	{
		if (nla_type(attr) == DCB_ATTR_IEEE_APP && copy_to(&app, sizeof(app), attr) &&
		    app.selector == IEEE_8021QAZ_APP_SEL_DSCP && app.protocol < DCB_DSCPS &&
		    app.priority < IEEE_8021QAZ_MAX_TCS)
			ret[app.protocol] |= (uint8_t)(1U << app.priority);
	}
}

bool dcb_decode(const void *bytes, size_t len, struct dcb *ret)
{
	struct nlattr *attrs[DCB_ATTR_MAX + 1], *ieee[DCB_ATTR_IEEE_MAX + 1];
	const struct nlmsghdr *message;
	uint8_t dcbx = 0;
	size_t at = 0;

	*ret = (struct dcb){0};
	while ((message = netlink_next(bytes, len, &at))) {
		if (!is_answer(message, RTM_GETDCB) ||
		    !netlink_parse(message, sizeof(struct dcbmsg), attrs, DCB_ATTR_MAX) ||
		    !attrs[DCB_ATTR_IEEE])
			continue;
		netlink_parse_nested(attrs[DCB_ATTR_IEEE], ieee, DCB_ATTR_IEEE_MAX);
		ret->has_ets = copy_to(&ret->ets, sizeof(ret->ets), ieee[DCB_ATTR_IEEE_ETS]);
		ret->has_pfc = copy_to(&ret->pfc, sizeof(ret->pfc), ieee[DCB_ATTR_IEEE_PFC]);
		ret->has_buffers =
			copy_to(&ret->buffers, sizeof(ret->buffers), ieee[DCB_ATTR_DCB_BUFFER]);
		decode_dscps(ieee[DCB_ATTR_IEEE_APP_TABLE], ret->dscps);
		(void)netlink_u8(attrs[DCB_ATTR_DCBX], &dcbx);
		ret->is_by_firmware = dcbx & DCB_CAP_DCBX_LLD_MANAGED;
		return true;
	}
	return false;
}

int dcb_decode_refusal(const void *bytes, size_t len)
{
	struct nlattr *attrs[DCB_ATTR_MAX + 1];
	const struct nlmsghdr *message;
	uint8_t code = 0;
	size_t at = 0;

	while ((message = netlink_next(bytes, len, &at)))
		if (is_answer(message, RTM_SETDCB) &&
		    netlink_parse(message, sizeof(struct dcbmsg), attrs, DCB_ATTR_MAX) &&
		    netlink_u8(attrs[DCB_ATTR_IEEE], &code))
			break;
	/* The lowest byte of a negative errno. */
	return code ? 256 - code : 0;
}

/* ---- asking and changing --------------------------------------------------------------------- */

static struct nl_msg *new_message(uint16_t type, uint8_t command, const char *interface)
{
	const struct dcbmsg header = {.cmd = command};
	struct nl_msg *msg = netlink_request(type, 0, &header, sizeof(header));

	assert(interface);
	netlink_put_str(msg, DCB_ATTR_IFNAME, interface);
	return msg;
}

int dcb_get(struct netlink *netlink, const char *interface, struct dcb *ret, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = new_message(RTM_GETDCB, DCB_CMD_IEEE_GET, interface);
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return -1;
	if (dcb_decode(answer.data, answer.len, ret))
		return 0;
	errno = EPROTO;
	return err_sys(err, "NetlinkRefused", "the kernel answers no IEEE 802.1Qaz");
}

static int change(struct netlink *netlink, struct nl_msg *msg, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return -1;
	errno = dcb_decode_refusal(answer.data, answer.len);
	return errno ? err_sys(err, "NetlinkRefused", "the driver refuses") : 0;
}

int dcb_set(struct netlink *netlink, const char *interface, int attribute, const void *value,
	    size_t size, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = new_message(RTM_SETDCB, DCB_CMD_IEEE_SET, interface);
	struct nlattr *nest = nla_nest_start(msg, DCB_ATTR_IEEE | NLA_F_NESTED);

	netlink_put(msg, attribute, value, size);
	nla_nest_end(msg, nest);
	return change(netlink, msg, err);
}

int dcb_change_dscps(struct netlink *netlink, const char *interface, bool add,
		     const uint8_t dscps[DCB_DSCPS], struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		new_message(RTM_SETDCB, add ? DCB_CMD_IEEE_SET : DCB_CMD_IEEE_DEL, interface);
	struct nlattr *nest = nla_nest_start(msg, DCB_ATTR_IEEE | NLA_F_NESTED);
	struct nlattr *table = nla_nest_start(msg, DCB_ATTR_IEEE_APP_TABLE | NLA_F_NESTED);
	struct dcb_app app = {.selector = IEEE_8021QAZ_APP_SEL_DSCP};
	bool is_empty = true;

	for (app.protocol = 0; app.protocol < DCB_DSCPS; app.protocol++)
		for (app.priority = 0; app.priority < IEEE_8021QAZ_MAX_TCS; app.priority++)
			if (dscps[app.protocol] & 1U << app.priority) {
				netlink_put(msg, DCB_ATTR_IEEE_APP, &app, sizeof(app));
				is_empty = false;
			}
	nla_nest_end(msg, table);
	nla_nest_end(msg, nest);
	/* A message without entries is one without attributes, which the kernel refuses. */
	return is_empty ? 0 : change(netlink, msg, err);
}
