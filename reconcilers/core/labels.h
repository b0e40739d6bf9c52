// SPDX-License-Identifier: Apache-2.0
/*
 * Do labels, as they stand in metadata.labels, meet a selector? Whether a selector is a good one:
 * names.h.
 *
 * Source: Kubernetes API reference, "LabelSelector" (meta/v1).
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * Does a selector that label_selector_check accepted select these labels? NULL and {} select
 * everything.
 */
bool label_selector_matches(const json_t *selector, const json_t *labels);
