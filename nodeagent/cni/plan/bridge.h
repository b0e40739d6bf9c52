// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of bridge: a pair of links, one end in the pod, the other a port of a bridge of the
 * node. Pure.
 *
 * Compatible with the plugin of this name of containernetworking-plugins 1.x
 * (github.com/containernetworking/plugins, plugins/main/bridge): its keys, its result. It forwards
 * by MAC and VLAN alone: what rewrites packets (ipMasq, macspoofchk) is refused. docs/cni.md lists
 * what is different on purpose.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plan/interface.h"

struct bridge_config {
	json_t *folded;     /* what texts are borrowed from, and where switches are read */
	const char *bridge; /* its name */
	bool has_ipam;      /* addresses are asked for */
	bool is_gateway;    /* the node's end has the gateways' addresses */
	int64_t mtu, vlan;  /* 0: the kernel's own; none */
	json_t *trunk;      /* [[first, last]], in order: VLANs that are tagged; NULL: not given */
	char mac[18];       /* of the pod's interface; "": the kernel's own */
};

/* Entries of vlanTrunk that are read. */
#define BRIDGE_TRUNK_MAX 1024

/*
 * args: CNI_ARGS, or NULL. ERR_INVALID "BadField" names the key and what it must be, "NotSupported"
 * one that needs a packet filter.
 */
int bridge_config_read(const json_t *config, const char *args, struct bridge_config *ret,
		       struct err *err);
void bridge_config_done(struct bridge_config *config);
#define auto_bridge_config auto_call(bridge_config_done)

/*
 * Append the steps (steps.h) up to a bridge that is up. link: the one of its name as of look.h;
 * NULL: there is none. The bridge stays when pods go.
 * ERR_INVALID "BadField"  the link is not a bridge, or does not filter VLANs
 */
int bridge_plan(const struct bridge_config *config, const json_t *link, json_t *steps,
		struct err *err);

/*
 * Append the steps up to a pod's interface, and a port `peer` of the bridge `link`. MAC of the link
 * is kept from following that of its ports.
 */
void bridge_plan_port(const struct bridge_config *config, const json_t *link, const char *peer,
		      const char *ifname, json_t *steps);

/*
 * The first address of an IP network that misses its gateway; default routes by it. `result`:
 * IPAM's.
 */
void bridge_put_gateways(const struct bridge_config *config, json_t *result);

/* What bridge_plan_gateways() sees of the node. */
struct bridge_node {
	const json_t *link;      /* the bridge */
	const json_t *vlan;      /* its interface of the VLAN; NULL: there is none */
	const json_t *addresses; /* [{"index", "address"}] of all links */
	const json_t *routes;    /* of all tables (look.h); NULL: nothing new is put there */
	const json_t *peers;     /* addresses of machines that the node is connected to */
	bool forwards_v4, forwards_v6;
};

/*
 * The gateways of `result` that the node does not have yet, each with the prefix length of its
 * network: texts, a new list. routes and peers are not needed for it.
 */
json_t *bridge_new_networks(const struct bridge_config *config, const struct bridge_node *node,
			    const json_t *result);
/* Is the address in one of the networks? */
bool bridge_networks_have(const json_t *networks, const char *address);
/*
 * May the node have these gateways?
 * ERR_INVALID "AddressOfNode"    a network takes one of the node's own from it, or a gateway by
 *                                which its routes lead
 * ERR_TRANSIENT "AddressOfNode"  only a machine that it is connected to, which may be a pod that
 *                                was in the network
 */
int bridge_check_gateways(const struct bridge_config *config, const struct bridge_node *node,
			  const json_t *networks, struct err *err);
/* Does a route of the node lead to a gateway by this interface? */
bool bridge_leads_out(const json_t *routes, const char *dev);

/* The name of the interface that has the addresses of the gateways, new. */
char *bridge_gateway_dev(const struct bridge_config *config);

/*
 * Append the steps up to a node that has the gateways of `result`, which bridge_put_gateways() has
 * seen, and forwards.
 * ERR_INVALID "BadField"       it has another address there; see forceAddress
 * ERR_INVALID "AddressOfNode"  that is how the node reaches others, so it stays
 */
int bridge_plan_gateways(const struct bridge_config *config, const struct bridge_node *node,
			 const json_t *result, json_t *steps, struct err *err);

/*
 * Is the interface as ADD made it? host: links, among them the bridge and the peer of the pod's
 * interface. Errors as of interface_check().
 */
int bridge_check(const struct bridge_config *config, const struct interface_facts *facts,
		 const json_t *host, struct err *err);
