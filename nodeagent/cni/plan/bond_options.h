// SPDX-License-Identifier: Apache-2.0
/*
 * Options of a bond, as Spiderpool's ifacer reads them: "miimon=100;primary=eth0". Pure.
 *
 * Names, values and modes are those of the kernel's bonding driver (linux/if_link.h, IFLA_BOND_*;
 * Documentation/networking/bonding.rst; drivers/net/bonding/bond_options.c).
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"

/* Addresses of arp_ip_target (BOND_MAX_ARP_TARGETS, net/bonding.h). */
#define BOND_TARGETS_MAX 16

/*
 * Append the options to a list, one object each: "number" (IFLA_BOND_…), and one of
 *
 *	"value"      a number of "bits" bits
 *	"device"     name of an interface of the node, whose index is the value
 *	"mac"        an address
 *	"addresses"  a list of IPv4 addresses
 *
 * ret_ignored, unless it is NULL, is a list to which the entries are appended that have no effect:
 * names that the driver does not have, or not with this mode, entries that are not NAME=VALUE,
 * numbers of 0 and below.
 * text may be NULL. The lists are unchanged on failure.
 *
 * ERR_INVALID "BadField"  a value of another form or range, or what the driver refuses with another
 *                         option, or with none; the text begins with "ifacer". mode: 0 to 6
 */
int bond_options_read(const char *text, int64_t mode, json_t *options, json_t *ret_ignored,
		      struct err *err);
