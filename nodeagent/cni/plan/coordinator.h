// SPDX-License-Identifier: Apache-2.0
/*
 * The coordinator plugin's decisions: which routing table a NIC of a pod gets, which routes, rules
 * and neighbours make pod and node reach each other, and make each NIC answer by itself. Pure.
 *
 * The result is compatible with Spiderpool's coordinator: table numbers, priorities, table 100, the
 * rule with priority
 * 1000. tests/conformance/coordinator_differences.txt lists what is different on purpose.
 *
 * Calls for one pod come one after the other, in the order of its networks: tables are numbered by
 * the links that are there and up.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"
#include "nodeagent/cni/plan/coordinator_config.h"

/*
 * The pod's end of the pair that underlay mode makes; the node's is "veth" and eleven characters of
 * the container's id.
 */
#define COORDINATOR_VETH      "veth0"
#define COORDINATOR_PEER_SIZE 16

/* The node's table where hostRuleTable says none: nobody else's, as Spiderpool's. */
#define COORDINATOR_HOST_TABLE 500

void coordinator_peer_name(const char *container_id, char ret[COORDINATOR_PEER_SIZE]);

/* What a NIC is in its pod. */
struct coordinator_role {
	bool underlay; /* else overlay */
	bool first;    /* the first NIC with a coordinator: its host routes go to main, too */
	bool has_veth; /* COORDINATOR_VETH is there */
	int64_t table; /* 101, … */
	unsigned int families; /* LOOK_V4 | LOOK_V6 */
	const char *via; /* by which the pod reaches its node: veth0, or the pod's first NIC */
	json_t *nic_addresses; /* texts with prefix, of the NIC */
	json_t *pod_addresses; /* of all NICs, in order of links */
};

void coordinator_role_done(struct coordinator_role *role);
#define auto_coordinator_role auto_call(coordinator_role_done)

/*
 * ERR_INVALID "NicMissing"   the interface is not in the pod
 *             "NoAddress"    it has no address: chain the coordinator after a plugin with IPAM
 *             "BadMode"      the mode does not fit this interface
 */
int coordinator_role_of(const struct coordinator_config *config, const char *ifname,
			const json_t *pod, struct coordinator_role *ret, struct err *err);

/* What the kernel and chance say besides. */
struct coordinator_facts {
	const json_t *pod; /* look.h, and "sysctls": {path: value} */
	/*
	 * Of netns_observe_host(), and "reached": addresses of the NIC to which the kubelet has
	 * connections of its own (nodeagent/host/connections.h).
	 */
	const json_t *host;
	/* Addresses that IP pools, which administrators make, gave the sandbox; or NULL. */
	const json_t *granted;
	/* Names of interfaces of networks that come next, which `pod` leaves out; or NULL. */
	const json_t *later;
	/* The node's end of role.via: a link of the node; NULL when it is still to be made. */
	const json_t *peer;
	const char *ifname, *container_id;
	const char *veth_mac, *peer_mac; /* for a pair to be made */
};

/*
 * Append the steps of ADD (steps.h). ERR_INVALID "NicMissing": podDefaultRouteNic names no
 * interface of the pod, nor one that comes next; "AddressOfNode": a route to an address of the
 * NIC would take the node's own traffic, since the node has it, or routes by it, or reaches it
 * through a gateway and no IP pool gave it to the pod, or it is a Service's; ERR_TRANSIENT
 * "AddressOfNode": the kubelet is connected to it; ERR_INVALID "BadField": hostRuleTable is a table
 * that others use. ERR_HOST "NoPeer": role.via has no other end on the node.
 */
int coordinator_plan(const struct coordinator_config *config, const struct coordinator_role *role,
		     const struct coordinator_facts *facts, json_t *steps, struct err *err);
