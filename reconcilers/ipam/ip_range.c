// SPDX-License-Identifier: Apache-2.0
/* Address arithmetic on 128-bit numbers; see ip_range.h. */
#include "reconcilers/ipam/ip_range.h"

#include <arpa/inet.h>
#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Longer text is no address; bounds what an error message repeats. */
#define TEXT_SHOWN 64

static unsigned int family_bits(enum ip_family family)
{
	return family == IP_V4 ? 32 : 128;
}

int ip_parse(const char *text, enum ip_family family, ip_number *ret, struct err *err)
{
	uint8_t bytes[16];
	size_t len = family_bits(family) / 8;
	ip_number address = 0;

	/*
	 * inet_pton refuses leading zeros, zones, blanks and "::" for no group at all, as Go's
	 * net.ParseIP does.
	 */
	if (inet_pton(family == IP_V4 ? AF_INET : AF_INET6, text, bytes) != 1)
		return err_set(err, ERR_INVALID, "BadAddress", "\"%.*s\" is not an IPv%d address",
			       TEXT_SHOWN, text, family);
	for (size_t i = 0; i < len; i++)
		address = address << 8 | bytes[i];
	if (family == IP_V6 && ip_range_has(IP_V4_MAPPED, address))
		return err_set(err, ERR_INVALID, "BadAddress",
			       "\"%.*s\" is an IPv4 address in IPv6 clothes: write it as IPv4",
			       TEXT_SHOWN, text);
	*ret = address;
	return 0;
}

int ip_parse_any(const char *text, enum ip_family *ret_family, ip_number *ret, struct err *err)
{
	enum ip_family family = strchr(text, ':') ? IP_V6 : IP_V4;

	if (family == IP_V4 && !strchr(text, '.'))
		return err_set(err, ERR_INVALID, "BadAddress", "\"%.*s\" is not an IP address",
			       TEXT_SHOWN, text);
	if (ip_parse(text, family, ret, err))
		return -1;
	*ret_family = family;
	return 0;
}

void ip_print(enum ip_family family, ip_number address, char out[IP_TEXT_SIZE])
{
	uint8_t bytes[16];
	size_t len = family_bits(family) / 8;

	assert(family == IP_V6 || (family == IP_V4 && address >> 32 == 0));
	/* inet_ntop would print ::a06:1 as ::10.6.0.1, which Go and users do not. */
	if (family == IP_V6 && address >> 32 == 0 && address >> 16) {
		(void)snprintf(out, IP_TEXT_SIZE, "::%x:%x", (unsigned int)(address >> 16),
			       (unsigned int)(address & 0xffff));
		return;
	}
	for (size_t i = 0; i < len; i++)
		bytes[len - 1 - i] = (uint8_t)(address >> 8 * i);
	inet_ntop(family == IP_V4 ? AF_INET : AF_INET6, bytes, out, IP_TEXT_SIZE);
}

bool ip_print_bare(const char *text, enum ip_family family, char out[IP_TEXT_SIZE])
{
	size_t len = strcspn(text, "/");
	ip_number number;

	if (len == 0 || len >= IP_TEXT_SIZE)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	if (ip_parse(out, family, &number, NULL) == 0)
		ip_print(family, number, out);
	return true;
}

int ip_subnet_parse(const char *text, struct ip_subnet *ret, struct err *err)
{
	auto_free char *address_text = NULL;
	const char *slash = strchr(text, '/');
	enum ip_family family = IP_V4;
	ip_number address = 0, mask = 0;
	int64_t prefix_len = 0;
	unsigned int host_bits;

	if (!slash)
		return err_set(err, ERR_INVALID, "BadSubnet",
			       "\"%.*s\" is not a subnet: write it as address/length, for example "
			       "10.6.0.0/16",
			       TEXT_SHOWN, text);
	address_text = str_ndup(text, (size_t)(slash - text));
	if (ip_parse_any(address_text, &family, &address, NULL))
		return err_set(err, ERR_INVALID, "BadSubnet",
			       "\"%.*s\" is not a subnet: the part before / is not an IP address",
			       TEXT_SHOWN, text);
	if (!str_to_int(slash + 1, 0, family_bits(family), &prefix_len) || slash[1] == '-')
		return err_set(err, ERR_INVALID, "BadSubnet",
			       "\"%.*s\" is not a subnet: the length must be from 0 to %u",
			       TEXT_SHOWN, text, family_bits(family));
	/* Ones for the bits of the host part. */
	host_bits = family_bits(family) - (unsigned int)prefix_len;
	mask = host_bits == 128 ? ~(ip_number)0 : ((ip_number)1 << host_bits) - 1;
	*ret = (struct ip_subnet){
		.family = family,
		.prefix_len = (unsigned int)prefix_len,
		.has_host_bits = (address & mask) != 0,
		.range = {address & ~mask, address | mask},
	};
	return 0;
}

