// SPDX-License-Identifier: Apache-2.0
/*
 * Addresses, subnets and ranges as 128-bit numbers: never expanded, so a range of 2^100 addresses
 * costs as much as one of 2.
 *
 * The grammar is that of SpiderIPPool: an address is a dotted quad without leading zeros or IPv6
 * text without a zone, a range is "a" or "a-b" without blanks, a subnet is "address/length". An
 * IPv4 address is never written as IPv6 ("::ffff:10.0.0.1" is refused: two spellings of one address
 * would escape the overlap checks).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

enum ip_family {
	IP_V4 = 4,
	IP_V6 = 6,
};

/* An address of a family as a number; IPv4 uses the low 32 bits. */
typedef unsigned __int128 ip_number;

/* Both ends belong to it; first <= last. */
struct ip_range {
	ip_number first;
	ip_number last;
};

/* ::ffff:0:0/96, IPv4 addresses in IPv6 (RFC 4291, 2.5.5.2): ip_parse() takes none of them. */
#define IP_V4_MAPPED                                                                               \
	((struct ip_range){(ip_number)0xffff << 32, ((ip_number)0xffff << 32) | 0xffffffff})

struct ip_subnet {
	enum ip_family family;
	unsigned int prefix_len;
	bool has_host_bits; /* written as 172.16.11.0/16; read as 172.16.0.0/16 */
	struct ip_range range;
};

#define IP_TEXT_SIZE        48 /* INET6_ADDRSTRLEN rounded up */
#define IP_SUBNET_TEXT_SIZE 56

/* Reasons: "BadAddress". The text names the value and what is wrong with it. */
int ip_parse(const char *text, enum ip_family family, ip_number *ret, struct err *err);
/* The family by its spelling, then as ip_parse. */
int ip_parse_any(const char *text, enum ip_family *ret_family, ip_number *ret, struct err *err);
void ip_print(enum ip_family family, ip_number address, char out[IP_TEXT_SIZE]);
/*
 * The address of "address/length" or "address", as ip_print() spells it; a text that is no address
 * stays as it is. False, and nothing in out, when it is empty or longer than any address.
 */
bool ip_print_bare(const char *text, enum ip_family family, char out[IP_TEXT_SIZE]);

/* Reason: "BadSubnet". */
int ip_subnet_parse(const char *text, struct ip_subnet *ret, struct err *err);
/* The network's own text: "172.16.0.0/16". */
void ip_subnet_print(const struct ip_subnet *subnet, char out[IP_SUBNET_TEXT_SIZE]);

/* Reason: "BadRange"; a range that ends before it starts is one. */
int ip_range_parse(const char *text, enum ip_family family, struct ip_range *ret, struct err *err);
/* "a" or "a-b". Returns new; free(). */
char *ip_range_text(enum ip_family family, struct ip_range range);

static inline bool ip_range_has(struct ip_range range, ip_number address)
{
	return range.first <= address && address <= range.last;
}

static inline bool ip_range_covers(struct ip_range outer, struct ip_range inner)
{
	return outer.first <= inner.first && inner.last <= outer.last;
}

static inline bool ip_range_overlaps(struct ip_range a, struct ip_range b)
{
	return a.first <= b.last && b.first <= a.last;
}

/* A set of addresses. `struct ip_set s = {0};` is the empty one. */
struct ip_set {
	struct ip_range *items;
	size_t len;
	size_t cap;
};

void ip_set_done(struct ip_set *set);
#define auto_ip_set auto_call(ip_set_done)

/* Collect, in any order and overlapping; then call ip_set_settle once before asking anything. */
void ip_set_add(struct ip_set *set, struct ip_range range);
/* Sort, join what overlaps or touches. */
void ip_set_settle(struct ip_set *set);

/* The questions below take settled sets. */

/* Take from `set` all addresses of `other`; set stays settled. */
void ip_set_subtract(struct ip_set *set, const struct ip_set *other);
bool ip_set_has(const struct ip_set *set, ip_number address);
/* The first run of addresses that both have; false when there is none. ret may be NULL. */
bool ip_set_common(const struct ip_set *a, const struct ip_set *b, struct ip_range *ret);
/* How many addresses, at most INT64_MAX. */
int64_t ip_set_count(const struct ip_set *set);
