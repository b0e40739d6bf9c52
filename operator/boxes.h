// SPDX-License-Identifier: Apache-2.0
/*
 * Messages between decisions (plan.h, plan_post): what one has made true and another carries on
 * with. Kept in memory only; all of it follows from the cluster anew after a start.
 */
#ifndef ORBWEAVER_OPERATOR_BOXES_H
#define ORBWEAVER_OPERATOR_BOXES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct boxes;

struct boxes *boxes_new(void);
void boxes_free(struct boxes *boxes);

/* Replace what is there; NULL takes it out. Borrows value. New keys come last. */
void boxes_put(struct boxes *boxes, const char *box, const char *key, json_t *value);

/* Borrowed; NULL when there is nothing. */
json_t *boxes_get(const struct boxes *boxes, const char *box, const char *key);

/*
 * { key: value } of a box, in the order in which the keys came; NULL while it is empty. Borrowed.
 */
const json_t *boxes_all(const struct boxes *boxes, const char *box);

/* Put what a box has for the key into the world, as a kind of the box's name. */
void boxes_add(const struct boxes *boxes, json_t *world, const char *box, const char *key);

#endif
