// SPDX-License-Identifier: Apache-2.0
/* Looking things up in a world. */
#include "reconcilers/core/reconcile.h"

#include "lib/json/json.h"

const json_t *world_kind(const json_t *world, const char *kind)
{
	return json_at(world, kind);
}

const json_t *world_get(const json_t *world, const char *kind, const char *key)
{
	return json_at(world, kind, key);
}

const char *world_env(const json_t *world, const char *name)
{
	return json_str_or(json_at(world, "env", name), "");
}
