// SPDX-License-Identifier: Apache-2.0
/* The subresource scale of workloads and of custom resources. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "cli/simulate/api/resources.h"

/* The Scale of an object: what the subresource shows. Returns new. */
json_t *scale_of(const struct resource *resource, const json_t *object);

/* Set the object's member that spec.replicas of its Scale stands for. */
void scale_put(const struct resource *resource, json_t *object, int64_t replicas);
