// SPDX-License-Identifier: Apache-2.0
/*
 * The decisions of static: addresses that the configuration names. Pure.
 *
 * Compatible with static of containernetworking-plugins 1.x
 * (github.com/containernetworking/plugins, plugins/ipam/static).
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * The result (result.h) that a configuration asks for, new: ipam.addresses, and IP of CNI_ARGS
 * (args, or NULL), whose gateway is in GATEWAY, besides; args.cni.ips in their place,
 * runtimeConfig.ips in the place of all. ERR_INVALID "BadField" names the key.
 */
int static_ipam_result(const json_t *config, const char *args, json_t **ret, struct err *err);

/*
 * Has each address that is in both the gateway that is asked for?
 * ERR_INVALID "BadField"  previous is NULL
 * ERR_HOST "NotAsAdded"   the text has the address
 */
int static_ipam_check(const json_t *wanted, const json_t *previous, struct err *err);
