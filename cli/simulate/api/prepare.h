// SPDX-License-Identifier: Apache-2.0
/*
 * What the server itself puts into objects of built-in kinds: defaults, and what a new one's status
 * begins with. As much as clients here look at; pure but for the time.
 */
#pragma once

#include <jansson.h>

#include "cli/simulate/api/resources.h"

/* Fill in what is absent, in place. */
void prepare_defaults(const struct resource *resource, json_t *object);

/* The status that a new object begins with, in place of any that the client sent. */
void prepare_new(const struct resource *resource, json_t *object);

/* Append causes for what a built-in kind must not be without. */
void prepare_validate(const struct resource *resource, const json_t *object, json_t *causes);

/*
 * Append a cause for each immutable field that changed: a pod's node and containers, a claim's
 * selector, a Secret or ConfigMap that says that it is immutable.
 */
void prepare_validate_update(const struct resource *resource, const json_t *live,
			     const json_t *object, json_t *causes);

/* The conditions of a CustomResourceDefinition that is served. */
void prepare_established(json_t *definition);
