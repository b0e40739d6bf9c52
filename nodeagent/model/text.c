// SPDX-License-Identifier: Apache-2.0
/*
 * Octets with separators, both ways. The planner and step.c check with these what a NodeState
 * wants, the host code prints with them what the kernel has.
 */
#include "nodeagent/model/text.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"

/*
 * n octets with a separator after every `group` of them, and nothing else: a colon, or, as
 * net.ParseMAC of Go takes it too, a dash throughout.
 */
static bool to_octets(const char *text, size_t n, size_t group, unsigned char *ret)
{
	const char *p = text;
	char separator = strchr(text, '-') ? '-' : ':';

	for (size_t i = 0; i < n; i++) {
		int high, low;

		if (i > 0 && i % group == 0 && *p++ != separator)
			return false;
		high = str_hex_digit(*p);
		if (high < 0)
			return false;
		low = str_hex_digit(p[1]);
		if (low < 0)
			return false;
		ret[i] = (unsigned char)(high << 4 | low);
		p += 2;
	}
	return *p == '\0';
}

bool text_to_mac(const char *text, unsigned char ret[6])
{
	unsigned char octets[6];

	if (!to_octets(text, sizeof(octets), 1, octets))
		return false;
	memcpy(ret, octets, sizeof(octets));
	return true;
}

bool text_to_guid(const char *text, uint64_t *ret)
{
	unsigned char octets[8];
	uint64_t guid = 0;

	if (!to_octets(text, sizeof(octets), 1, octets) &&
	    !to_octets(text, sizeof(octets), 2, octets))
		return false;
	for (size_t i = 0; i < sizeof(octets); i++)
		guid = guid << 8 | octets[i];
	*ret = guid;
	return true;
}

void text_from_octets(const unsigned char *octets, size_t len, char *ret)
{
	static const char digits[] = "0123456789abcdef";

	assert(len > 0);
	for (size_t i = 0; i < len; i++) {
		*ret++ = digits[octets[i] >> 4];
		*ret++ = digits[octets[i] & 15];
		*ret++ = i + 1 < len ? ':' : '\0';
	}
}

void text_from_guid(uint64_t guid, char ret[TEXT_GUID_SIZE])
{
	unsigned char octets[8];

	for (size_t i = 0; i < sizeof(octets); i++)
		octets[i] = (unsigned char)(guid >> (56 - 8 * i));
	text_from_octets(octets, sizeof(octets), ret);
}

bool text_mac_is_zero(const unsigned char mac[6])
{
	return !(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5]);
}

bool text_to_unicast_mac(const char *text, unsigned char ret[6])
{
	unsigned char mac[6];

	if (!text || !text_to_mac(text, mac) || mac[0] & 1 || text_mac_is_zero(mac))
		return false;
	memcpy(ret, mac, sizeof(mac));
	return true;
}
