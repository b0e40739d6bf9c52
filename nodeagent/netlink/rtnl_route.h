// SPDX-License-Identifier: Apache-2.0
/*
 * rtnetlink: addresses, routes, rules and neighbours as values, and which interfaces they concern.
 * Numbers are the kernel's (linux/rtnetlink.h). Decoding is pure.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "nodeagent/netlink/rtnl_link.h"

/* An address of an interface. `address` is empty where it is of neither IPv4 nor IPv6. */
struct rtnl_ifaddr {
	int index;
	unsigned char family, prefix, scope; /* AF_…, bits, RT_SCOPE_… */
	struct rtnl_address address;         /* ours, where there is a peer */
};

/* One of the ways that a route leads. */
struct rtnl_hop {
	int index;
	unsigned int flags; /* RTNH_F_… */
	struct rtnl_address gateway;
};

struct rtnl_route {
	unsigned char family, prefix; /* AF_INET or AF_INET6, bits of dst */
	unsigned char scope, protocol, type;
	unsigned int flags; /* RTM_F_…, RTNH_F_… */
	uint32_t table, metric, mtu;
	uint32_t next_hop; /* the number of an object that stands for the ways, 0: none */
	struct rtnl_address dst, gateway, src; /* dst is never empty */
	bool has_via;                          /* its gateway is of the other family */
	int index;                             /* interface, 0: none */
	struct rtnl_hop *hops;
	size_t n_hops;
};

struct rtnl_rule {
	unsigned char family, action; /* AF_INET or AF_INET6, FR_ACT_… */
	unsigned char from_prefix, to_prefix;
	uint32_t table, priority, mark;
	struct rtnl_address from, to;
};

struct rtnl_neighbour {
	int index;
	uint16_t state; /* NUD_… */
	struct rtnl_address address, mac;
};

/*
 * One message into *ret; false, and nothing in it, for any other message, another family than IPv4
 * and IPv6 (but rtnl_ifaddr), and what is unreadable.
 */
bool rtnl_decode_ifaddr(const struct nlmsghdr *message, struct rtnl_ifaddr *ret);
bool rtnl_decode_route(const struct nlmsghdr *message, struct rtnl_route *ret);
bool rtnl_decode_rule(const struct nlmsghdr *message, struct rtnl_rule *ret);
bool rtnl_decode_neighbour(const struct nlmsghdr *message, struct rtnl_neighbour *ret);

void rtnl_route_done(struct rtnl_route *route);
#define auto_route auto_call(rtnl_route_done)

/* ---- which interfaces ------------------------------------------------------------------------ */

/* Indices of interfaces. */
struct rtnl_indices {
	int *items;
	size_t n;
	bool is_by_id; /* routes were met that name a next hop by its number alone */
};

void rtnl_indices_done(struct rtnl_indices *indices);
#define auto_indices auto_call(rtnl_indices_done)
bool rtnl_has_index(const struct rtnl_indices *list, int index);

/*
 * Out of which interfaces the default routes of the main table lead, IPv4 and IPv6, all next hops.
 */
int rtnl_default_routes(struct netlink *netlink, struct rtnl_indices *ret, struct err *err);
void rtnl_decode_default_routes(const void *bytes, size_t len, struct rtnl_indices *ret);
/* Which interfaces have one of these addresses (an array of strings). */
int rtnl_with_addresses(struct netlink *netlink, const json_t *addresses, struct rtnl_indices *ret,
			struct err *err);
void rtnl_decode_with_addresses(const void *bytes, size_t len, const json_t *addresses,
				struct rtnl_indices *ret);

/*
 * Which interfaces the node itself uses by IP: those with an address that is valid beyond its link
 * (RT_SCOPE_UNIVERSE or _SITE), and those out of which a route leads, of any table, that the kernel
 * has not made by itself (RTPROT_KERNEL: what comes with an address, and with IPv6).
 */
int rtnl_with_any_address(struct netlink *netlink, struct rtnl_indices *ret, struct err *err);
void rtnl_decode_with_any_address(const void *bytes, size_t len, struct rtnl_indices *ret);
int rtnl_with_routes(struct netlink *netlink, struct rtnl_indices *ret, struct err *err);
void rtnl_decode_with_routes(const void *bytes, size_t len, struct rtnl_indices *ret);
/*
 * Next hops that are objects of their own (RTM_GETNEXTHOP): with net.ipv4.nexthop_compat_mode 0
 * routes name them by a number, and no interface. Then each of them counts, for either question.
 */
void rtnl_decode_next_hops(const void *bytes, size_t len, struct rtnl_indices *ret);
