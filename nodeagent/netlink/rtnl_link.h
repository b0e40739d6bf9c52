// SPDX-License-Identifier: Apache-2.0
/*
 * rtnetlink: network interfaces as values, and the few things we set. Attribute numbers and
 * layouts: linux/if_link.h; behaviour: net/core/rtnetlink.c. Decoding is pure.
 */
#pragma once

#include <jansson.h>
#include <linux/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/pci_address.h"
#include "nodeagent/netlink/netlink.h"

struct nlattr;
struct nlmsghdr;

enum {
	RTNL_ADDRESS_MAX = 32,
	RTNL_ALIAS_SIZE = 256, /* IFALIASZ */
};

/* Of hardware, or IP. */
struct rtnl_address {
	unsigned char octets[RTNL_ADDRESS_MAX];
	size_t len; /* 0: none */
};

/* What interfaces of some kinds have; -1: not told. */
struct rtnl_kind {
	int64_t mode;            /* of ipoib, macvlan, ipvlan */
	int64_t pkey;            /* of ipoib */
	int64_t vlan;            /* of vlan */
	int64_t filtering, pvid; /* of bridge: by VLAN; the VLAN of new ports, 0: none */
};

struct rtnl_interface {
	int index;
	char name[IFNAMSIZ];
	json_t *alt_names; /* array of strings, NULL when there are none */
	char alias[RTNL_ALIAS_SIZE];
	uint16_t type;      /* ARPHRD_… */
	unsigned int flags; /* IFF_… */
	bool up;            /* as the administrator set it */
	uint8_t xdp;        /* XDP_ATTACHED_…: a load balancer, AF_XDP sockets; 0: no program */
	bool has_carrier, carrier;
	int64_t carrier_changes;        /* losses and returns; -1: not said */
	int oper_state;                 /* IF_OPER_…, -1 when unknown */
	uint32_t mtu, min_mtu, max_mtu; /* 0 when unknown */
	uint32_t txqlen;
	struct rtnl_address address, permanent;
	int master, lower;             /* indices in our namespace, 0 when none */
	int outer;                     /* lower in another namespace, 0 when none … */
	int outer_nsid;                /* … which has this number in ours */
	char kind[32];                 /* "vlan", "openvswitch", …, "" for hardware */
	struct rtnl_kind of_kind;      /* what only its kind has */
	char parent[PCI_ADDRESS_SIZE]; /* PCI function, Linux 5.14 and up; else "" */
};

struct rtnl_interfaces {
	struct rtnl_interface *items;
	size_t n;
};

void rtnl_interfaces_done(struct rtnl_interfaces *interfaces);
#define auto_interfaces auto_call(rtnl_interfaces_done)

/* RTM_GETLINK, RTM_SETLINK, … of one interface by index, 0: of none. New. */
struct nl_msg *rtnl_link_request(uint16_t type, uint16_t flags, int index);

/*
 * One message into *ret, whose alt_names the caller owns; false, and nothing in it, for any other
 * message and what is unreadable.
 */
bool rtnl_decode_interface(const struct nlmsghdr *message, struct rtnl_interface *ret);
void rtnl_interface_done(struct rtnl_interface *interface);

/* An address of hardware; untouched where there is none, or one that is longer than any. */
void rtnl_decode_hardware(const struct nlattr *attr, struct rtnl_address *ret);

/*
 * All interfaces of our namespace, or what is in the answer to such a request. Unreadable messages
 * are left out.
 */
int rtnl_list(struct netlink *netlink, struct rtnl_interfaces *ret, struct err *err);
void rtnl_decode_interfaces(const void *bytes, size_t len, struct rtnl_interfaces *ret);

/* By name, alternative names included, or by index; NULL when there is none. */
const struct rtnl_interface *rtnl_by_name(const struct rtnl_interfaces *list, const char *name);
const struct rtnl_interface *rtnl_by_index(const struct rtnl_interfaces *list, int index);

/* One interface by index, decoded into ret (which rtnl_interfaces_done ends). */
int rtnl_get(struct netlink *netlink, int index, struct rtnl_interfaces *ret, struct err *err);

/* Each sends one request with one attribute. */
int rtnl_set_mtu(struct netlink *netlink, int index, uint32_t mtu, struct err *err);
int rtnl_set_up(struct netlink *netlink, int index, struct err *err);
