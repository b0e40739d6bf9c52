// SPDX-License-Identifier: Apache-2.0
/*
 * The coordinator's settings, which stand in a SpiderCoordinator's spec and in a
 * SpiderMultusConfig's spec.coordinator.
 */
#pragma once

#include <jansson.h>

#include "reconcilers/core/problems.h"

/* All rules for the settings, with `where` as their path ("spec" or "spec.coordinator"). */
void coordinator_spec_check(const json_t *settings, const char *where, struct problems *problems);
