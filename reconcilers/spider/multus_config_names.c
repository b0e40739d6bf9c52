// SPDX-License-Identifier: Apache-2.0
/*
 * What a config names of others, read from the block of its cniType as cni_config.c finds it.
 * multus_config_warn.c looks each up in the world; the operator's cache indexes configs by it.
 */
#include "reconcilers/spider/multus_config_names.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/spider/cni_config.h"

void multus_config_visit_pools(const json_t *pools, const char *family,
			       void (*visit)(void *arg, const char *pool), void *arg)
{
	json_t *pool;
	size_t i;

	assert(family && visit);
	/* IPAM expands wildcards to the pools that are there when a pod starts (its pkg/ipam). */
	json_array_foreach (json_at(pools, family), i, pool)
		if (json_is_string(pool) && !strpbrk(json_string_value(pool), "*?["))
			visit(arg, json_string_value(pool));
}

void multus_config_pools(const json_t *object, void (*visit)(void *arg, const char *pool),
			 void *arg)
{
	const struct cni_type *type = cni_type_of(object);
	json_auto_t *block = type ? cni_block(object, type) : NULL;

	assert(visit);
	if (json_is_true(json_at(object, "spec", "disableIPAM")))
		return;
	multus_config_visit_pools(json_at(block, "ippools"), "ipv4", visit, arg);
	multus_config_visit_pools(json_at(block, "ippools"), "ipv6", visit, arg);
}

void multus_config_masters(const json_t *object,
			   void (*visit)(void *arg, const char *field, const char *link), void *arg)
{
	const struct cni_type *type = cni_type_of(object);
	const json_t *master = type ? json_at(object, "spec", type->block, "master") : NULL, *link;
	size_t i;

	assert(visit);
	if (json_is_string(master))
		visit(arg, "master", json_string_value(master));
	json_array_foreach (master, i, link) {
		auto_free char *field = str_printf("master[%zu]", i);

		if (json_is_string(link))
			visit(arg, field, json_string_value(link));
	}
}

char *multus_config_resource(const json_t *object)
{
	const struct cni_type *type = cni_type_of(object);
	json_auto_t *block = type ? cni_block(object, type) : NULL;

	return str_dup(type ? cni_block_resource(type, block) : "");
}
