// SPDX-License-Identifier: Apache-2.0
/*
 * In a ring all-reduce of n ranks each link carries 2 (n - 1) / n of the data, and bus bandwidth is
 * the data's rate times that factor: the rate of the links (nccl-tests, PERFORMANCE.md).
 */
#include "cli/pathtest/results.h"

#include <assert.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

bool results_has_failed(const json_t *item, const char *check)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_at(item, "checks"), i, row)
		if (str_eq(json_str_at(row, "state"), "failed") &&
		    (!check || str_eq(json_str_at(row, "check"), check)))
			return true;
	return false;
}

static const char *text_of(const json_t *item, const char *member)
{
	return json_str_or(json_at(item, member), "?");
}

/* ---- matrix ---------------------------------------------------------------------------------- */

/* Its place in the list, where it is put if there is room; the list's length: there was none. */
static size_t place_in(json_t *list, const char *text)
{
	json_t *value;
	size_t i;

	json_array_foreach (list, i, value)
		if (str_eq(json_string_value(value), text))
			return i;
	if (i < RESULTS_COLUMNS_MAX)
		json_array_append_new(list, json_string(text));
	return i;
}

static bool is_across(const json_t *item)
{
	return !str_eq(text_of(item, "network"), text_of(item, "toNetwork"));
}

/* The item's row, with as many cells as there are columns. */
static json_t *row_of(json_t *rows, const json_t *item, bool is_cross, size_t columns)
{
	auto_free char *key = str_printf("%s\n%s\n%s", text_of(item, "from"), text_of(item, "to"),
					 is_cross ? text_of(item, "network") : "");
	json_t *row = json_need_object(rows, key), *cells = json_at(row, "cells");

	if (!cells) {
		json_put_str(row, "from", text_of(item, "from"));
		json_put_str(row, "to", text_of(item, "to"));
		if (is_cross)
			json_put_str(row, "network", text_of(item, "network"));
		json_put(row, "cells", json_array());
		cells = json_at(row, "cells");
	}
	while (json_array_size(cells) < columns)
		json_array_append_new(cells, json_object());
	return row;
}

json_t *results_matrix(const json_t *items, const char *measure)
{
	const char *check = str_eq(measure, "latency") ? "ib_read_lat" : "ib_write_bw", *key;
	json_t *matrix = json_object(), *columns = json_array(), *list = json_array(), *item, *row;
	json_auto_t *rows = json_object();
	bool is_cross = false;
	size_t i;

	assert(measure);
	json_array_foreach (items, i, item) {
		is_cross = is_cross || is_across(item);
		(void)place_in(columns, text_of(item, "toNetwork"));
	}
	json_array_foreach (items, i, item) {
		size_t place = place_in(columns, text_of(item, "toNetwork"));
		double value = json_number_value(json_at(item, measure, "rdma"));
		json_t *cell;

		row = row_of(rows, item, is_cross, json_array_size(columns));
		cell = json_array_get(json_at(row, "cells"), place);
		if (cell && value > 0)
			json_put(cell, "value", json_real(value));
		if (cell && results_has_failed(item, check))
			json_put_bool(cell, "failed", true);
	}
	json_each (rows, key, row)
		json_array_append(list, row);
	json_put(matrix, "columns", columns);
	json_put(matrix, "rows", list);
	return matrix;
}

/* ---- suspects -------------------------------------------------------------------------------- */

/* In this order: what is wrong with a whole network, a whole node, the node's NIC of a network. */
enum level {
	LEVEL_NETWORK,
	LEVEL_NODE,
	LEVEL_END,
	LEVEL_PATH,
};

/* With the rail, where it is known. */
static char *network_text(const json_t *item, bool is_server)
{
	const char *network = text_of(item, is_server ? "toNetwork" : "network");
	const json_t *rail = json_at(item, is_server ? "toRail" : "fromRail");

	return json_is_integer(rail) ? str_printf("network %s (rail %lld)", network,
						  (long long)json_integer_value(rail))
				     : str_printf("network %s", network);
}

static char *group_text(const json_t *item, enum level level, bool is_server)
{
	const char *from = text_of(item, "from"), *to = text_of(item, "to");
	/* A path has no ends of its own. */
	auto_free char *network = network_text(item, is_server && level != LEVEL_PATH);

	switch (level) {
	case LEVEL_NETWORK:
		return str_printf("network %s", text_of(item, is_server ? "toNetwork" : "network"));
	case LEVEL_NODE:
		return str_printf("node %s", is_server ? to : from);
	case LEVEL_END:
		return str_printf("node %s, %s", is_server ? to : from, network);
	case LEVEL_PATH:
		break;
	}
	return str_printf("%s -> %s, %s%s%s", from, to, network, is_across(item) ? " -> " : "",
			  is_across(item) ? text_of(item, "toNetwork") : "");
}

