// SPDX-License-Identifier: Apache-2.0
/* Who is away of a pool, and how many may be. */
#include <assert.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/maintenance/drain_internal.h"
#include "reconcilers/sriov/pool_config.h"

static void budget_free(void *ptr)
{
	struct budget *budget = ptr;

	mem_free(budget->pool);
	mem_free(budget);
}

void budgets_init(struct budgets *budgets)
{
	*budgets = (struct budgets){.by_pool = {.free_value = budget_free}};
}

void budgets_done(struct budgets *budgets)
{
	map_done(&budgets->by_pool);
}

const char *budget_down(const json_t *node)
{
	const json_t *ready = json_find(json_at(node, "status", "conditions"), "type", "Ready");

	if (!str_eq(json_str_at(ready, "status"), "True"))
		return "not Ready";
	/* Pods of a Node that is cordoned for its links run. */
	if (str_eq(json_str_at(node, "metadata", "annotations", DRAIN_CORDONED_ANNOTATION),
		   DRAIN_CORDONED_FOR_LINKS))
		return NULL;
	return json_is_true(json_at(node, "spec", "unschedulable")) ? "cordoned" : NULL;
}

static bool is_begun(const json_t *world, const char *node)
{
	auto_free char *key = str_printf("%s/%s", world_env(world, "namespace"), node);
	const char *current = json_str_at(world_get(world, KIND_NODE_STATE, key), "metadata",
					  "annotations", DRAIN_CURRENT_STATE);

	return current && !str_eq(current, "Idle");
}

struct budget *budget_of(struct budgets *budgets, const json_t *world, const json_t *pool)
{
	auto_free char *key = json_key(pool);
	struct budget *budget = map_get(&budgets->by_pool, key);
	const char *name;
	json_t *node;

	assert(pool);
	if (budget)
		return budget;
	budget = mem_new(struct budget);
	budget->pool = take_ptr(key);

	json_each (world_kind(world, KIND_NODE), name, node) {
		if (!pool_config_selects(pool, json_at(node, "metadata", "labels")))
			continue;
		budget->nodes++;
		budget->away += is_begun(world, name) || budget_down(node);
	}
	(void)pool_config_max_unavailable(pool, budget->nodes, &budget->limit);
	map_set(&budgets->by_pool, budget->pool, budget);
	return budget;
}

bool budget_allows(const struct budget *budget, bool is_down)
{
	return budget->away - is_down < budget->limit;
}

void budget_take(struct budget *budget, bool is_down)
{
	budget->away += !is_down;
}
