// SPDX-License-Identifier: Apache-2.0
/* Members of an object in an order that does not depend on how it was made. */
#pragma once

#include <jansson.h>

/*
 * The keys of an object, sorted by bytes as json_text() sorts them; none for NULL. The keys are
 * borrowed from the object. Returns new; free() the array.
 */
const char **json_sorted_keys(const json_t *object, size_t *ret_n);
