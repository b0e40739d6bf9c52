// SPDX-License-Identifier: Apache-2.0
/*
 * rtnetlink of the tree: links with VFs and counters, addresses, routes, namespaces. From the doors
 * (host_tree.c), on what host_tree_nics.c keeps.
 */
#include <assert.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/simulate/host/host_tree_internal.h"
#include "lib/base/mem.h"
#include "nodeagent/netlink/message.h"

#define MTU_MAX 9978

bool tree_fails_now(struct host_tree *tree)
{
	tree->counts.changes++;
	return tree->counts.changes == tree->counts.fail_at;
}

/* ---- rtnetlink ------------------------------------------------------------------------------- */

void tree_add_message(struct strbuf *answer, struct nl_msg *msg)
{
	netlink_add(answer, nlmsg_hdr(msg));
	nlmsg_free(msg);
}

bool tree_counts(const char *driver)
{
	return str_eq(driver, "mlx5_core");
}

uint64_t tree_value_of(const struct host_tree *tree, const char *counter, unsigned int index,
		       uint64_t value)
{
	return tree->counted ? tree->counted(counter, index, value) : value;
}

static void put_vf_stats(struct host_tree *tree, struct nl_msg *msg, const struct pf *pf,
			 int number)
{
	static const char *const statistics[] = {
		[IFLA_VF_STATS_RX_PACKETS] = "vf_rx_packets",
		[IFLA_VF_STATS_TX_PACKETS] = "vf_tx_packets",
		[IFLA_VF_STATS_RX_BYTES] = "vf_rx_bytes",
		[IFLA_VF_STATS_TX_BYTES] = "vf_tx_bytes",
		[IFLA_VF_STATS_BROADCAST] = "vf_rx_broadcast",
		[IFLA_VF_STATS_MULTICAST] = "vf_rx_multicast",
		[IFLA_VF_STATS_RX_DROPPED] = "vf_rx_dropped",
		[IFLA_VF_STATS_TX_DROPPED] = "vf_tx_dropped",
	};
	struct nlattr *nest = nla_nest_start(msg, IFLA_VF_STATS);

	for (int type = IFLA_VF_STATS_RX_PACKETS; type <= IFLA_VF_STATS_TX_DROPPED; type++) {
		uint64_t value = 0;

		if (type == IFLA_VF_STATS_PAD)
			continue;
		if (tree_counts(pf->is.driver))
			value = tree_value_of(tree, statistics[type],
					      pf->is.vf_bus + (unsigned)number,
					      (uint64_t)(100 * number + type));
		netlink_put(msg, type, &value, sizeof(value));
	}
	nla_nest_end(msg, nest);
}

static void put_vf_info(struct host_tree *tree, struct nl_msg *msg, const struct pf *pf, int number,
			bool with_stats)
{
	const struct vf *vf = &pf->vfs[number];
	struct nlattr *info = nla_nest_start(msg, IFLA_VF_INFO);
	struct ifla_vf_mac mac = {.vf = (uint32_t)number};
	struct ifla_vf_link_state state = {.vf = (uint32_t)number, .link_state = vf->link_state};
	struct ifla_vf_guid guid = {.vf = (uint32_t)number, .guid = vf->node_guid};

	memcpy(mac.mac, vf->admin_mac, 6);
	netlink_put(msg, IFLA_VF_MAC, &mac, sizeof(mac));
	netlink_put(msg, IFLA_VF_LINK_STATE, &state, sizeof(state));
	if (pf->is.is_ib) {
		netlink_put(msg, IFLA_VF_IB_NODE_GUID, &guid, sizeof(guid));
		guid.guid = vf->port_guid;
		netlink_put(msg, IFLA_VF_IB_PORT_GUID, &guid, sizeof(guid));
	}
	if (with_stats)
		put_vf_stats(tree, msg, pf, number);
	nla_nest_end(msg, info);
}

