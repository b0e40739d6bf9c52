// SPDX-License-Identifier: Apache-2.0
/*
 * What every reconciler promises (reconcilers/core/reconcile.h), for any JSON: no crash, pure,
 * nothing in the plan on failure, and carrying plans out comes to rest.
 *
 * Input: {"key": …, "world": {…}}, as in golden cases.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "tests/fakes/cluster.h"
#include "tests/fuzz/fuzz.h"

/*
 * The schema of metav1.Condition, for the parts that do not come from the world: a status write
 * would be refused.
 */
static inline void fuzz_check_conditions(const struct plan *plan)
{
	json_t *op, *condition;
	size_t i, j;

	json_array_foreach (plan->ops, i, op)
		json_array_foreach (json_at(op, "status", "conditions"), j, condition) {
			const char *reason = json_str_or(json_at(condition, "reason"), "");
			const char *message = json_str_at(condition, "message");

			fuzz_check(*reason && strspn(reason, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
							     "abcdefghijklmnopqrstuvwxyz"
							     "0123456789") == strlen(reason),
				   "a reason is CamelCase");
			fuzz_check(message && !strpbrk(message, "\n\r"), "a message is one line");
		}
}

/* metadata and the maps in it, as an API server would have them. */
static inline void fuzz_shape_metadata(json_t *object)
{
	static const char *const maps[] = {"annotations", "labels"};
	json_t *metadata = json_object_get(object, "metadata");

	if (!json_is_object(metadata)) {
		json_object_set_new(object, "metadata", json_object());
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(maps); i++)
		if (!json_is_object(json_object_get(metadata, maps[i])))
			json_object_del(metadata, maps[i]);
}

/*
 * A world that plans can be carried out on: caches hold objects by key, and an API server sees to
 * metadata; anything below that may be anything. Returns new; an empty world when `world` is not an
 * object.
 */
static inline json_t *fuzz_world(const json_t *world)
{
	json_t *shaped = json_is_object(world) ? json_deep_copy(world) : json_object();
	const char *kind, *key;
	json_t *objects, *object;
	void *next, *inner;

	json_object_foreach_safe(shaped, next, kind, objects)
	{
		if (!json_is_object(objects)) {
			json_object_del(shaped, kind);
			continue;
		}
		if (str_eq(kind, "env"))
			continue;
		json_object_foreach_safe(objects, inner, key, object)
		{
			if (json_is_object(object))
				fuzz_shape_metadata(object);
			else
				json_object_del(objects, key);
		}
	}
	return shaped;
}

/*
 * On the world as it is: whatever it holds. `check` (may be NULL) looks at the plan of a success.
 */
static inline bool fuzz_reconcile_once(const json_t *world, const char *key,
				       reconcile_fn *reconcile,
				       void (*check)(const struct plan *plan))
{
	json_auto_t *before = json_deep_copy(world);
	auto_plan struct plan a = {0}, b = {0};
	struct err ea = {0}, eb = {0};
	int result = reconcile(world, key, &a, &ea);

	fuzz_check(result == reconcile(world, key, &b, &eb),
		   "the same world gives the same verdict");
	fuzz_check(json_same(a.ops, b.ops), "the same world gives the same plan");
	fuzz_check(json_same(world, before), "the world is not changed");
	fuzz_check(result == 0 || (plan_is_empty(&a) && ea.class != ERR_NONE),
		   "a failure has an error and no plan");
	if (result == 0 && check)
		check(&a);
	return result == 0;
}

static inline void fuzz_reconcile(const uint8_t *data, size_t size, reconcile_fn *reconcile,
				  void (*check)(const struct plan *plan))
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *shaped = fuzz_world(json_at(input, "world"));
	const char *key = json_str_at(input, "key");
	const json_t *world = json_at(input, "world");

	if (!key || !json_is_object(world))
		return;
	(void)fuzz_reconcile_once(world, key, reconcile, check);
	if (fuzz_reconcile_once(shaped, key, reconcile, check))
		fuzz_check(cluster_settle(shaped, key, reconcile), "plans come to rest");
}
