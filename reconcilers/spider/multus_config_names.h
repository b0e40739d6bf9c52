// SPDX-License-Identifier: Apache-2.0
/* Pools, interfaces and the resource that a SpiderMultusConfig names. */
#pragma once

#include <jansson.h>

/* Visit one family's names of an "ippools" block, without those with wildcards. */
void multus_config_visit_pools(const json_t *pools, const char *family,
			       void (*visit)(void *arg, const char *pool), void *arg);

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