/* filter: RTEXT_FILTER_… */
static void add_link(struct host_tree *tree, const struct interface *interface, uint32_t filter,
		     struct strbuf *answer)
{
	struct ifinfomsg header = {.ifi_index = interface->index,
				   .ifi_type = interface->type,
				   .ifi_flags = interface->up ? IFF_UP : 0};
	struct nl_msg *msg = nlmsg_alloc_size(65536);
	struct pf *pf = tree_pf_by(tree, interface->parent), *owner = pf;
	struct interface *master = tree_interface_by(tree, interface->master);
	int number;

	assert(nlmsg_put(msg, 0, 0, RTM_NEWLINK, sizeof(header), 0));
	memcpy(nlmsg_data(nlmsg_hdr(msg)), &header, sizeof(header));
	netlink_put_str(msg, IFLA_IFNAME, interface->name);
	netlink_put_u32(msg, IFLA_MTU, interface->mtu);
	netlink_put_u32(msg, IFLA_MIN_MTU, 68);
	if (!owner)
		(void)tree_vf_by(tree, interface->parent, &owner, &number);
	netlink_put_u32(msg, IFLA_MAX_MTU,
			owner && owner->is.max_mtu ? (uint32_t)owner->is.max_mtu : MTU_MAX);
	if (tree->has_carriers) {
		netlink_put_u8(msg, IFLA_CARRIER, !interface->no_carrier);
		/* IF_OPER_DOWN and _UP, RFC 2863. */
		netlink_put_u8(msg, IFLA_OPERSTATE, interface->no_carrier ? 2 : 6);
	}
	netlink_put(msg, IFLA_ADDRESS, interface->mac, 6);
	/* The address of a port is its bond's. */
	if (master) {
		netlink_put_u32(msg, IFLA_MASTER, (uint32_t)master->index);
		netlink_put(msg, IFLA_PERM_ADDRESS, interface->mac, 6);
	}
	if (interface->kind[0]) {
		struct nlattr *info = nla_nest_start(msg, IFLA_LINKINFO);

		netlink_put_str(msg, IFLA_INFO_KIND, interface->kind);
		nla_nest_end(msg, info);
	}
	if (interface->lower)
		netlink_put_u32(msg, IFLA_LINK, (uint32_t)interface->lower);
	if (interface->info)
		netlink_put(msg, IFLA_LINKINFO, interface->info, interface->info_len);
	/* From where it does not hide what we find out otherwise. */
	if (tree->here && interface->parent[0]) {
		netlink_put_str(msg, IFLA_PARENT_DEV_BUS_NAME, "pci");
		netlink_put_str(msg, IFLA_PARENT_DEV_NAME, interface->parent);
	}
	if ((filter & RTEXT_FILTER_VF) && pf && pf->count) {
		struct nlattr *list = nla_nest_start(msg, IFLA_VFINFO_LIST);

		for (int i = 0; i < pf->count && pf->is.eswitch != TREE_ESWITCH_ELSEWHERE; i++)
			put_vf_info(tree, msg, pf, i, !(filter & RTEXT_FILTER_SKIP_STATS));
		nla_nest_end(msg, list);
	}
	tree_add_message(answer, msg);
}

static bool is_in(ino_t netns, const struct interface *interface)
{
	return netns ? interface->netns == netns : !interface->away;
}

bool tree_is_here(const struct host_tree *tree, const struct interface *interface)
{
	return is_in(tree->here, interface);
}

static struct interface *interface_in(struct host_tree *tree, ino_t netns, const char *name)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (is_in(netns, &tree->interfaces[i]) && str_eq(tree->interfaces[i].name, name))
			return &tree->interfaces[i];
	return NULL;
}

static struct interface *interface_by_index(struct host_tree *tree, int index)
{
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (tree->interfaces[i].index == index && tree_is_here(tree, &tree->interfaces[i]))
			return &tree->interfaces[i];
	return NULL;
}

