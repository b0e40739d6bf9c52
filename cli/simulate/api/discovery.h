// SPDX-License-Identifier: Apache-2.0
/* Documents about the API itself: which groups, versions and resources are served, and OpenAPI. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cli/simulate/api/path.h"
#include "cli/simulate/api/resources.h"
#include "lib/base/str.h"

/* /api, /apis, a group, or a version. Returns new; NULL: it is not served. */
json_t *discovery_of_path(const struct resources *resources, const struct api_path *path);

/* /version. Returns new. */
json_t *discovery_version(void);

/*
 * /openapi/v2: a Document without definitions, with which kubectl leaves validation to the server:
 * as the protobuf message openapi.v2.Document of google/gnostic when `is_proto`, else as JSON.
 */
void discovery_openapi_v2(bool is_proto, struct strbuf *out);

/* /openapi/v3: the index of group versions; the paths in it answer discovery_openapi_v3_of. */
json_t *discovery_openapi_v3(const struct resources *resources);
/* The document of a group version: schemas of its kinds. Returns new; NULL: it is not served. */
json_t *discovery_openapi_v3_of(const struct resources *resources, const struct api_path *path);