static void count_in(json_t *groups, const char *text, bool has_failed)
{
	json_t *group = json_need_object(groups, text);

	json_put_str(group, "at", text);
	json_put_int(group, "paths", json_integer_value(json_at(group, "paths")) + 1);
	json_put_int(group, "failed", json_integer_value(json_at(group, "failed")) + has_failed);
}

/* The groups of both ends of the item; one, if they are the same. */
static size_t groups_of(const json_t *item, enum level level, char *texts[2])
{
	texts[0] = group_text(item, level, false);
	texts[1] = group_text(item, level, true);
	return str_eq(texts[0], texts[1]) ? 1 : 2;
}

/* Items of groups that failed as a whole are explained by them. */
static void add_level(const json_t *items, enum level level, bool *is_explained, json_t *suspects)
{
	json_auto_t *groups = json_object();
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item) {
		char *texts[2];
		size_t n = groups_of(item, level, texts);

		for (size_t k = 0; k < n; k++)
			count_in(groups, texts[k], results_has_failed(item, NULL));
		mem_free(texts[0]);
		mem_free(texts[1]);
	}
	json_array_foreach (items, i, item) {
		char *texts[2];
		size_t n = groups_of(item, level, texts);
		bool is_new = results_has_failed(item, NULL) && !is_explained[i];

		for (size_t k = 0; k < n && is_new; k++) {
			json_t *group = json_object_get(groups, texts[k]);
			int64_t failed = json_integer_value(json_at(group, "failed"));

			if (level != LEVEL_PATH &&
			    (failed < 2 || failed < json_integer_value(json_at(group, "paths"))))
				continue;
			is_explained[i] = true;
			if (!json_at(group, "is_said"))
				json_array_append_new(suspects, json_copy(group));
			json_put_bool(group, "is_said", true);
		}
		mem_free(texts[0]);
		mem_free(texts[1]);
	}
}

json_t *results_suspects(const json_t *items)
{
	size_t n = json_array_size(items), failed = 0, i;
	auto_free bool *is_explained = mem_calloc(n + 1, sizeof(*is_explained));
	json_t *suspects = json_array(), *item;

	json_array_foreach (items, i, item)
		failed += results_has_failed(item, NULL);
	if (failed == n && n > 1)
		json_array_append_new(suspects,
				      json_pack("{s:s, s:I, s:I}", "at", "all paths", "failed",
						(json_int_t)n, "paths", (json_int_t)n));
	else
		for (enum level level = LEVEL_NETWORK; level <= LEVEL_PATH; level++)
			add_level(items, level, is_explained, suspects);
	return suspects;
}

json_t *results_picture(const json_t *items)
{
	return json_pack("{s:o, s:o, s:o}", "bandwidth", results_matrix(items, "bandwidth"),
			 "latency", results_matrix(items, "latency"), "suspects",
			 results_suspects(items));
}

/* ---- ring ------------------------------------------------------------------------------------ */

json_t *results_ring(const json_t *items)
{
	json_t *ring = json_object(), *rails = json_array(), *item, *rail;
	json_auto_t *slowest = json_object();
	bool is_known = json_array_size(items) > 0;
	const char *network;
	double sum = 0;
	size_t i;

	json_array_foreach (items, i, item) {
		double rate = json_number_value(json_at(item, "bandwidth", "rdma"));

		rail = json_need_object(slowest, text_of(item, "network"));
		is_known = is_known && rate > 0;
		if (json_at(rail, "gbps") && json_number_value(json_at(rail, "gbps")) <= rate)
			continue;
		json_put_str(rail, "network", text_of(item, "network"));
		json_put_str(rail, "from", text_of(item, "from"));
		json_put_str(rail, "to", text_of(item, "to"));
		json_put(rail, "gbps", json_real(rate));
	}
	json_each (slowest, network, rail) {
		sum += json_number_value(json_at(rail, "gbps"));
		json_array_append(rails, rail);
	}
	json_put(ring, "rails", rails);
	if (is_known)
		json_put(ring, "busGbps", json_real(sum));
	return ring;
}
