// SPDX-License-Identifier: Apache-2.0
/*
 * Counters by name, as drivers have them: a JSON object { "out_of_sequence": 3 }. Names become part
 * of metrics, so a word that cannot be one is left out; so is a value above INT64_MAX, which no
 * counter reaches by counting. Pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

enum {
	COUNTED_NAME_SIZE = 64,
	/* Of one device; mlx5 has some 30 of RDMA, and 100 that we look at of Ethernet. */
	COUNTED_MAX = 1024,
};

/* Add to what is there by that name: several ports are one device. */
void counted_add(json_t *counters, const char *name, uint64_t value);