static int get_links(struct host_tree *tree, const struct nlmsghdr *request, struct strbuf *answer)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct nlattr *attrs[IFLA_MAX + 1];
	struct interface *one;
	char name[IFNAMSIZ] = "";
	uint32_t filter = 0;

	(void)netlink_parse(request, sizeof(*header), attrs, IFLA_MAX);
	(void)netlink_u32(attrs[IFLA_EXT_MASK], &filter);
	tree->counts.vf_lists += (filter & RTEXT_FILTER_VF) != 0;
	if (!(request->nlmsg_flags & NLM_F_DUMP)) {
		(void)netlink_str(attrs[IFLA_IFNAME], name, sizeof(name));
		one = header->ifi_index ? interface_by_index(tree, header->ifi_index)
					: interface_in(tree, tree->here, name);
		if (!one)
			return -ENODEV;
		add_link(tree, one, filter, answer);
		return 0;
	}
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (tree_is_here(tree, &tree->interfaces[i]))
			add_link(tree, &tree->interfaces[i], 0, answer);
	return 0;
}

static int set_vf(struct pf *pf, const struct nlattr *list)
{
	struct nlattr *info[IFLA_VF_INFO + 1], *attrs[IFLA_VF_MAX + 1];
	struct ifla_vf_guid guid;
	uint32_t number;
	struct nlattr *set;

	netlink_parse_nested(list, info, IFLA_VF_INFO);
	netlink_parse_nested(info[IFLA_VF_INFO], attrs, IFLA_VF_MAX);
	set = attrs[IFLA_VF_MAC]            ? attrs[IFLA_VF_MAC]
	      : attrs[IFLA_VF_LINK_STATE]   ? attrs[IFLA_VF_LINK_STATE]
	      : attrs[IFLA_VF_IB_NODE_GUID] ? attrs[IFLA_VF_IB_NODE_GUID]
					    : attrs[IFLA_VF_IB_PORT_GUID];
	memcpy(&number, nla_data(set), sizeof(number));
	if ((int)number >= pf->count)
		return -EINVAL;
	if (pf->is.eswitch == TREE_ESWITCH_ELSEWHERE)
		return -EPERM;
	if (set == attrs[IFLA_VF_MAC]) {
		memcpy(pf->vfs[number].admin_mac, (const char *)nla_data(set) + 4, 6);
		return 0;
	}
	if (set == attrs[IFLA_VF_LINK_STATE]) {
		memcpy(&pf->vfs[number].link_state, (const char *)nla_data(set) + 4, 4);
		return 0;
	}
	if (!pf->is.is_ib)
		return -EOPNOTSUPP;
	memcpy(&guid, nla_data(set), sizeof(guid));
	*(set == attrs[IFLA_VF_IB_NODE_GUID] ? &pf->vfs[number].node_guid
					     : &pf->vfs[number].port_guid) = guid.guid;
	return 0;
}

/* Where a request sends an interface: here without a word of it; the root folder is the node's. */
static ino_t netns_of(const struct host_tree *tree, struct nlattr *const *attrs)
{
	struct stat root, st;
	uint32_t fd;

	if (!netlink_u32(attrs[IFLA_NET_NS_FD], &fd))
		return tree->here;
	assert(fstat(tree->root, &root) == 0 && fstat((int)fd, &st) == 0);
	return st.st_ino == root.st_ino ? 0 : st.st_ino;
}

/* Name and namespace (net/core/rtnetlink.c, do_setlink()). */
static int move_link(struct host_tree *tree, struct interface *interface,
		     struct nlattr *const *attrs)
{
	ino_t netns = netns_of(tree, attrs);
	char name[IFNAMSIZ];
	const struct interface *other;

	if (!netlink_str(attrs[IFLA_IFNAME], name, sizeof(name)))
		(void)snprintf(name, sizeof(name), "%s", interface->name);
	other = interface_in(tree, netns, name);
	if (other && other != interface)
		return -EEXIST;
	interface->up = interface->up && is_in(netns, interface);
	tree_place_interface(tree, interface, netns, name);
	return 0;
}

