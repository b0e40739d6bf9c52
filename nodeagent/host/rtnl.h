// SPDX-License-Identifier: Apache-2.0
/*
 * rtnetlink: network interfaces, what a PF knows of its VFs, default routes, addresses; and the few
 * things we set. Attribute numbers and layouts: linux/if_link.h; behaviour: net/core/rtnetlink.c.
 */
#ifndef ORBWEAVER_NODEAGENT_HOST_RTNL_H
#define ORBWEAVER_NODEAGENT_HOST_RTNL_H

#include <jansson.h>
#include <linux/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/str.h"
#include "nodeagent/host/pci.h"

#define RTNL_ADDRESS_MAX 32

struct rtnl_address {
	unsigned char octets[RTNL_ADDRESS_MAX];
	size_t len; /* 0: none */
};

struct rtnl_interface {
	int index;
	char name[IFNAMSIZ];
	json_t *alt_names; /* array of strings, NULL when there are none */
	uint16_t type;     /* ARPHRD_… */
	bool up;           /* as the administrator set it */
	bool has_xdp;      /* an XDP program is attached: a load balancer, AF_XDP sockets */
	bool has_carrier, carrier;
	int oper_state;                 /* IF_OPER_…, -1 when unknown */
	uint32_t mtu, min_mtu, max_mtu; /* 0 when unknown */
	struct rtnl_address address, permanent;
	int master, lower;             /* indices in our namespace, 0 when none */
	int outer;                     /* lower in another namespace, 0 when none … */
	int outer_nsid;                /* … which has this number in ours */
	char kind[16];                 /* "vlan", "openvswitch", …, "" for hardware */
	char parent[PCI_ADDRESS_SIZE]; /* PCI function, Linux 5.14 and up; else "" */
};

struct rtnl_interfaces {
	struct rtnl_interface *items;
	size_t n;
};

void rtnl_interfaces_done(struct rtnl_interfaces *interfaces);
#define auto_interfaces auto_call(rtnl_interfaces_done)

/*
 * All interfaces of our namespace, or what is in the answer to such a request. Unreadable messages
 * are left out.
 */
int rtnl_list(struct host *host, struct rtnl_interfaces *ret, struct err *err);
void rtnl_decode_interfaces(const void *bytes, size_t len, struct rtnl_interfaces *ret);

/* By name, alternative names included, or by index; NULL when there is none. */
const struct rtnl_interface *rtnl_by_name(const struct rtnl_interfaces *list, const char *name);
const struct rtnl_interface *rtnl_by_index(const struct rtnl_interfaces *list, int index);

/* One interface by index, decoded into ret (which rtnl_interfaces_done ends). */
int rtnl_get(struct host *host, int index, struct rtnl_interfaces *ret, struct err *err);

/* What the PF says of one VF. */
struct rtnl_vf {
	uint32_t index;
	unsigned char mac[6];
	bool has_mac, has_link_state, has_node_guid, has_port_guid;
	uint32_t link_state; /* IFLA_VF_LINK_STATE_… */
	uint64_t node_guid, port_guid;
};

struct rtnl_vfs {
	struct rtnl_vf *items;
	size_t n;
};

void rtnl_vfs_done(struct rtnl_vfs *vfs);
#define auto_vfs auto_call(rtnl_vfs_done)

int rtnl_list_vfs(struct host *host, int pf_index, struct rtnl_vfs *ret, struct err *err);
void rtnl_decode_vfs(const void *bytes, size_t len, struct rtnl_vfs *ret);
const struct rtnl_vf *rtnl_vf_by_number(const struct rtnl_vfs *list, uint32_t number);

/*
 * What a PF has counted for its VFs, wherever they are: { "0": { "rx_bytes": 1, … } }, new;
 * "tx_bytes", "rx_packets", "tx_packets", "rx_dropped", "tx_dropped", "rx_broadcast" and
 * "rx_multicast" besides. A driver that does not count, or could not now, leaves zeroes
 * (net/core/rtnetlink.c, rtnl_fill_vfinfo()): a VF of which all are zero is left out. NULL with
 * err; from about 190 VFs on new kernels cannot tell (EMSGSIZE, vf_list.h).
 */
json_t *rtnl_vf_counters(struct host *host, int pf_index, struct err *err);
void rtnl_decode_vf_counters(const void *bytes, size_t len, json_t *ret);

/* Indices of interfaces. */
struct rtnl_indices {
	int *items;
	size_t n;
	bool is_by_id; /* routes were met that name a next hop by its number alone */
};

void rtnl_indices_done(struct rtnl_indices *indices);
#define auto_indices auto_call(rtnl_indices_done)

/*
 * Out of which interfaces the default routes of the main table lead, IPv4 and IPv6, all next hops.
 */
int rtnl_default_routes(struct host *host, struct rtnl_indices *ret, struct err *err);
void rtnl_decode_default_routes(const void *bytes, size_t len, struct rtnl_indices *ret);
/* Which interfaces have one of these addresses (an array of strings). */
int rtnl_with_addresses(struct host *host, const json_t *addresses, struct rtnl_indices *ret,
			struct err *err);
void rtnl_decode_with_addresses(const void *bytes, size_t len, const json_t *addresses,
				struct rtnl_indices *ret);

/*
 * Which interfaces the node itself uses by IP: those with an address that is valid beyond its link
 * (RT_SCOPE_UNIVERSE or _SITE), and those out of which a route leads, of any table, that the kernel
 * has not made by itself (RTPROT_KERNEL: what comes with an address, and with IPv6).
 */
int rtnl_with_any_address(struct host *host, struct rtnl_indices *ret, struct err *err);
void rtnl_decode_with_any_address(const void *bytes, size_t len, struct rtnl_indices *ret);
int rtnl_with_routes(struct host *host, struct rtnl_indices *ret, struct err *err);
void rtnl_decode_with_routes(const void *bytes, size_t len, struct rtnl_indices *ret);
/*
 * Next hops that are objects of their own (RTM_GETNEXTHOP): with net.ipv4.nexthop_compat_mode 0
 * routes name them by a number, and no interface. Then each of them counts, for either question.
 */
void rtnl_decode_next_hops(const void *bytes, size_t len, struct rtnl_indices *ret);
bool rtnl_has_index(const struct rtnl_indices *list, int index);

/*
 * Each sends one request with one attribute (net/core/rtnetlink.c, do_setvfinfo(): the kernel stops
 * at the first error and undoes nothing).
 */
int rtnl_set_mtu(struct host *host, int index, uint32_t mtu, struct err *err);
int rtnl_set_up(struct host *host, int index, struct err *err);
int rtnl_set_vf_mac(struct host *host, int pf_index, uint32_t vf, const unsigned char mac[6],
		    struct err *err);
/* attribute: IFLA_VF_IB_NODE_GUID or IFLA_VF_IB_PORT_GUID. */
int rtnl_set_vf_guid(struct host *host, int pf_index, uint32_t vf, int attribute, uint64_t guid,
		     struct err *err);
int rtnl_set_vf_link_state(struct host *host, int pf_index, uint32_t vf, uint32_t state,
			   struct err *err);

#endif
