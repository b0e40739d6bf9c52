// SPDX-License-Identifier: Apache-2.0
/*
 * Pairs of nodes come in the order of a tournament (circle method), so that as many as possible are
 * disjoint one after the other; each path then takes the first round in which its two NICs are
 * free.
 */
#include "cli/pathtest/rounds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

int path_pattern_read(const char *text, enum path_pattern *ret, struct err *err)
{
	static const char *const names[] = {"rails", "cross", "ring"};

	assert(ret);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (text && !str_eq(text, names[i]))
			continue;
		*ret = (enum path_pattern)i;
		return 0;
	}
	return err_set(err, ERR_INVALID, "BadFlag", "--pattern %.32s: must be rails, cross or ring",
		       text);
}

struct plan {
	struct round_path *paths;
	size_t n, rounds, networks;
	const size_t *nics; /* of each node, for each network */
	/* For each round, node and NIC: it is in use. A round has `ends` of them. */
	bool *busy;
	size_t ends;
};

static void add_path(struct plan *plan, size_t from, size_t to, size_t from_network,
		     size_t to_network, bool takes_turns)
{
	size_t a = from * plan->networks + plan->nics[from * plan->networks + from_network];
	size_t b = to * plan->networks + plan->nics[to * plan->networks + to_network];
	size_t round = 0;

	while (takes_turns && round < plan->rounds &&
	       (plan->busy[round * plan->ends + a] || plan->busy[round * plan->ends + b]))
		round++;
	if (round == plan->rounds) {
		plan->rounds++;
		plan->busy = mem_realloc(plan->busy, plan->rounds * plan->ends);
		memset(plan->busy + round * plan->ends, 0, plan->ends);
	}
	plan->busy[round * plan->ends + a] = plan->busy[round * plan->ends + b] = true;
	plan->paths[plan->n++] = (struct round_path){from, to, from_network, to_network, round};
}

/* In each network, or from each to each; those of one distance are disjoint. */
static void add_pair(struct plan *plan, size_t from, size_t to, bool is_cross)
{
	for (size_t distance = 0; distance < (is_cross ? plan->networks : 1); distance++)
		for (size_t i = 0; i < plan->networks; i++)
			add_path(plan, from, to, i, (i + distance) % plan->networks, true);
}

/* An odd one has a partner that is not there. */
static void add_pairs(struct plan *plan, size_t nodes, bool is_cross)
{
	size_t even = nodes + nodes % 2, turns = even - 1;

	for (size_t turn = 0; turn < turns; turn++)
		for (size_t i = 0; i < even / 2; i++) {
			size_t a = i == 0 ? turns : (turn + i) % turns;
			size_t b = (turn + turns - i) % turns;

			if (a < nodes && b < nodes)
				add_pair(plan, a < b ? a : b, a < b ? b : a, is_cross);
		}
}

static int by_round(const void *a, const void *b)
{
	const struct round_path *x = a, *y = b;
	const size_t left[] = {x->round, x->from, x->to, x->from_network, x->to_network};
	const size_t right[] = {y->round, y->from, y->to, y->from_network, y->to_network};

	for (size_t i = 0; i < ARRAY_LEN(left); i++)
		if (left[i] != right[i])
			return left[i] < right[i] ? -1 : 1;
	return 0;
}

/* The first network of the node with the same NIC stands for it; all that are not known are one. */
static void number_nics(const json_t *nics, size_t networks, size_t *numbers)
{
	for (size_t i = 0; i < json_array_size(nics); i++) {
		const char *nic = json_str_or(json_array_get(nics, i), "");
		size_t first = i - i % networks, other = first;

		while (other < i && !str_eq(nic, json_str_or(json_array_get(nics, other), "")))
			other++;
		numbers[i] = other - first;
	}
}

static size_t paths_of(enum path_pattern pattern, size_t nodes, size_t networks)
{
	return (pattern == PATTERN_RING ? nodes : nodes * (nodes - 1) / 2) *
	       (pattern == PATTERN_CROSS ? networks * networks : networks);
}

int rounds_check(enum path_pattern pattern, size_t nodes, size_t networks, struct err *err)
{
	if (nodes <= PATHTEST_PATHS_MAX && networks <= PATHTEST_PATHS_MAX &&
	    paths_of(pattern, nodes, networks) <= PATHTEST_PATHS_MAX)
		return 0;
	return err_set(err, ERR_INVALID, "TooManyPaths",
		       "%zu nodes and %zu networks have more than %d paths: name fewer", nodes,
		       networks, PATHTEST_PATHS_MAX);
}

struct round_path *rounds_plan(enum path_pattern pattern, size_t nodes, size_t networks,
			       const json_t *nics, size_t *ret_n)
{
	struct plan plan = {.networks = networks, .ends = nodes * networks};
	size_t *numbers;

	assert(nodes >= 2 && networks > 0 && json_array_size(nics) == plan.ends && ret_n &&
	       rounds_check(pattern, nodes, networks, NULL) == 0);
	numbers = mem_calloc(plan.ends, sizeof(*numbers));
	number_nics(nics, networks, numbers);
	plan.nics = numbers;
	plan.paths = mem_calloc(paths_of(pattern, nodes, networks), sizeof(*plan.paths));
	if (pattern == PATTERN_RING)
		for (size_t i = 0; i < plan.ends; i++)
			add_path(&plan, i / networks, (i / networks + 1) % nodes, i % networks,
				 i % networks, false);
	else
		add_pairs(&plan, nodes, pattern == PATTERN_CROSS);
	qsort(plan.paths, plan.n, sizeof(*plan.paths), by_round);
	mem_free(plan.busy);
	mem_free(numbers);
	*ret_n = plan.n;
	return plan.paths;
}