static int set_link(struct host_tree *tree, const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct interface *interface = interface_by_index(tree, header->ifi_index);
	struct nlattr *attrs[IFLA_MAX + 1];
	uint32_t master;

	(void)netlink_parse(request, sizeof(*header), attrs, IFLA_MAX);
	if (!interface)
		return -ENODEV;
	/* What a bridge knows of its port is not kept. */
	if (header->ifi_family == AF_BRIDGE)
		return interface->master[0] ? 0 : -EINVAL;
	if (header->ifi_change & IFF_UP)
		interface->up = (header->ifi_flags & IFF_UP) && !interface->stays_down;
	if (netlink_u32(attrs[IFLA_MASTER], &master)) {
		const struct interface *bridge = interface_by_index(tree, (int)master);

		(void)snprintf(interface->master, sizeof(interface->master), "%s",
			       bridge ? bridge->name : "");
	}
	(void)netlink_u32(attrs[IFLA_MTU], &interface->mtu);
	if (attrs[IFLA_ADDRESS] && nla_len(attrs[IFLA_ADDRESS]) == sizeof(interface->mac))
		memcpy(interface->mac, nla_data(attrs[IFLA_ADDRESS]), sizeof(interface->mac));
	if (attrs[IFLA_NET_NS_FD] || attrs[IFLA_IFNAME])
		return move_link(tree, interface, attrs);
	if (attrs[IFLA_VFINFO_LIST]) {
		struct pf *pf = tree_pf_by(tree, interface->parent);

		return pf ? set_vf(pf, attrs[IFLA_VFINFO_LIST]) : -EOPNOTSUPP;
	}
	return 0;
}

/* With the attributes of its request, in their namespace. NULL: its name is taken there. */
static struct interface *make_link(struct host_tree *tree, struct nlattr *const *attrs,
				   const struct nlattr *info)
{
	ino_t netns = netns_of(tree, attrs);
	char name[IFNAMSIZ] = "";
	struct interface *added;

	if (!netlink_str(attrs[IFLA_IFNAME], name, sizeof(name)) || interface_in(tree, netns, name))
		return NULL;
	added = tree_new_interface(tree, name);
	added->info_len = (size_t)nla_len(info);
	added->info = mem_dup(nla_data(info), added->info_len);
	(void)netlink_u32(attrs[IFLA_MTU], &added->mtu);
	added->away = true;
	tree_place_interface(tree, added, netns, name);
	return added;
}

/* The other end of a pair; attrs: of the first, whose kind says that it is one. */
static int make_peer(struct host_tree *tree, int end, const struct nlattr *info)
{
	struct nlattr *kind[IFLA_INFO_MAX + 1], *data[VETH_INFO_PEER + 1], *attrs[IFLA_MAX + 1];
	const size_t skipped = NLMSG_ALIGN(sizeof(struct ifinfomsg));
	struct interface *peer;

	netlink_parse_nested(info, kind, IFLA_INFO_MAX);
	netlink_parse_nested(kind[IFLA_INFO_DATA], data, VETH_INFO_PEER);
	assert(data[VETH_INFO_PEER] && (size_t)nla_len(data[VETH_INFO_PEER]) >= skipped);
	(void)nla_parse(attrs, IFLA_MAX,
			(struct nlattr *)((char *)nla_data(data[VETH_INFO_PEER]) + skipped),
			nla_len(data[VETH_INFO_PEER]) - (int)skipped, NULL);
	peer = make_link(tree, attrs, info);
	if (!peer)
		return -EEXIST;
	peer->lower = end;
	interface_by_index(tree, end)->lower = peer->index;
	return 0;
}

