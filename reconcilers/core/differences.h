// SPDX-License-Identifier: Apache-2.0
/* Where two values differ, place by place. */
#pragma once

#include <jansson.h>

/*
 * [{ "path", "before", "after" }], new: values as JSON text, absent where there is none. A path is
 * "spec.interfaces[0000:3b:00.0].numVfs": items of lists go by their type, pciAddress or name,
 * where all of them have one of their own, else by their place. A member that is null is none.
 * Either may be NULL.
 */
json_t *differences(const json_t *before, const json_t *after);

/* One of them for people, long values clipped: "spec.numVfs: 2 -> 4". Returns a new string. */
json_t *differences_text(const json_t *difference);
