// SPDX-License-Identifier: Apache-2.0
/*
 * A ledger (ledger.c) calls this when its text has become large: writing takes the nodes out of the
 * records, reading puts them back if the checksum fits.
 */
#include "reconcilers/ipam/ledger_nodes.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"

/* Six bits each; none that JSON, or Go's way to write it, has more than one byte for. */
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";

enum { DIGIT_BITS = 6, CHECKSUM_LEN = 8, NODES_MAX = UINT16_MAX };

/* An empty one (ledger_mark_unjudged()): no node has this name. */
#define EMPTY "-"

static uint32_t checksum(const char *text)
{
	return (uint32_t)str_hash(text, strlen(text));
}

/* The number of a node, a new one at first; 0: it has none, or there are too many. */
static uint16_t number_of(json_t *numbers, const char *node, struct strbuf *names)
{
	uint16_t number;

	if (!node)
		return 0;
	node = *node ? node : EMPTY;
	number = (uint16_t)json_integer_value(json_object_get(numbers, node));
	if (number || json_object_size(numbers) >= NODES_MAX)
		return number;
	number = (uint16_t)(json_object_size(numbers) + 1);
	json_put_int(numbers, node, number);
	strbuf_addf(names, "%s%s", names->len ? "," : "", node);
	return number;
}

/* Of a number up to `nodes`. */
static unsigned bits_for(size_t nodes)
{
	unsigned bits = 0;

	while (nodes >> bits)
		bits++;
	return bits;
}

static size_t codes_len(size_t records, size_t nodes)
{
	return (records * bits_for(nodes) + DIGIT_BITS - 1) / DIGIT_BITS;
}

size_t ledger_nodes_bytes(size_t records, size_t nodes)
{
	size_t n = nodes < NODES_MAX ? nodes : NODES_MAX;

	/* Two blanks, and a comma after each name. */
	return CHECKSUM_LEN + 2 + n + codes_len(records, n);
}

/* The numbers as text. Returns new. */
static char *pack(const uint16_t *numbers, size_t n, size_t nodes)
{
	auto_strbuf struct strbuf codes = {0};
	unsigned width = bits_for(nodes), held = 0;
	uint32_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		assert(numbers[i] >> width == 0);
		bits = bits << width | numbers[i];
		for (held += width; held >= DIGIT_BITS; held -= DIGIT_BITS)
			strbuf_addc(&codes, digits[bits >> (held - DIGIT_BITS) & 63]);
		bits &= (1U << held) - 1;
	}
	if (held)
		strbuf_addc(&codes, digits[bits << (DIGIT_BITS - held) & 63]);
	return strbuf_take(&codes);
}

/* Reads numbers one after the other. */
struct unpacking {
	const char *next;
	unsigned width, held;
	uint32_t bits;
};

/* -1: there is no number. */
static int unpack(struct unpacking *from)
{
	int number;

	for (; from->held < from->width; from->held += DIGIT_BITS) {
		const char *digit = *from->next ? strchr(digits, *from->next++) : NULL;

		if (!digit)
			return -1;
		from->bits = from->bits << DIGIT_BITS | (uint32_t)(digit - digits);
	}
	from->held -= from->width;
	number = (int)(from->bits >> from->held);
	from->bits &= (1U << from->held) - 1;
	return number;
}

char *ledger_nodes_write(const json_t *records, const char *text)
{
	size_t n = 0;
	auto_free const char **addresses = json_sorted_keys(records, &n);
	auto_free uint16_t *numbers = mem_calloc(n + 1, sizeof(*numbers));
	auto_strbuf struct strbuf names = {0};
	json_auto_t *nodes = json_object();
	auto_free char *codes = NULL;

	assert(text);
	for (size_t i = 0; i < n; i++) {
		const json_t *record = json_object_get(records, addresses[i]);

		numbers[i] = number_of(nodes, json_str_at(record, "node"), &names);
	}
	codes = pack(numbers, json_object_size(records), json_object_size(nodes));
	return str_printf("%08" PRIx32 " %s %s", checksum(text), strbuf_str(&names), codes);
}

/* "a,b,c" as an array, new. */
static json_t *split_names(const char *names, size_t len)
{
	auto_free char *copy = str_ndup(names, len);
	char *rest = copy, *name;
	json_t *list = json_array();

	while (len && (name = strsep(&rest, ",")))
		json_array_append_new(list, json_string(name));
	return list;
}

void ledger_nodes_read(const char *nodes, const char *text, json_t *records)
{
	const char *names = nodes ? strchr(nodes, ' ') : NULL;
	const char *codes = names ? strchr(names + 1, ' ') : NULL;
	auto_free char *sum = str_printf("%08" PRIx32 " ", checksum(text));
	json_auto_t *list = NULL;
	struct unpacking from = {0};
	const char *address;
	json_t *record;

	assert(text && json_is_object(records));
	if (!codes || !str_starts(nodes, sum))
		return;
	list = split_names(names + 1, (size_t)(codes - names - 1));
	if (json_array_size(list) > NODES_MAX ||
	    strlen(codes + 1) != codes_len(json_object_size(records), json_array_size(list)))
		return;
	from = (struct unpacking){.next = codes + 1, .width = bits_for(json_array_size(list))};
	json_each (records, address, record) {
		int number = unpack(&from);
		const char *name =
			number > 0 ? json_string_value(json_array_get(list, (size_t)number - 1))
				   : NULL;

		/* One that is no record is refused by who reads records. */
		if (json_is_object(record))
			json_put_str(record, "node", str_eq(name, EMPTY) ? "" : name);
	}
}
