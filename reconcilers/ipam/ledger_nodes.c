// SPDX-License-Identifier: Apache-2.0
/*
 * A ledger (ledger.c) calls this when its text has become large: writing takes the nodes out of the
 * records, reading puts them back if the checksum fits.
 */
#include "reconcilers/ipam/ledger_nodes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

/* None that JSON, or Go's way to write it, has more than one byte for, nor a separator. */
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
			     "-_!#$%'()*+./:;=?@[]^`{|}~";

enum { BASE = sizeof(digits) - 1, NODES_MAX = BASE * BASE - 1 };

/* An empty one (ledger_mark_unjudged()): no node has this name. */
#define EMPTY "-"

static uint32_t checksum(const char *text)
{
	return (uint32_t)str_hash(text, strlen(text));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The addresses as json_text() sorts them. */
static const char **sorted_addresses(const json_t *records)
{
	const char **addresses = mem_calloc(json_object_size(records) + 1, sizeof(*addresses));
	const char *address;
	json_t *record;
	size_t n = 0;

	json_each (records, address, record)
		addresses[n++] = address;
	qsort(addresses, n, sizeof(*addresses), by_text);
	return addresses;
}

/* The number of a node, a new one at first; 0: it has none, or there are too many. */
static json_int_t number_of(json_t *numbers, const char *node, struct strbuf *names)
{
	json_int_t number;

	if (!node)
		return 0;
	node = *node ? node : EMPTY;
	number = json_integer_value(json_object_get(numbers, node));
	if (number || json_object_size(numbers) >= NODES_MAX)
		return number;
	number = (json_int_t)json_object_size(numbers) + 1;
	json_put_int(numbers, node, number);
	strbuf_addf(names, "%s%s", names->len ? "," : "", node);
	return number;
}

char *ledger_nodes_write(const json_t *records, const char *text)
{
	auto_free const char **addresses = sorted_addresses(records);
	auto_strbuf struct strbuf names = {0}, codes = {0};
	json_auto_t *numbers = json_object();

	for (size_t i = 0; i < json_object_size(records); i++) {
		const json_t *record = json_object_get(records, addresses[i]);
		json_int_t number = number_of(numbers, json_str_at(record, "node"), &names);

		strbuf_addc(&codes, digits[number / BASE]);
		strbuf_addc(&codes, digits[number % BASE]);
	}
	return str_printf("%08" PRIx32 " %s %s", checksum(text), strbuf_str(&names),
			  strbuf_str(&codes));
}

/* -1: it is no number. */
static int value_of(const char *code)
{
	const char *high = *code ? strchr(digits, code[0]) : NULL;
	const char *low = high && code[1] ? strchr(digits, code[1]) : NULL;

	return low ? (int)(high - digits) * BASE + (int)(low - digits) : -1;
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
	const char *address;
	json_t *record;

	if (!codes || !str_starts(nodes, sum) ||
	    strlen(codes + 1) != LEDGER_NODES_PER_RECORD * json_object_size(records))
		return;
	list = split_names(names + 1, (size_t)(codes - names - 1));
	codes++;
	json_each (records, address, record) {
		int number = value_of(codes);
		const char *name =
			number > 0 ? json_string_value(json_array_get(list, (size_t)number - 1))
				   : NULL;

		json_put_str(record, "node", str_eq(name, EMPTY) ? "" : name);
		codes += LEDGER_NODES_PER_RECORD;
	}
}
