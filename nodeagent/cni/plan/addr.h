// SPDX-License-Identifier: Apache-2.0
/*
 * IP addresses with a prefix length, as CNI results and netlink have them. Pure.
 *
 * Text is as Go prints it (net.IP.String): results go to programs that compare text.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct addr {
	uint8_t octets[16]; /* the first 4 with IPv4, the rest zero */
	uint8_t family;     /* 4, 6; 0: none */
	uint8_t prefix;     /* bits; 32 or 128 for a single address */
};

#define ADDR_TEXT_SIZE 56

/* How many octets an address of the family has: 4 or 16. */
unsigned int addr_len(const struct addr *address);

/*
 * "10.7.0.51", "fd07::51": prefix becomes 32 or 128. An IPv4 address in IPv6 clothes
 * ("::ffff:10.7.0.51") is one of IPv4, as in Go. False for anything else; blanks are not skipped.
 */
bool addr_parse(const char *text, struct addr *ret);
/* "10.7.0.51/24"; host bits are kept. */
bool addr_parse_prefix(const char *text, struct addr *ret);

/* Without the prefix, and with it. */
void addr_print(const struct addr *address, char ret[ADDR_TEXT_SIZE]);
void addr_print_prefix(const struct addr *address, char ret[ADDR_TEXT_SIZE]);

/* The same family and octets; the prefix does not count. */
bool addr_same(const struct addr *a, const struct addr *b);
/* The network: host bits cleared. */
struct addr addr_network(const struct addr *address);
/* The address alone: prefix 32 or 128. */
struct addr addr_single(const struct addr *address);
/* Is b within a's network? */
bool addr_contains(const struct addr *a, const struct addr *b);
/* fe80::/10; false for IPv4. */
bool addr_is_link_local(const struct addr *address);
bool addr_is_multicast(const struct addr *address);
/* All octets are zero. */
bool addr_is_unspecified(const struct addr *address);
