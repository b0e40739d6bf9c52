// SPDX-License-Identifier: Apache-2.0
/*
 * Network interfaces: the one decoder of RTM_NEWLINK, for observing the host and for pods'
 * namespaces.
 */
#include "nodeagent/netlink/rtnl_link.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/netlink/message.h"

/* All that there are, so that nothing we look for is out of range with older headers. */
#define LINK_ATTR_MAX 80

/* ---- decoding -------------------------------------------------------------------------------- */

void rtnl_interface_done(struct rtnl_interface *interface)
{
	json_decref(interface->alt_names);
	*interface = (struct rtnl_interface){0};
}

void rtnl_interfaces_done(struct rtnl_interfaces *interfaces)
{
	for (size_t i = 0; i < interfaces->n; i++)
		rtnl_interface_done(&interfaces->items[i]);
	free(interfaces->items);
	*interfaces = (struct rtnl_interfaces){0};
}

void rtnl_decode_hardware(const struct nlattr *attr, struct rtnl_address *ret)
{
	if (!attr || nla_len(attr) > RTNL_ADDRESS_MAX)
		return;
	ret->len = (size_t)nla_len(attr);
	memcpy(ret->octets, nla_data(attr), ret->len);
}

static json_t *decode_alt_names(const struct nlattr *list)
{
	const struct nlattr *attr;
	json_t *names = NULL;
	int left;

	if (!list)
		return NULL;
	nla_for_each_nested(attr, list, left)
	{
		char name[128]; /* ALTIFNAMSIZ */

		if (nla_type(attr) != IFLA_ALT_IFNAME || !netlink_str(attr, name, sizeof(name)))
			continue;
		if (!names)
			names = json_array();
		json_array_append_new(names, json_fmt("%s", name));
	}
	return names;
}

static void decode_parent(struct nlattr *const *attrs, struct rtnl_interface *ret)
{
	char bus[16];

	if (!netlink_str(attrs[IFLA_PARENT_DEV_BUS_NAME], bus, sizeof(bus)) || !str_eq(bus, "pci"))
		return;
	if (!netlink_str(attrs[IFLA_PARENT_DEV_NAME], ret->parent, sizeof(ret->parent)) ||
	    !pci_address_is_valid(ret->parent))
		ret->parent[0] = '\0';
}

/* By the number of its attribute. */
static const struct {
	const char *kind;
	int type;
	size_t at; /* in struct rtnl_kind */
} kind_numbers[] = {
	{"ipoib", IFLA_IPOIB_PKEY, offsetof(struct rtnl_kind, pkey)},
	{"ipoib", IFLA_IPOIB_MODE, offsetof(struct rtnl_kind, mode)},
	{"macvlan", IFLA_MACVLAN_MODE, offsetof(struct rtnl_kind, mode)},
	{"ipvlan", IFLA_IPVLAN_MODE, offsetof(struct rtnl_kind, mode)},
	{"vlan", IFLA_VLAN_ID, offsetof(struct rtnl_kind, vlan)},
	{"bridge", IFLA_BR_VLAN_FILTERING, offsetof(struct rtnl_kind, filtering)},
	{"bridge", IFLA_BR_VLAN_DEFAULT_PVID, offsetof(struct rtnl_kind, pvid)},
};

static void decode_kind(const struct nlattr *info, struct rtnl_interface *ret)
{
	enum { NUMBER_MAX = IFLA_BR_MAX };
	struct nlattr *attrs[IFLA_INFO_MAX + 1], *data[NUMBER_MAX + 1];

	ret->of_kind = (struct rtnl_kind){-1, -1, -1, -1, -1};
	if (!info)
		return;
	netlink_parse_nested(info, attrs, IFLA_INFO_MAX);
	if (!netlink_str(attrs[IFLA_INFO_KIND], ret->kind, sizeof(ret->kind)) ||
	    !attrs[IFLA_INFO_DATA])
		return;
	netlink_parse_nested(attrs[IFLA_INFO_DATA], data, NUMBER_MAX);
	for (size_t i = 0; i < ARRAY_LEN(kind_numbers); i++) {
		const struct nlattr *attr = data[kind_numbers[i].type];
		int64_t *number = (void *)((char *)&ret->of_kind + kind_numbers[i].at);
		uint16_t small;
		uint32_t large;
		uint8_t byte;

		if (!str_eq(ret->kind, kind_numbers[i].kind))
			continue;
		if (netlink_u8(attr, &byte))
			*number = byte;
		else if (netlink_u16(attr, &small))
			*number = small;
		else if (netlink_u32(attr, &large))
			*number = large;
	}
}

static uint8_t decode_xdp(const struct nlattr *xdp)
{
	struct nlattr *attrs[IFLA_XDP_MAX + 1];
	uint8_t mode = XDP_ATTACHED_NONE;

	if (!xdp)
		return mode;
	netlink_parse_nested(xdp, attrs, IFLA_XDP_MAX);
	(void)netlink_u8(attrs[IFLA_XDP_ATTACHED], &mode);
	return mode;
}

