// SPDX-License-Identifier: Apache-2.0
/*
 * Octets of both families in one array, IPv4 first, so that masks, comparisons and ranges need no
 * case for the family. Planners of this folder and nodeagent/cni/execute use it where JSON has
 * texts; text is read and written here alone.
 */
#include "nodeagent/cni/plan/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

/* As this file makes them: family and length of the prefix fit. */
static bool is_sound(const struct addr *address)
{
	return address->family == 0 || (address->family == 4 && address->prefix <= 32) ||
	       (address->family == 6 && address->prefix <= 128);
}

unsigned int addr_len(const struct addr *address)
{
	assert(address->family == 4 || address->family == 6);
	return address->family == 4 ? 4 : 16;
}

bool addr_parse(const char *text, struct addr *ret)
{
	struct addr address = {.family = 4, .prefix = 32};

	if (!text)
		return false;
	/* inet_pton refuses leading zeros, zones and blanks, as Go's net.ParseIP does. */
	if (inet_pton(AF_INET, text, address.octets) != 1) {
		if (inet_pton(AF_INET6, text, address.octets) != 1)
			return false;
		address.family = 6;
		address.prefix = 128;
		if (memcmp(address.octets, MAPPED, sizeof(MAPPED)) == 0) {
			memmove(address.octets, address.octets + 12, 4);
			memset(address.octets + 4, 0, 12);
			address.family = 4;
			address.prefix = 32;
		}
	}
	*ret = address;
	return true;
}

bool addr_parse_prefix(const char *text, struct addr *ret)
{
	char alone[ADDR_TEXT_SIZE];
	const char *slash = text ? strchr(text, '/') : NULL;
	struct addr address = {0};
	int64_t prefix = 0;

	if (!slash || (size_t)(slash - text) >= sizeof(alone))
		return false;
	memcpy(alone, text, (size_t)(slash - text));
	alone[slash - text] = '\0';
	if (!addr_parse(alone, &address) || !str_to_int(slash + 1, 0, address.prefix, &prefix) ||
	    slash[1] == '-')
		return false;
	address.prefix = (uint8_t)prefix;
	*ret = address;
	return true;
}

void addr_print(const struct addr *address, char ret[ADDR_TEXT_SIZE])
{
	const uint8_t *o = address->octets;
	static const uint8_t zeros[12];

	assert(is_sound(address));
	if (!address->family) {
		ret[0] = '\0';
		return;
	}
	/* inet_ntop would print ::a06:1 as ::10.6.0.1, which Go does not. */
	if (address->family == 6 && memcmp(o, zeros, 12) == 0 && (o[12] || o[13]))
		(void)snprintf(ret, ADDR_TEXT_SIZE, "::%x:%x", o[12] << 8 | o[13],
			       o[14] << 8 | o[15]);
	else
		(void)inet_ntop(address->family == 4 ? AF_INET : AF_INET6, o, ret, ADDR_TEXT_SIZE);
}

void addr_print_prefix(const struct addr *address, char ret[ADDR_TEXT_SIZE])
{
	size_t len;

	assert(is_sound(address));
	addr_print(address, ret);
	len = strlen(ret);
	(void)snprintf(ret + len, ADDR_TEXT_SIZE - len, "/%u", address->prefix);
}

bool addr_same(const struct addr *a, const struct addr *b)
{
	return a->family == b->family && memcmp(a->octets, b->octets, sizeof(a->octets)) == 0;
}

struct addr addr_network(const struct addr *address)
{
	struct addr network = *address;

	assert(is_sound(address));
	for (unsigned int i = 0; i < addr_len(address); i++) {
		unsigned int kept = address->prefix > i * 8 ? address->prefix - i * 8 : 0;

		if (kept < 8)
			network.octets[i] &= (uint8_t)(0xff00 >> kept);
	}
	return network;
}

struct addr addr_single(const struct addr *address)
{
	struct addr single = *address;

	assert(is_sound(address));
	single.prefix = (uint8_t)(addr_len(address) * 8);
	return single;
}

bool addr_contains(const struct addr *a, const struct addr *b)
{
	struct addr network = addr_network(a), other = *b;

	assert(is_sound(a) && is_sound(b));
	if (a->family != b->family)
		return false;
	other.prefix = a->prefix;
	other = addr_network(&other);
	return addr_same(&network, &other);
}

bool addr_is_link_local(const struct addr *address)
{
	return address->family == 6 && address->octets[0] == 0xfe &&
	       (address->octets[1] & 0xc0) == 0x80;
}

bool addr_is_multicast(const struct addr *address)
{
	return address->family == 6 ? address->octets[0] == 0xff
				    : (address->octets[0] & 0xf0) == 0xe0;
}

bool addr_is_unspecified(const struct addr *address)
{
	static const uint8_t zeros[16];

	return memcmp(address->octets, zeros, sizeof(zeros)) == 0;
}
