// SPDX-License-Identifier: Apache-2.0
/*
 * What was recorded of the programs that we replace: tests/conformance, or the folder in
 * $CONFORMANCE.
 */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* Return the value in a file of recordings, new; NULL with err. */
json_t *conformance_read(const char *name, struct err *err);

/*
 * Return the cases where we differ on purpose, as { id: reason }, new; NULL with err. A file of
 * tests/conformance with a case per line: id, blank, reason; "#" begins a comment.
 */
json_t *conformance_differences(const char *name, struct err *err);
