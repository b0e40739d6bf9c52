// SPDX-License-Identifier: Apache-2.0
/*
 * What an API server with our CustomResourceDefinitions makes of objects before anything decides on
 * them: fields that it does not know, values that it refuses. The definitions are those that the
 * program was built with, the schema code is that of `orbweaver simulate`. Rules in CEL are not
 * evaluated. Kinds that have no such definition are not looked at.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/base/own.h"

struct plan_schemas;

struct plan_schemas *plan_schemas_new(void);
void plan_schemas_free(struct plan_schemas *schemas);
OWN_DEFINE(struct plan_schemas, plan_schemas_free)
#define auto_plan_schemas auto_call(plan_schemas_free_p)

/*
 * The object as the server keeps it: without the fields that it does not know. A fault {"path",
 * "message"} is appended for each of them, and for a version that is not served. Returns new.
 */
json_t *plan_schemas_prune(struct plan_schemas *schemas, const json_t *object, json_t *faults);

/*
 * Would the server store this? Of the object as of plan_schemas_prune(), merged into the one that
 * is there. Faults in the server's words are appended to `faults`; false then.
 */
bool plan_schemas_accept(struct plan_schemas *schemas, const json_t *object, json_t *faults);
