/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our CNI plugins refuse in a configuration, whatever node and device it is for. Pure.
 *
 * One list of rules for two readers: the plugins, before they touch a VF, and the operator, so that
 * a network that no pod could join is not Ready. Keys and values are those of sriov-cni,
 * ib-sriov-cni and ipoib-cni (their READMEs); ranges of VLAN and QoS are those of IEEE 802.1Q.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

/* EtherTypes of VLAN tags (linux/if_ether.h: ETH_P_8021Q, ETH_P_8021AD). */
#define CNI_PROTO_8021Q  0x8100
#define CNI_PROTO_8021AD 0x88a8

/*
 * The settings of a VF in the configuration of a plugin of type "sriov" or "ib-sriov". Added to
 * wanted, as far as the configuration has them:
 *
 *	"vlan", "qos", "proto"   integers; proto is the EtherType
 *	"minRate", "maxRate"     Mbit/s
 *	"linkState"              0 auto, 1 enable, 2 disable (linux/if_link.h, IFLA_VF_LINK_STATE_*)
 *	"spoofchk", "trust"      booleans
 *
 * ret_key, unless it is NULL, is the key of the configuration that is wrong, a constant.
 *
 * ERR_INVALID "BadField"  a value that the plugin refuses; the text begins with the type
 */
int cni_rules_vf_settings(const char *type, const json_t *config, json_t *wanted,
			  const char **ret_key, struct err *err);

/* ERR_INVALID "BadField": ipam.type is dhcp, which needs Ethernet. ret_key as above. */
int cni_rules_no_dhcp(const char *type, const json_t *config, const char **ret_key,
		      struct err *err);

/*
 * ERR_INVALID "BadField": ipam.type (in any case) is no name of a plugin: not a string, or a path.
 * Absent or "" is none. ret_key as above.
 */
int cni_rules_ipam(const char *type, const json_t *config, const char **ret_key, struct err *err);

/*
 * Does our plugin of this configuration's type refuse it on every node? Configurations of other
 * types are not checked, nor deviceID, which a pod brings along, nor masters, which differ by node.
 * Errors as cni_rules_vf_settings(), cni_rules_ipam(), also for ipam.type dhcp without Ethernet.
 */
int cni_rules_check(const json_t *plugin, const char **ret_key, struct err *err);

/*
 * What the IPAM plugin `spiderpool` reads of an "ipam" object, new: default_ipv4_ippool,
 * default_ipv6_ippool, clean_gateway, match_master_subnet. A key may be written in any case, as
 * Spiderpool's plugin takes it; of several the last counts, and null is absent. Values are not
 * checked.
 */
json_t *cni_rules_spiderpool(const json_t *ipam);

/* Plugins in one list. */
#define CNI_PLUGINS_MAX 64

/*
 * Does a plugin of this type call others for all networks of a pod? Ours, and Multus' two. NULL:
 * no.
 */
bool cni_rules_type_is_meta(const char *type);

/*
 * Does our meta plugin refuse a network's configuration, a plugin's object or a list with
 * "plugins"?
 *
 * ERR_INVALID "BadNetworkConfig"  no plugin, or more than CNI_PLUGINS_MAX; one without a type, or
 *                                 of a type that is not a file of the CNI folder, or that
 *                                 calls others; cniVersion or name is not a string
 */
int cni_rules_network(const json_t *config, struct err *err);
