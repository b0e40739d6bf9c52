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
#ifndef ORBWEAVER_NODEAGENT_HOST_PLAN_CARD_LANES_H
#define ORBWEAVER_NODEAGENT_HOST_PLAN_CARD_LANES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CARD_LANES_NONE SIZE_MAX

struct card_lanes;

/*
 * steps: of a plan; borrowed until card_lanes_free(). NULL is an empty list. in_order: numbers of
 * RDMA devices are given to pods.
 */
struct card_lanes *card_lanes_new(const json_t *steps, bool in_order);
/* Accepts NULL. */
void card_lanes_free(struct card_lanes *lanes);

/*
 * Index of a step that may begin now; CARD_LANES_NONE: there is none before another one is done, or
 * at all. A step for which `may` says false is passed over for good.
 */
size_t card_lanes_next(struct card_lanes *lanes, bool (*may)(const json_t *entry, void *arg),
		       void *arg);
/* The step that card_lanes_next() named runs until card_lanes_done(). */
void card_lanes_begin(struct card_lanes *lanes, size_t index);
void card_lanes_done(struct card_lanes *lanes, size_t index);

/* Steps that run. */
size_t card_lanes_running(const struct card_lanes *lanes);

#endif
