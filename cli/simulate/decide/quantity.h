// SPDX-License-Identifier: Apache-2.0
/*
 * Quantities of resources: "500m", "4", "16Gi". Pure.
 *
 * Source: k8s.io/apimachinery, pkg/api/resource, "Quantity".
 */
#pragma once

#include <jansson.h>

/* In units ("500m" is 0.5); 0 for what is none. Text or number. */
double quantity_read(const json_t *value);

/*
 * What a pod asks for, {resource: number}, new: the sum over its containers, or what one of its
 * init containers asks for where that is more; "pods" is 1. Limits stand for requests that are not
 * there.
 */
json_t *quantity_of_pod(const json_t *pod);

/* What one container asks for of a resource. */
double quantity_of_container(const json_t *container, const char *resource);
