// SPDX-License-Identifier: Apache-2.0
/*
 * pool_config.c reads a pool's block with this, node_decision.c makes the first GUID of each PF
 * with it, and the agent counts up from there. All of it is arithmetic on octets.
 */
#include "reconcilers/sriov/sriov_guid.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

#define BLOCK_SHIFT 56
#define BLOCK_SIZE  (UINT64_C(1) << BLOCK_SHIFT)
#define BLOCK_KIND  0x3 /* of the block octet: bit 0 a group, bit 1 locally administered */
#define BLOCK_OURS  0x2

#define MAC_OCTETS   6
#define GUID_OCTETS  8
#define IPOIB_OCTETS 20
#define OCTETS_MAX   IPOIB_OCTETS

#define QUOTE_MAX 64
#define EXAMPLE   "02:00:00:00:00:00:00:00"

/* How many octets "aa:bb:…" has; 0 when it is no such text or has more than OCTETS_MAX. */
static size_t parse_octets(const char *text, uint8_t ret[OCTETS_MAX])
{
	size_t n = 0;

	for (; text && n < OCTETS_MAX; text += 3) {
		int high = str_hex_digit(text[0]);
		int low = high < 0 ? -1 : str_hex_digit(text[1]);

		if (low < 0)
			return 0;
		ret[n++] = (uint8_t)(high << 4 | low);
		if (text[2] == '\0')
			return n;
		if (text[2] != ':')
			return 0;
	}
	return 0;
}

static uint64_t number_of(const uint8_t *octets, size_t n)
{
	uint64_t value = 0;

	for (size_t i = 0; i < n; i++)
		value = value << 8 | octets[i];
	return value;
}

bool guid_parse(const char *text, uint64_t *ret)
{
	uint8_t octets[OCTETS_MAX];

	if (parse_octets(text, octets) != GUID_OCTETS)
		return false;
	*ret = number_of(octets, GUID_OCTETS);
	return true;
}

void guid_text(uint64_t guid, char ret[GUID_TEXT_SIZE])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < GUID_OCTETS; i++) {
		uint8_t octet = (uint8_t)(guid >> (BLOCK_SHIFT - 8 * i));

		ret[3 * i] = digits[octet >> 4];
		ret[3 * i + 1] = digits[octet & 0xf];
		ret[3 * i + 2] = i + 1 < GUID_OCTETS ? ':' : '\0';
	}
}

/* ---- the range of a pool --------------------------------------------------------------------- */

static bool complain(struct problems *problems, const char *field, const char *what)
{
	if (problems)
		problem_add(problems, "BadGuidPool", field,
			    "%s, must be eight octets like " EXAMPLE, what);
	return false;
}

static bool read_end(const json_t *guid_pool, const char *key, uint64_t *ret,
		     struct problems *problems)
{
	const json_t *value = json_at(guid_pool, key);
	const char *text = json_str_or(value, "");
	auto_free char *field = str_printf("spec.guidPool.%s", key);
	auto_free char *quoted =
		str_printf("\"%.*s\"", (int)str_clip(text, strlen(text), QUOTE_MAX), text);

	if (guid_parse(text, ret))
		return true;
	if (!value)
		return complain(problems, field, "missing");
	return complain(problems, field, json_is_string(value) ? quoted : json_type_words(value));
}

static bool find_block(uint64_t start, uint64_t end, int *ret)
{
	for (uint64_t block = BLOCK_OURS; block <= UINT8_MAX; block += BLOCK_KIND + 1) {
		uint64_t first = block << BLOCK_SHIFT;

		if (first >= start && first + (BLOCK_SIZE - 1) <= end) {
			*ret = (int)block;
			return true;
		}
	}
	return false;
}

bool guid_pool_block(const json_t *guid_pool, int *ret, struct problems *problems)
{
	static const char field[] = "spec.guidPool";
	uint64_t start = 0, end = 0;
	bool start_is_good, end_is_good;

	*ret = GUID_BLOCK_NONE;
	if (!guid_pool || json_is_null(guid_pool))
		return true;
	if (!json_is_object(guid_pool)) {
		if (problems)
			problem_add(problems, "BadGuidPool", field,
				    "%s, must be an object with rangeStart and rangeEnd",
				    json_type_words(guid_pool));
		return false;
	}
	start_is_good = read_end(guid_pool, "rangeStart", &start, problems);
	end_is_good = read_end(guid_pool, "rangeEnd", &end, problems);
	if (!start_is_good || !end_is_good)
		return false;
	if (find_block(start, end, ret))
		return true;
	if (problems && end < start)
		problem_add(problems, "BadGuidPool", field,
			    "rangeEnd is lower than rangeStart, exchange them");
	else if (problems)
		problem_add(problems, "GuidRangeTooSmall", field,
			    "%" PRIu64 " GUIDs are available, a whole block of %" PRIu64
			    " is needed, for each PF takes its own by its MAC address; give it all "
			    "that begins with one octet of 02, 06, 0a, 0e, 12, ..., fe, for "
			    "example " EXAMPLE " to 02:ff:ff:ff:ff:ff:ff:ff",
			    end - start + 1, BLOCK_SIZE);
	return false;
}

/* ---- the GUIDs of a PF ----------------------------------------------------------------------- */

/* The MAC address that a GUID was made from, in its place. */
static bool mac_from_guid(uint8_t *guid)
{
	bool is_mellanox = guid[3] == 0x03 && guid[4] == 0x00;
	bool is_eui64 = guid[3] == 0xff && guid[4] == 0xfe;

	memmove(guid + 3, guid + 5, 3);
	return is_mellanox || is_eui64;
}

bool guid_first_of_pf(int block, const char *mac, uint64_t *ret)
{
	uint8_t octets[OCTETS_MAX];
	size_t n = parse_octets(mac, octets);
	const uint8_t *address = octets;
	uint64_t number;

	assert(block >= 0 && block <= UINT8_MAX);
	assert(block >= 0 && block <= UINT8_MAX);
	if (n == IPOIB_OCTETS) {
		uint8_t *guid = octets + IPOIB_OCTETS - GUID_OCTETS;

		if (!mac_from_guid(guid))
			return false;
		address = guid;
	} else if (n != MAC_OCTETS) {
		return false;
	}
	number = number_of(address, MAC_OCTETS);
	if (number == 0)
		return false;
	*ret = (uint64_t)block << BLOCK_SHIFT | number << 8;
	return true;
}
