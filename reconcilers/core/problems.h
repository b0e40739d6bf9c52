// SPDX-License-Identifier: Apache-2.0
/*
 * What is wrong with one object, collected: a user who made three mistakes reads about three, not
 * about the first.
 *
 * The checks of all kinds (multus_config_check, ip_pool_check, …) append here; reconcilers turn the
 * list into a condition, an admission webhook can turn the same list into a refusal.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/own.h"

/*
 * Problems beyond this many are counted, not kept: a pool with a million bad ranges makes no
 * gigabyte of messages.
 */
#define PROBLEMS_MAX 32

struct problems {
	json_t *list; /* array of {"reason", "field", "message"}, NULL while empty */
	size_t total; /* those not kept included */
};

void problems_done(struct problems *p);
#define auto_problems auto_call(problems_done)

/*
 * reason: CamelCase, for a condition. field: path as the user writes it ("spec.macvlan.master[1]").
 * The text says what the value is and what would be right; it is one line without a full stop.
 */
void problem_add(struct problems *p, const char *reason, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/*
 * The same from an error whose text starts with the field already (the getters of lib/json/json.h).
 */
void problem_add_err(struct problems *p, const char *field, const struct err *err);

/* One of another list's entries, copied. */
void problem_copy(struct problems *p, const json_t *problem);

/* The first problem's reason, "" when there is none. Borrowed. */
const char *problems_reason(const struct problems *p);

/* "field: message; field: message" of all problems in order. Returns new; free(). */
char *problems_text(const struct problems *p);
