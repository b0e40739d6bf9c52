// SPDX-License-Identifier: Apache-2.0
/*
 * The IPAM plugin `spiderpool`: what its configuration asks the agent for. Pure.
 *
 * Source: Spiderpool 1.2, cmd/spiderpool/cmd/config.go. Keys for logs and sockets are accepted and
 * say nothing.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/err.h"

#define SPIDERPOOL "spiderpool"

/*
 * What the NIC asks with, new, as reconcilers/ipam/candidates.h has it: {"nic", "ipv4", "ipv6",
 * "cleanGateway"}. *ret_match: the pools have to be of a subnet of the NIC's master, whose
 * addresses go along as "masterAddresses". NULL with ERR_INVALID "BadField".
 */
json_t *spiderpool_wish(const json_t *config, const char *ifname, bool *ret_match, struct err *err);
