/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of a network configuration as our plugins read them. Pure.
 *
 * The plugins that ours replace decode configurations with Go's encoding/json: a key matches in any
 * case ("Vlan" is vlan; of several spellings the last one counts), null counts as absent, and a
 * value of another type ends the call. Configurations in clusters rely on the first; and if a
 * setting of the wrong type were ignored, an isolation that a user asked for would be missing.
 *
 * Source: https://pkg.go.dev/encoding/json#Unmarshal; the fields of sriov-cni's and ib-sriov-cni's
 * pkg/types, ipoib-cni's and rdma-cni's NetConf, Spiderpool's coordinator Config, NetConf of
 * macvlan, ipvlan, vlan and bridge and IPAMConfig of static and host-local in
 * containernetworking-plugins.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/*
 * Return new: the configuration of a plugin of this type ("static.ipam": the object "ipam" of one)
 * with each of its keys in the usual spelling. Keys that the plugin does not have are kept as they
 * are. The copy is shallow.
 */
json_t *config_keys_fold(const json_t *config, const char *type);

/*
 * The same, and each value of the right type.
 *
 * ERR_INVALID "BadField"  a value of another type; the text names key, value and type
 */
int config_keys_read(const json_t *config, const char *type, json_t **ret, struct err *err);

/* The largest 802.1Q number. */
#define CONFIG_VLAN_MAX 4094

/*
 * A whole number of a configuration that was read, from 0 to max; 0 where the key is missing. type:
 * the plugin, for the message. ERR_INVALID "BadField".
 */
int config_keys_number(const json_t *config, const char *type, const char *key, int64_t max,
		       int64_t *ret, struct err *err);

/* Can an interface have this name (net/core/dev.c, dev_valid_name(), and no '%')? */
bool config_keys_is_ifname(const char *text);
