// SPDX-License-Identifier: Apache-2.0
/*
 * Which steps of a plan may run side by side. Pure.
 *
 * Cards are independent of each other: making VFs takes the firmware of one card seconds, while the
 * others rest. So each card is a lane, whose steps run one after the other in the plan's order, and
 * lanes run side by side. Both ports of a card are one lane: they share its firmware.
 *
 * Two things keep the plan's order all the same. A step of the node itself (a module, the mode of
 * RDMA) waits for all before it and has all behind it wait. And drivers that start number RDMA
 * devices in order of arrival: where pods are given these numbers, drivers start in the plan's
 * order, so that they are the same after a boot.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PARALLEL_NICS_NONE SIZE_MAX

struct parallel_nics;

/*
 * steps: of a plan; borrowed until parallel_nics_free(). NULL is an empty list. in_order: numbers
 * of RDMA devices are given to pods.
 */
struct parallel_nics *parallel_nics_new(const json_t *steps, bool in_order);
/* Accepts NULL. */
void parallel_nics_free(struct parallel_nics *lanes);

/*
 * Index of a step that may begin now; PARALLEL_NICS_NONE: there is none before another one is done,
 * or at all. A step for which `may` says false is passed over for good.
 */
size_t parallel_nics_next(struct parallel_nics *lanes, bool (*may)(const json_t *entry, void *arg),
			  void *arg);
/* The step that parallel_nics_next() named runs until parallel_nics_done(). */
void parallel_nics_begin(struct parallel_nics *lanes, size_t index);
void parallel_nics_done(struct parallel_nics *lanes, size_t index);

/* Steps that run. */
size_t parallel_nics_running(const struct parallel_nics *lanes);
