// SPDX-License-Identifier: Apache-2.0
/*
 * Steps: the changes of namespaces that a planner lists and nodeagent/cni/execute carries out.
 * Pure.
 *
 * A step is {"in": "pod" or "host", "do": one of the words below, …}; devices are named, so that a
 * plan may speak of one that an earlier step makes. Numbers are the kernel's; what is absent is not
 * touched.
 *
 *   link         dev, and any of up (bool), promisc, allmulti (bool), deaf (true: neither of
 *                these, as an administrator sets them), mac, mtu, txqlen, master (index), group;
 *                was: the same, for the way back
 *   veth         dev, peer, mac, peerMac, mtu: a pair, whose peer is in the other namespace; up:
 *                false: dev stays down; exclusive: a pair that is there is a failure
 *   bridge       dev, mtu, filtering (bool: by VLAN)
 *   bond         dev, options ([{number (IFLA_BOND_…); bits, value, or mac, or addresses}])
 *   port         dev (a port of a bridge), and any of hairpin, isolated (bool)
 *   vlans, unvlans  dev, ids ([[first, last]]): VLANs of a port, tagged; pvid: frames without a
 *                tag are of it, both ways; self: dev is the bridge
 *   ipoib        dev, lower (index of the parent), pkey, mode: a child of an IPoIB interface
 *   upper        dev, kind ("macvlan", "ipvlan", "vlan", "dummy"), lower (index), mode, vlan,
 *                queue, mac, mtu: an interface upon another one, without lower by itself; to: it
 *                is made in the other namespace
 *   unlink       dev, or group: all of its links at once
 *   address, unaddress      dev, address; broadcast: with that of its network, if IPv4 has one
 *   route, unroute          family, table, dst; gw, dev, src, scope, metric, mtu, flags;
 *                beside: others may lead there, too
 *   rule, unrule            family, table; from, to, mark, priority
 *   neighbour, unneighbour  dev, address; mac
 *   move         dev, as: into the other namespace under this name; "vf%d" is made unique
 *   rename       dev, as: the name alone; the device is down
 *   mac          dev, mac, was: tried until the device has it; pf, vf: of a VF, whose PF may
 *                have to let it
 *   unalt        dev, name: an alternative name that is in the way
 *   alias        dev, as: the text of "ip link set alias", "" for none
 *   unxdp        dev, mode (XDP_FLAGS_…_MODE): the XDP program that is attached in this mode
 *   vf           dev (a PF), vf, and one of the groups of sriov.h; was: the same members of before
 *   sysctl       path, value, was; "optional": the kernel may lack it
 *   marks, unmarks          dev: what comes in by dev is answered by dev (cni/execute/marks.h)
 *
 * "index": the number of dev, by which it is found then: names change. "shared": others need it,
 * too, so it is never taken back. "announce": tell the network of the interface's addresses.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Append a step to a list and return it, borrowed, to be filled in. */
json_t *steps_add(json_t *steps, const char *in, const char *what, const char *dev);

/* The same for one of the node's namespace that other pods need, too. */
json_t *steps_add_shared(json_t *steps, const char *what, const char *dev);

/* The same for a sysctl that the kernel may lack; takes the path. */
json_t *steps_add_sysctl(json_t *steps, const char *in, json_t *path_new, const char *value);

/*
 * What takes steps back that were done: new, in reverse order. A link stays up; what nothing is
 * known of from before stays as it is.
 */
json_t *steps_undo(const json_t *done);

/*
 * Number what steps do to a device that is there: `link` as of look.h, NULL: none. Up to where it
 * moves; a new name does not lose it.
 */
void steps_number(json_t *steps, const char *in, const json_t *link);

/* Of these steps new those in one namespace. */
json_t *steps_in(const json_t *steps, const char *in);

/*
 * What of the steps that were done is no longer so in the namespaces as they look now: the first,
 * borrowed; NULL when all holds. Looks at routes, rules, neighbours, addresses, and whether links
 * are there.
 */
const json_t *steps_missing(const json_t *done, const json_t *pod, const json_t *host);

/* "route 10.233.0.0/18 via 10.6.0.10 dev veth0 table 101 in the pod": for messages. New; free(). */
char *step_text(const json_t *step);
