// SPDX-License-Identifier: Apache-2.0
/*
 * Each table is made of the items of the document, so that both say the same; what is empty is left
 * out.
 */
#include "cli/test_output.h"

#include "cli/pathtest/results.h"
#include "cli/print.h"
#include "lib/json/json.h"

int test_digits(double value)
{
	return value < 0.1 ? 4 : 2;
}

static void put_ends(json_t *row, const json_t *item)
{
	const char *network = json_str_at(item, "network"), *other = json_str_at(item, "toNetwork");

	json_put_str(row, "from", json_str_at(item, "from"));
	json_put_str(row, "to", json_str_at(item, "to"));
	json_put(row, "network",
		 str_eq(network, other) ? json_string(network)
					: json_fmt("%s -> %s", network, other));
}

static void add_comparison(json_t *rows, const json_t *item, const char *measure, const char *unit)
{
	double rdma = json_real_value(json_at(item, measure, "rdma"));
	double tcp = json_real_value(json_at(item, measure, "tcp"));
	json_t *row;

	if (rdma <= 0 && tcp <= 0)
		return;
	row = json_object();
	put_ends(row, item);
	json_put_str(row, "measure", measure);
	if (rdma > 0)
		json_put(row, "rdma", json_fmt("%.*f %s", test_digits(rdma), rdma, unit));
	if (tcp > 0)
		json_put(row, "tcp", json_fmt("%.*f %s", test_digits(tcp), tcp, unit));
	if (rdma > 0 && tcp > 0)
		json_put(row, "ratio",
			 rdma >= tcp ? json_fmt("%.1f : 1", rdma / tcp)
				     : json_fmt("1 : %.1f", tcp / rdma));
	json_array_append_new(rows, row);
}

/* Bandwidth by RDMA in Gb/s; "!": its check failed. */
static void print_matrix(struct strbuf *out, const json_t *items)
{
	json_auto_t *matrix = results_matrix(items, "bandwidth"), *names = json_array();
	const json_t *networks = json_at(matrix, "columns"), *rows = json_at(matrix, "rows");
	bool is_cross = json_at(json_array_get(rows, 0), "network") != NULL;
	struct column columns[3 + RESULTS_COLUMNS_MAX] = {{"FROM", "from"}, {"TO", "to"}};
	size_t n = 2, i, k;
	json_t *row, *cell;

	if (is_cross)
		columns[n++] = (struct column){"NETWORK", "network"};
	json_array_foreach (networks, i, cell) {
		json_array_append_new(names, json_fmt("cell%zu", i));
		columns[n++] = (struct column){json_string_value(cell),
					       json_string_value(json_array_get(names, i))};
	}
	json_array_foreach (rows, i, row)
		json_array_foreach (json_at(row, "cells"), k, cell) {
			double rate = json_real_value(json_at(cell, "value"));
			const char *mark = json_at(cell, "failed") ? " !" : "";

			if (rate > 0 || *mark)
				json_put(row, json_string_value(json_array_get(names, k)),
					 rate > 0
						 ? json_fmt("%.*f%s", test_digits(rate), rate, mark)
						 : json_string("!"));
		}
	if (json_array_size(networks) > 1 || json_array_size(rows) > 1)
		print_part(out, columns, n, rows);
}

static void print_ring(struct strbuf *out, const json_t *ring)
{
	static const struct column columns[] = {
		{"RING", "network"}, {"GB/S", "rate"}, {"SLOWEST FROM", "from"}, {"TO", "to"}};
	json_t *rows = json_at(ring, "rails"), *all = json_object(), *row;
	double bus = json_real_value(json_at(ring, "busGbps"));
	json_auto_t *list = json_deep_copy(rows);
	size_t i;

	json_put_str(all, "network", "bus bandwidth");
	json_put(all, "gbps", json_real(bus));
	json_array_append_new(list, all);
	json_array_foreach (list, i, row) {
		double rate = json_real_value(json_at(row, "gbps"));

		json_put(row, "rate",
			 rate > 0 ? json_fmt("%.*f", test_digits(rate), rate)
				  : json_string("not known"));
	}
	print_part(out, columns, ARRAY_LEN(columns), list);
}

void test_print(struct strbuf *out, const json_t *members)
{
	static const struct column suspect_columns[] = {
		{"FAILED AT", "at"}, {"FAILED", "failed"}, {"PATHS", "paths"}};
	const json_t *items = json_at(members, "items");
	static const struct column check_columns[] = {
		{"FROM", "from"},   {"TO", "to"},       {"NETWORK", "network"},
		{"CHECK", "check"}, {"STATE", "state"}, {"SEEN", "seen"},
	};
	static const struct column columns[] = {
		{"FROM", "from"}, {"TO", "to"},   {"NETWORK", "network"},  {"MEASURE", "measure"},
		{"RDMA", "rdma"}, {"TCP", "tcp"}, {"RDMA : TCP", "ratio"},
	};
	json_auto_t *checks = json_array(), *comparisons = json_array();
	json_t *item, *check;
	size_t i, k;

	json_array_foreach (items, i, item) {
		json_array_foreach (json_at(item, "checks"), k, check) {
			json_t *row = json_copy(check);

			put_ends(row, item);
			json_array_append_new(checks, row);
		}
		add_comparison(comparisons, item, "latency", "us");
		add_comparison(comparisons, item, "bandwidth", "Gb/s");
	}
	print_part(out, check_columns, ARRAY_LEN(check_columns), checks);
	print_part(out, columns, ARRAY_LEN(columns), comparisons);
	print_matrix(out, items);
	if (json_at(members, "ring"))
		print_ring(out, json_at(members, "ring"));
	print_part(out, suspect_columns, ARRAY_LEN(suspect_columns), json_at(members, "suspects"));
}
