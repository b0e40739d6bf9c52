// SPDX-License-Identifier: Apache-2.0
/* The CustomResourceDefinitions of crds/ and crds/nad/, as they were when the program was built. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/* All of them, a new array. NULL with err: those of yaml_parse_all. */
json_t *definitions_read(struct err *err);