void ip_subnet_print(const struct ip_subnet *subnet, char out[IP_SUBNET_TEXT_SIZE])
{
	char address[IP_TEXT_SIZE];

	assert(subnet->prefix_len <= family_bits(subnet->family));
	ip_print(subnet->family, subnet->range.first, address);
	(void)snprintf(out, IP_SUBNET_TEXT_SIZE, "%s/%u", address, subnet->prefix_len);
}

int ip_range_parse(const char *text, enum ip_family family, struct ip_range *ret, struct err *err)
{
	auto_free char *first_text = NULL;
	const char *dash = strchr(text, '-');
	struct ip_range range = {0};
	struct err cause = {0};

	if (!dash) {
		if (ip_parse(text, family, &range.first, &cause))
			return err_set(err, ERR_INVALID, "BadRange",
				       "%s: write an address or first-last", cause.text);
		*ret = (struct ip_range){range.first, range.first};
		return 0;
	}
	first_text = str_ndup(text, (size_t)(dash - text));
	if (ip_parse(first_text, family, &range.first, &cause) ||
	    ip_parse(dash + 1, family, &range.last, &cause))
		return err_set(err, ERR_INVALID, "BadRange",
			       "\"%.*s\": %s, write the range as first-last without blanks",
			       2 * TEXT_SHOWN, text, cause.text);
	if (range.first > range.last)
		return err_set(err, ERR_INVALID, "BadRange",
			       "\"%.*s\" ends before it starts: write %s-%s", 2 * TEXT_SHOWN, text,
			       dash + 1, first_text);
	*ret = range;
	return 0;
}

char *ip_range_text(enum ip_family family, struct ip_range range)
{
	char first[IP_TEXT_SIZE], last[IP_TEXT_SIZE];

	assert(range.first <= range.last);
	ip_print(family, range.first, first);
	if (range.first == range.last)
		return str_dup(first);
	ip_print(family, range.last, last);
	return str_printf("%s-%s", first, last);
}

void ip_set_done(struct ip_set *set)
{
	mem_free(set->items);
	*set = (struct ip_set){0};
}

void ip_set_add(struct ip_set *set, struct ip_range range)
{
	assert(range.first <= range.last);
	if (set->len == set->cap) {
		set->cap = set->cap ? 2 * set->cap : 4;
		set->items = mem_realloc(set->items, set->cap * sizeof(*set->items));
	}
	set->items[set->len++] = range;
}

static int compare_first(const void *a, const void *b)
{
	const struct ip_range *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

void ip_set_settle(struct ip_set *set)
{
	size_t kept = 0;

	if (set->len == 0)
		return;
	qsort(set->items, set->len, sizeof(*set->items), compare_first);
	for (size_t i = 1; i < set->len; i++) {
		struct ip_range *run = &set->items[kept];
		const struct ip_range *next = &set->items[i];

		/* The difference, not last + 1: that would wrap at the highest address. */
		if (next->first <= run->last || next->first - run->last == 1) {
			if (next->last > run->last)
				run->last = next->last;
		} else {
			set->items[++kept] = *next;
		}
	}
	set->len = kept + 1;
}

void ip_set_subtract(struct ip_set *set, const struct ip_set *other)
{
	struct ip_set left = {0};
	size_t j = 0;

	assert(set != other);
	for (size_t i = 0; i < set->len; i++) {
		struct ip_range rest = set->items[i];
		bool is_gone = false;

		while (j < other->len && other->items[j].last < rest.first)
			j++;
		/* An excluded run may reach into the next range too, so j stays on it. */
		for (size_t k = j; k < other->len && other->items[k].first <= rest.last; k++) {
			const struct ip_range *hole = &other->items[k];

			if (hole->first > rest.first)
				ip_set_add(&left, (struct ip_range){rest.first, hole->first - 1});
			is_gone = hole->last >= rest.last;
			if (is_gone)
				break;
			rest.first = hole->last + 1;
		}
		if (!is_gone)
			ip_set_add(&left, rest);
	}
	ip_set_done(set);
	*set = left;
}

bool ip_set_has(const struct ip_set *set, ip_number address)
{
	size_t low = 0, high = set->len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (set->items[middle].last < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < set->len && ip_range_has(set->items[low], address);
}

bool ip_set_common(const struct ip_set *a, const struct ip_set *b, struct ip_range *ret)
{
	size_t i = 0, j = 0;

	while (i < a->len && j < b->len) {
		const struct ip_range *x = &a->items[i], *y = &b->items[j];

		if (ip_range_overlaps(*x, *y)) {
			if (ret)
				*ret = (struct ip_range){
					x->first > y->first ? x->first : y->first,
					x->last < y->last ? x->last : y->last,
				};
			return true;
		}
		if (x->last < y->last)
			i++;
		else
			j++;
	}
	return false;
}

int64_t ip_set_count(const struct ip_set *set)
{
	ip_number count = 0;

	for (size_t i = 0; i < set->len; i++) {
		ip_number more = set->items[i].last - set->items[i].first;

		if (more >= INT64_MAX - count)
			return INT64_MAX;
		count += more + 1;
	}
	return (int64_t)count;
}
