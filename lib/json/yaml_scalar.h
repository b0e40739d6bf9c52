// SPDX-License-Identifier: Apache-2.0
/* What a YAML scalar stands for. A part of yaml.c, apart because it is all tables and grammar. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"

/*
 * The value of a scalar that is plain and has no tag, by the rules in yaml.h. Returns new, or NULL
 * with ERR_INVALID "BadYaml" (no position in the text) for a number that JSON cannot hold.
 */
json_t *yaml_scalar_plain(const char *text, struct err *err);

/*
 * The value of a scalar with a tag ("tag:yaml.org,2002:int"); quotes make no difference then.
 * Errors as above.
 */
json_t *yaml_scalar_tagged(const char *tag, const char *text, struct err *err);
