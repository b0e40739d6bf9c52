// SPDX-License-Identifier: Apache-2.0
/*
 * What the results of `orbweaver test` say together: a matrix, what is wrong on all of its paths,
 * and the bandwidth of a ring. Items are those of the document (cli/test.c). Pure; items may come
 * from a file, so nothing in them is trusted.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/* Columns of a matrix; networks beyond are left out. */
#define RESULTS_COLUMNS_MAX 32

/* Did a check of the item fail (check NULL: any)? What is "skipped" has not. */
bool results_has_failed(const json_t *item, const char *check);

/*
 * { "columns": [network], "rows": [{ "from", "to", "network", "cells": [{ "value", "failed" }] }]
 * }, new. A row for each pair of nodes, and for each network of the client where paths lead from
 * network to network, which "network" says; a column for each network of the server. measure:
 * "bandwidth" (Gbit/s) or "latency" (microseconds), by RDMA. Without "value" it is not known;
 * "failed": its check did. An empty cell: there is no such path.
 */
json_t *results_matrix(const json_t *items, const char *measure);

/*
 * What failed paths have in common, widest first, each path explained once: [ { "at": "node w2",
 * "failed": 7, "paths": 7 } ], new. A node, a network or both, all of whose paths failed, two at
 * least; else the path.
 */
json_t *results_suspects(const json_t *items);

/* { "bandwidth", "latency": as above, "suspects" }: what a report shows of them; new. */
json_t *results_picture(const json_t *items);

/*
 * Of a ring: { "rails": [{ "network", "from", "to": the slowest link, "gbps" }], "busGbps" }, new.
 * Each network is as fast as its slowest link, all together are busGbps: the bus bandwidth of an
 * all-reduce in a ring. It is absent when the bandwidth of a link is not known.
 */
json_t *results_ring(const json_t *items);