/* Upon another interface, or by itself; in another namespace if the request says so. */
static int new_link(struct host_tree *tree, const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct nlattr *attrs[IFLA_MAX + 1], *kind[IFLA_INFO_MAX + 1];
	char name[IFNAMSIZ];
	struct interface *added;
	uint32_t lower = 0;

	if (!(request->nlmsg_flags & NLM_F_CREATE))
		return set_link(tree, request);
	(void)netlink_parse(request, sizeof(*header), attrs, IFLA_MAX);
	if (!attrs[IFLA_LINKINFO])
		return -EINVAL;
	if (netlink_u32(attrs[IFLA_LINK], &lower) && !interface_by_index(tree, (int)lower))
		return -ENODEV;
	added = make_link(tree, attrs, attrs[IFLA_LINKINFO]);
	if (!added)
		return -EEXIST;
	added->lower = (int)lower;
	added->up = (header->ifi_flags & IFF_UP) != 0;
	netlink_parse_nested(attrs[IFLA_LINKINFO], kind, IFLA_INFO_MAX);
	if (netlink_str(kind[IFLA_INFO_KIND], name, sizeof(name)) && str_eq(name, "veth"))
		return make_peer(tree, added->index, attrs[IFLA_LINKINFO]);
	return 0;
}

static int delete_link(struct host_tree *tree, const struct nlmsghdr *request)
{
	const struct ifinfomsg *header = nlmsg_data(request);
	struct interface *interface = interface_by_index(tree, header->ifi_index);
	int index = header->ifi_index;

	if (!interface)
		return -ENODEV;
	if (!interface->info)
		return -EOPNOTSUPP;
	tree_remove_interface(tree, interface);
	/* With one end of a pair the other goes; what is upon an interface stays a link here. */
	for (size_t i = 0; i < tree->n_interfaces; i++)
		if (tree->interfaces[i].lower == index && tree->interfaces[i].info &&
		    memmem(tree->interfaces[i].info, tree->interfaces[i].info_len, "veth", 5)) {
			tree_remove_interface(tree, &tree->interfaces[i]);
			break;
		}
	return 0;
}

static void get_routes(struct host_tree *tree, const struct nlmsghdr *request,
		       struct strbuf *answer)
{
	const struct rtmsg *asked = nlmsg_data(request);

	for (int i = 0; asked->rtm_family != AF_INET6 && !tree->here && i < tree->ip.n_routes;
	     i++) {
		struct rtmsg header = {
			.rtm_family = AF_INET, .rtm_table = RT_TABLE_MAIN, .rtm_type = RTN_UNICAST};
		struct nl_msg *msg = netlink_request(RTM_NEWROUTE, 0, &header, sizeof(header));

		netlink_put_u32(msg, RTA_OIF, (uint32_t)tree->ip.routes[i]);
		tree_add_message(answer, msg);
	}
}

static void get_addresses(struct host_tree *tree, struct strbuf *answer)
{
	for (int i = 0; i < tree->ip.n_addresses; i++) {
		struct ifaddrmsg header = {.ifa_family = AF_INET,
					   .ifa_index = (uint32_t)tree->ip.addresses[i].index};
		struct nl_msg *msg = netlink_request(RTM_NEWADDR, 0, &header, sizeof(header));

		netlink_put(msg, IFA_LOCAL, tree->ip.addresses[i].octets, 4);
		tree_add_message(answer, msg);
	}
}

int tree_route_request(struct host_tree *tree, const struct nlmsghdr *request,
		       struct strbuf *answer)
{
	switch (request->nlmsg_type) {
	case RTM_GETLINK:
		return get_links(tree, request, answer);
	case RTM_SETLINK:
		return tree_fails_now(tree) ? -EIO : set_link(tree, request);
	case RTM_NEWLINK:
		return tree_fails_now(tree) ? -EIO : new_link(tree, request);
	case RTM_DELLINK:
		return tree_fails_now(tree) ? -EIO : delete_link(tree, request);
	case RTM_GETROUTE:
		get_routes(tree, request, answer);
		return 0;
	case RTM_GETADDR:
		get_addresses(tree, answer);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}
