// SPDX-License-Identifier: Apache-2.0
/*
 * What is wrong with a SpiderMultusConfig, and what it refers to. The same answers for the
 * reconciler, for admission and for injection.
 */
#ifndef ORBWEAVER_RECONCILERS_SPIDER_MULTUS_CONFIG_CHECK_H
#define ORBWEAVER_RECONCILERS_SPIDER_MULTUS_CONFIG_CHECK_H

#include <jansson.h>
#include <stdbool.h>

#include "reconcilers/core/problems.h"

/*
 * All that keeps a config from being rendered and written: its annotations and spec, and conflicts
 * with others in the world. An object without creationTimestamp (it is being admitted) is younger
 * than all.
 */
void multus_config_check(const json_t *world, const json_t *object, struct problems *problems);

/*
 * What is accepted but will not do what it seems to say (a bond with the same port twice, a custom
 * configuration without a plugin, contradicting old and new fields). For a config without problems.
 */
void multus_config_warn(const json_t *object, struct problems *warnings);

/*
 * What keeps the config from being given to pods by annotation: its type, and what its block has to
 * name. `rdma`: by CNI_ANNOTATION_RDMA_INJECT, which needs an RDMA resource. Part of
 * multus_config_check for configs with the annotation; a label set by hand brings one here that was
 * never checked.
 */
void multus_config_check_injection(const json_t *object, bool rdma, struct problems *problems);

/*
 * Named pools, the resource and interfaces of nodes that do not exist: PoolMissing,
 * ResourceMissing, MasterMissing; pools of the other family: PoolOfOtherFamily. For a config
 * without problems. World: as in multus_config.h.
 */
void multus_config_warn_missing(const json_t *world, const json_t *object,
				struct problems *warnings);

/*
 * Visit the pools that the config names, without those with wildcards. For indexes of the cache,
 * too.
 */
void multus_config_pools(const json_t *object, void (*visit)(void *arg, const char *pool),
			 void *arg);

/*
 * Visit the interfaces of nodes that the config's is over, each with its field ("master",
 * "master[1]"). For indexes of the cache, too.
 */
void multus_config_masters(const json_t *object,
			   void (*visit)(void *arg, const char *field, const char *link),
			   void *arg);

/*
 * The resource that pods need for the config's network, "" when there is none. Returns new; free().
 */
char *multus_config_resource(const json_t *object);

#endif
