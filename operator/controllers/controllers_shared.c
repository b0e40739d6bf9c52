// SPDX-License-Identifier: Apache-2.0
/* What the wake rules of several families share. */
#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "operator/controllers/controllers_internal.h"
#include "reconcilers/core/kinds.h"

static void wake_config(void *arg, const char *key)
{
	wake(arg, CONTROLLER_MULTUS_CONFIG, key);
}

void controllers_wake_configs(const struct change *c, size_t index, const char *value)
{
	cache_find(mirror_cache(c->from->mirror, KIND_MULTUS_CONFIG), index, value, wake_config,
		   (void *)c);
}

bool controllers_same_spec(const json_t *old, const json_t *now)
{
	return old && now && json_same(json_at(old, "spec"), json_at(now, "spec"));
}

void controllers_wake_all(const struct change *c, const char *kind, enum controller_id id)
{
	const struct cache *cache = mirror_cache(c->from->mirror, kind);
	const char *key = NULL;
	size_t iter = 0;

	assert(id < CONTROLLER_COUNT);
	while ((key = cache_next(cache, &iter)))
		wake(c, id, key);
}

void controllers_keep(const struct controller_sources *from, const char *box, const char *key,
		      json_t *value)
{
	assert(box && key);
	if (value)
		json_object_set(json_need_object(from->notes, box), key, value);
	else
		json_object_del(json_object_get(from->notes, box), key);
}

void controllers_add_kept(const struct controller_sources *from, json_t *world, const char *box,
			  const char *key)
{
	json_t *value = json_at(from->notes, box, key);

	if (value)
		json_object_set(json_need_object(world, box), key, value);
}

void leftover_changed(const struct change *c)
{
	auto_free char *key = str_printf("%s %s", c->kind, c->key);

	wake(c, CONTROLLER_LEFTOVER, key);
}

void leftover_gather(const struct controller_sources *from, const struct controller *self,
		     const char *key, json_t *world)
{
	const char *space = strchr(key, ' ');
	auto_free char *kind = str_ndup(key, space ? (size_t)(space - key) : 0);

	json_put_str(json_need_object(world, "env"), "configNamespace", from->config_ns);
	if (space)
		mirror_add(from->mirror, world, kind, space + 1);
}
