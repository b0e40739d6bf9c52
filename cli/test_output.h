// SPDX-License-Identifier: Apache-2.0
/* The tables of `orbweaver test`. */
#pragma once

#include <jansson.h>

#include "lib/base/str.h"

/* Append tables of a document of the command; borrowed. */
void test_print(struct strbuf *out, const json_t *members);

/*
 * Of a figure, behind the point: emulated NICs have thousandths of the rate that real ones have.
 */
int test_digits(double value);
