// SPDX-License-Identifier: Apache-2.0
/* What the files of this folder see of a compiled schema. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/map.h"

struct schema {
	json_t *root;        /* ours, with ObjectMeta in it; see shape.h */
	struct map patterns; /* text of a pattern to struct pattern */
	bool is_builtin;     /* members that are not in the table are fields of structs */
};
