// SPDX-License-Identifier: Apache-2.0
/* Strategic merge patches. A part of patch.c, apart because it has rules of its own. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* As patch_object, with the node (shape.h) of the object; NULL: lists are replaced. */
int patch_strategic(const json_t *node, const json_t *object, const json_t *patch, json_t **ret,
		    struct err *err);