bool rtnl_decode_interface(const struct nlmsghdr *message, struct rtnl_interface *ret)
{
	struct nlattr *attrs[LINK_ATTR_MAX + 1];
	const struct ifinfomsg *header = nlmsg_data(message);
	uint32_t number;
	uint8_t byte;

	*ret = (struct rtnl_interface){0};
	if (message->nlmsg_type != RTM_NEWLINK ||
	    !netlink_parse(message, sizeof(*header), attrs, LINK_ATTR_MAX) ||
	    header->ifi_index <= 0 ||
	    !netlink_str(attrs[IFLA_IFNAME], ret->name, sizeof(ret->name)))
		return false;
	ret->index = header->ifi_index;
	ret->type = header->ifi_type;
	ret->flags = header->ifi_flags;
	ret->up = (header->ifi_flags & IFF_UP) != 0;
	ret->oper_state = netlink_u8(attrs[IFLA_OPERSTATE], &byte) ? byte : -1;
	ret->has_carrier = netlink_u8(attrs[IFLA_CARRIER], &byte);
	ret->carrier = ret->has_carrier && byte != 0;
	ret->carrier_changes =
		netlink_u32(attrs[IFLA_CARRIER_CHANGES], &number) ? (int64_t)number : -1;
	(void)netlink_u32(attrs[IFLA_MTU], &ret->mtu);
	(void)netlink_u32(attrs[IFLA_MIN_MTU], &ret->min_mtu);
	(void)netlink_u32(attrs[IFLA_MAX_MTU], &ret->max_mtu);
	(void)netlink_u32(attrs[IFLA_TXQLEN], &ret->txqlen);
	(void)netlink_str(attrs[IFLA_IFALIAS], ret->alias, sizeof(ret->alias));
	if (netlink_u32(attrs[IFLA_MASTER], &number))
		ret->master = (int)number;
	/* With LINK_NETNSID the index belongs to another namespace. */
	if (netlink_u32(attrs[IFLA_LINK], &number))
		*(attrs[IFLA_LINK_NETNSID] ? &ret->outer : &ret->lower) = (int)number;
	if (netlink_u32(attrs[IFLA_LINK_NETNSID], &number))
		ret->outer_nsid = (int)number;
	rtnl_decode_hardware(attrs[IFLA_ADDRESS], &ret->address);
	rtnl_decode_hardware(attrs[IFLA_PERM_ADDRESS], &ret->permanent);
	decode_kind(attrs[IFLA_LINKINFO], ret);
	decode_parent(attrs, ret);
	ret->xdp = decode_xdp(attrs[IFLA_XDP]);
	ret->alt_names = decode_alt_names(attrs[IFLA_PROP_LIST]);
	return true;
}

void rtnl_decode_interfaces(const void *bytes, size_t len, struct rtnl_interfaces *ret)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	ret->items = mem_calloc(netlink_count(bytes, len) + 1, sizeof(*ret->items));
	ret->n = 0;
	while ((message = netlink_next(bytes, len, &at)))
		if (rtnl_decode_interface(message, &ret->items[ret->n]))
			ret->n++;
}

const struct rtnl_interface *rtnl_by_name(const struct rtnl_interfaces *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->items[i].name, name) ||
		    json_list_has(list->items[i].alt_names, name))
			return &list->items[i];
	return NULL;
}

const struct rtnl_interface *rtnl_by_index(const struct rtnl_interfaces *list, int index)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].index == index)
			return &list->items[i];
	return NULL;
}

/* ---- asking and setting ---------------------------------------------------------------------- */

struct nl_msg *rtnl_link_request(uint16_t type, uint16_t flags, int index)
{
	struct ifinfomsg header = {.ifi_index = index};

	return netlink_request(type, flags, &header, sizeof(header));
}

static int ask_links(struct netlink *netlink, int index, struct rtnl_interfaces *ret,
		     struct err *err)
{
	auto_nl_msg struct nl_msg *msg =
		rtnl_link_request(RTM_GETLINK, index ? 0 : NLM_F_DUMP, index);
	auto_strbuf struct strbuf answer = {0};

	if (netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err) < 0)
		return -1;
	rtnl_decode_interfaces(answer.data, answer.len, ret);
	return 0;
}

int rtnl_list(struct netlink *netlink, struct rtnl_interfaces *ret, struct err *err)
{
	if (ask_links(netlink, 0, ret, err) < 0)
		return err_in(err, "list network interfaces");
	return 0;
}

int rtnl_get(struct netlink *netlink, int index, struct rtnl_interfaces *ret, struct err *err)
{
	if (ask_links(netlink, index, ret, err) < 0)
		return err_in(err, "look at network interface %d", index);
	if (rtnl_by_index(ret, index))
		return 0;
	rtnl_interfaces_done(ret);
	return err_set(err, ERR_TRANSIENT, "InterfaceGone", "network interface %d is gone", index);
}

static int send_change(struct netlink *netlink, struct nl_msg *msg, struct err *err)
{
	auto_strbuf struct strbuf answer = {0};

	return netlink_ask(netlink, NETLINK_ROUTE, msg, &answer, err);
}

int rtnl_set_mtu(struct netlink *netlink, int index, uint32_t mtu, struct err *err)
{
	auto_nl_msg struct nl_msg *msg = rtnl_link_request(RTM_SETLINK, 0, index);

	netlink_put_u32(msg, IFLA_MTU, mtu);
	return send_change(netlink, msg, err);
}

int rtnl_set_up(struct netlink *netlink, int index, struct err *err)
{
	struct ifinfomsg header = {.ifi_family = AF_UNSPEC,
				   .ifi_index = index,
				   .ifi_flags = IFF_UP,
				   .ifi_change = IFF_UP};
	auto_nl_msg struct nl_msg *msg = netlink_request(RTM_SETLINK, 0, &header, sizeof(header));

	return send_change(netlink, msg, err);
}
