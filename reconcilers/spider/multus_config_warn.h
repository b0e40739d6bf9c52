// SPDX-License-Identifier: Apache-2.0
/* Warnings about SpiderMultusConfigs: nothing here keeps a config from being rendered. */
#pragma once

#include <jansson.h>

#include "reconcilers/core/problems.h"
#include "reconcilers/spider/multus_config_check.h"

/*
 * What is accepted but will not do what it seems to say (a bond with the same port twice, a custom
 * configuration without a plugin, contradicting old and new fields). For a config without problems,
 * and what it is rendered to.
 */
void multus_config_warn(const json_t *object, const struct multus_rendering *rendering,
			struct problems *warnings);

/*
 * Named pools, the resource and interfaces of nodes that do not exist: PoolMissing,
 * ResourceMissing, MasterMissing; pools of the other family: PoolOfOtherFamily. For a config
 * without problems. World: as in multus_config.h.
 */
void multus_config_warn_missing(const json_t *world, const json_t *object,
				struct problems *warnings);
