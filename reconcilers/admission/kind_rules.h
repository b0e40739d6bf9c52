// SPDX-License-Identifier: Apache-2.0
/*
 * The kinds that users write, and what admission does with each: rules, warnings, defaults. One row
 * per kind; admission.c judges by it, the operator registers its webhooks from it
 * (operator/controllers/webhook_setup.c). Group and version are in reconcilers/core/kinds.h.
 */
#pragma once

#include <jansson.h>

#include "reconcilers/core/problems.h"

struct kind_rules {
	const char *kind; /* the id of reconcilers/core/kinds.h */
	/* What is wrong with the object in this world. */
	void (*check)(const json_t *world, const json_t *object, struct problems *problems);
	/*
	 * What is legal and does less than its author meant; for objects without problems. NULL:
	 * nothing.
	 */
	void (*warn)(const json_t *world, const json_t *object, struct problems *warnings);
	/* What only a change can do wrong. NULL: nothing. */
	void (*check_change)(const json_t *world, const json_t *old, const json_t *object,
			     struct problems *problems);
	/*
	 * The reason of `check` that check_change judges alone when an object changes; NULL: none.
	 */
	const char *judged_by_change;
	/* Fill in defaults: defaults.h. NULL: none. */
	void (*fill)(json_t *object, json_t *spec);
};

/* NULL when users do not write the kind; also for NULL. */
const struct kind_rules *kind_rules_find(const char *kind);

/* All of them, ending with a row whose kind is NULL. */
const struct kind_rules *kind_rules_all(void);
