// SPDX-License-Identifier: Apache-2.0
/*
 * The GID that RoCE makes of an IP address: IPv6 as it is, IPv4 mapped into ::ffff:0:0/96.
 *
 * Source: drivers/infiniband/core/roce_gid_mgmt.c; Documentation/ABI/stable/sysfs-class-infiniband.
 */
#pragma once

#include <stdbool.h>

/* "0000:0000:0000:0000:0000:ffff:0a06:0001" as sysfs writes it, with its NUL. */
#define GID_TEXT_SIZE 40

/* False, and ret "", when it is not an address; a prefix length is not one. */
bool gid_of_address(const char *address, char ret[GID_TEXT_SIZE]);
