// SPDX-License-Identifier: Apache-2.0
/*
 * From which pools may a NIC take its addresses? The first source that is present decides alone:
 *
 *	1. pod annotation ipam.spidernet.io/ippools: [{"interface": "net1", "ipv4": […], "ipv6":
 *	   […], "cleangateway": false}, …]
 *	2. pod annotation ipam.spidernet.io/ippool: {"ipv4": […], "ipv6": […]}
 *	3. namespace annotations ipam.spidernet.io/default-ipv4-ippool and …/default-ipv6-ippool:
 *	   […]
 *	4. the network's own configuration: default_ipv4_ippool, default_ipv6_ippool
 *	5. all pools with spec.default: true, by name
 *
 * Names may be shell patterns in sources 1 to 4. The order of the user's list is kept.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

#define IPAM_ANNOTATION_POOLS   "ipam.spidernet.io/ippools"
#define IPAM_ANNOTATION_POOL    "ipam.spidernet.io/ippool"
#define IPAM_ANNOTATION_ROUTES  "ipam.spidernet.io/routes"
#define IPAM_ANNOTATION_NS_IPV4 "ipam.spidernet.io/default-ipv4-ippool"
#define IPAM_ANNOTATION_NS_IPV6 "ipam.spidernet.io/default-ipv6-ippool"

/* Switches of the whole cluster: ConfigMap spiderpool-conf. */
struct ipam_settings {
	bool ipv4, ipv6;
	bool keeps_stateful_sets; /* a pod of a StatefulSet keeps its addresses */
	bool keeps_virtual_machines;
	/* Is another host on the network asked for, before a pod has an address or a gateway? */
	bool detects_conflicts, detects_gateways;
	const char *ns; /* where names of networks without a namespace are looked for */
	/* "namespace/name" of the pods' default network; NULL: not known */
	const char *cluster_network;
	/*
	 * As the nodes' meta plugin, or Multus, is configured; NULL: as it is without. Where names
	 * of default-network and of the next are looked for; names of networks that every pod has
	 * besides its default one, but for pods of these namespaces, both with commas between.
	 */
	const char *multus_ns, *default_networks, *system_namespaces;
};

/*
 * Can the pod have a NIC of this name: eth0, one that every pod has, or one of those that its
 * annotation of networks asks for? Also when that annotation cannot be read, or is not there at
 * all: other programs than Multus may make NICs.
 */
bool pod_may_have_nic(const json_t *pod, const struct ipam_settings *settings, const char *nic);

/*
 * Refuse the text of an annotation: ERR_INVALID "WrongAnnotation", with its beginning, what it must
 * be, and the place where it ends to be JSON if *err, which may be NULL, has that of
 * limits_parse(). Returns -1.
 */
int candidates_refuse_text(const char *text, const char *must_be, struct err *err);

/*
 * What a NIC asks with:
 *
 *	{"nic": "net1", "ipv4": [pool, …], "ipv6": […], "cleanGateway": bool, "masterAddresses":
 *	[address, …], "isKnownOnly": bool}
 *
 * All but "nic" are optional. "masterAddresses" is there when the network says match_master_subnet:
 * the addresses of the NIC's PF, empty when it is no VF. isKnownOnly: the pod runs, so it has
 * addresses already, and gets no other.
 *
 * Returns a new array of what has to be allocated for this ask, NIC by NIC:
 *
 *	{"nic": NAME, "ipv4": [pool, …], "ipv6": […], "cleanGateway": bool, "masterAddresses": …,
 *	"isKnownOnly": bool}
 *
 * NAME is that of the NIC, or a number as text, "0", "1", …, when `ippools` names no interfaces:
 * "0" is eth0, the others are taken in order by the NICs that ask later. A family that is switched
 * off or has no candidates is absent.
 *
 * World: KIND_NAMESPACE (the pod's), KIND_IP_POOL (all). NULL with err, all ERR_INVALID:
 *	"WrongAnnotation"	an annotation cannot be read, or breaks its rules; the text names it
 *                              and what would be right
 *	"NoPool"	no source names a pool
 *	"NoAddressForNic"	the source selects nothing for this NIC
 *	"PoolNotFound"	a pool that is named does not exist
 *	"TooLarge"	beyond a bound (limits.h), which "masterAddresses" have, too
 *
 * memo: an object of the caller's, empty at first and the same for all asks of one pod, in one
 * world, so that nothing is found twice; NULL: this is the only ask.
 */
json_t *candidates_find(const json_t *world, const json_t *pod, const json_t *ask,
			const struct ipam_settings *settings, json_t *memo, struct err *err);

struct candidate_names {
	bool is_open; /* any pool may be meant: there are patterns, or no source but 5 */
	/*
	 * Patterns that are compared with all pools for sources 3 and 4; 0 while 1 or 2 is there,
	 * whose patterns whoever has the pod can count (candidates_count_patterns()).
	 */
	size_t patterns;
	/* Pools to choose from: so many by name, and all pools for so many asks. */
	size_t names, open_asks;
	size_t masters; /* the most "masterAddresses" of an ask */
};

/*
 * Visit the names of all pools that sources 1 to 4 could mean for the pod, some perhaps twice, and
 * words that are no names. Returns what was found.
 *
 * namespace: the pod's, or NULL. asks: what its NICs ask with.
 */
struct candidate_names candidates_visit_names(const json_t *pod, const json_t *namespace,
					      const json_t *asks,
					      void (*visit)(void *arg, const char *pool),
					      void *arg);

/* Strings with patterns in the text of an annotation, without parsing it: perhaps too many. */
size_t candidates_count_patterns(const char *text);
