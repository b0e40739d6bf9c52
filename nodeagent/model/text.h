// SPDX-License-Identifier: Apache-2.0
/*
 * MAC addresses and GUIDs as text.
 *
 * GUIDs are numbers whose most significant byte is the first octet, in our document always eight
 * colon-separated octets ("02:00:…:01"), which is what ip-link(8) takes and sysfs' sriov/N/node of
 * NVIDIA's driver has. The kernel's "xxxx:xxxx:xxxx:xxxx" is read as well. (Go programs print the
 * octets backwards; we do not.)
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_GUID_SIZE 24
#define TEXT_MAC_SIZE  18

/*
 * Hex digits in either case, exactly so many octets. False and the output untouched for anything
 * else.
 */
bool text_to_mac(const char *text, unsigned char ret[6]);
bool text_to_guid(const char *text, uint64_t *ret);
/* A MAC address that an interface can have: unicast, not zero. False for NULL. */
bool text_to_unicast_mac(const char *text, unsigned char ret[6]);

void text_from_guid(uint64_t guid, char ret[TEXT_GUID_SIZE]);
/* A hardware address of 6 or 20 octets. Size: 3 × len. */
void text_from_octets(const unsigned char *octets, size_t len, char *ret);
bool text_mac_is_zero(const unsigned char mac[6]);
