// SPDX-License-Identifier: Apache-2.0
/*
 * The frame of pools_compute(): index the host, let each configuration add its pools, put them in
 * order.
 */
#include "nodeagent/devices/pools.h"

#include <assert.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

/* What a pod has and the host has no more: it is reported to the kubelet as broken, not as gone. */
static void add_gone(struct pools *pools, struct pool *pool)
{
	const char *id;
	json_t *who;

	if (!str_eq(json_str_at(pool->resource, "kind"), "sriov"))
		return;
	json_each (pool->allocated, id, who) {
		if (map_get(&pools->by_address, id) || map_get(&pools->claimed, id))
			continue;
		pools_add_gone(pools, pool, id, "it is not there any more");
		pool_cause(pool, "%s: it is not there any more, and %s has it", id,
			   json_str_or(who, "a pod"));
	}
}

/* What a configuration's reader had to say. */
static void repeat_problems(struct pools *pools, const json_t *document)
{
	json_t *entry;
	size_t i;

	json_array_foreach (json_at(document, "problems"), i, entry)
		pools_problem(pools, json_str_at(entry, "resource"), json_str_at(entry, "reason"),
			      "%s", json_str_or(json_at(entry, "message"), ""));
}

struct keyed {
	const char *key;
	json_t *value; /* owned while it is not in a list */
};

static int compare_keyed(const void *a, const void *b)
{
	return strcmp(((const struct keyed *)a)->key, ((const struct keyed *)b)->key);
}

/* Elements are objects whose `key` is a string. */
static void sort_by(json_t *list, const char *key)
{
	size_t n = json_array_size(list);
	auto_free struct keyed *items = mem_calloc(n + 1, sizeof(*items));

	for (size_t i = 0; i < n; i++) {
		items[i].value = json_incref(json_array_get(list, i));
		items[i].key = json_str_or(json_at(items[i].value, key), "");
	}
	qsort(items, n, sizeof(*items), compare_keyed);
	for (size_t i = 0; i < n; i++)
		json_array_set_new(list, i, items[i].value);
}

/* Does it matter for pods with GPUs, or for pods that name rails, which devices they get? */
static bool is_of_rails(const struct pools *pools, const json_t *devices)
{
	const char *first = json_str_at(json_array_get(devices, 0), "pf");
	const json_t *device;
	size_t i;

	if (json_array_size(json_at(pools->input->observed, "gpus")) == 0 &&
	    json_array_size(json_at(pools->input->observed, "rails", "list")) < 2)
		return false;
	json_array_foreach ((json_t *)devices, i, device)
		if (!str_eq(json_str_at(device, "pf"), first))
			return true;
	return false;
}

static json_t *finish_pools(struct pools *pools)
{
	json_t *resources = json_array();
	const char *name;
	void *value;
	size_t i = 0;

	while (map_next(&pools->pools, &i, &name, &value)) {
		struct pool *pool = value;

		add_gone(pools, pool);
		/* Counted apart, so that this line finds room. */
		if (pool->causes_dropped > 0)
			json_array_append_new(json_object_get(pool->resource, "causes"),
					      json_fmt("and %zu more", pool->causes_dropped));
		json_put_int(pool->resource, "wanted", pool->wanted);
		if (is_of_rails(pools, pool->devices))
			json_put_bool(pool->resource, "gpus", true);
		sort_by(pool->devices, "id");
		json_array_append(resources, pool->resource);
	}
	sort_by(resources, "name");
	if (pools->problems_dropped > 0) {
		auto_free char *more = str_printf("and %zu more problems", pools->problems_dropped);

		pools_note(pools->problems, NULL, "MoreProblems", more);
	}
	return json_pack("{s:o,s:O}", "resources", resources, "problems", pools->problems);
}

static void pools_done(struct pools *pools)
{
	free(pools->functions);
	map_done(&pools->by_address);
	map_done(&pools->dev_names);
	map_done(&pools->pools);
	map_done(&pools->held);
	map_done(&pools->claimed);
	json_decref(pools->rdma);
	json_decref(pools->problems);
}

bool pools_is_fault(const char *reason)
{
	return !str_eq(reason, "RdmaFilesMissing") && !str_eq(reason, "NothingSelected") &&
	       !str_eq(reason, "RdmaModeExclusive");
}

void pools_add_faults(const json_t *pools, json_t *list)
{
	json_t *problem, *fault;
	size_t i;

	json_array_foreach (json_at(pools, "problems"), i, problem) {
		if (!pools_is_fault(json_str_at(problem, "reason")))
			continue;
		fault = json_object();
		json_put_str(fault, "reason", json_str_at(problem, "reason"));
		json_put_str(fault, "message", json_str_at(problem, "message"));
		json_array_append_new(list, fault);
	}
}

json_t *pools_new_problems(const json_t *pools, const json_t *before)
{
	json_t *list = json_array(), *problem, *old;
	size_t i, k;

	json_array_foreach (json_at(pools, "problems"), i, problem) {
		bool is_known = false;

		json_array_foreach (json_at(before, "problems"), k, old)
			is_known |= json_same(old, problem);
		if (!is_known)
			json_array_append(list, problem);
	}
	return list;
}

json_t *pools_compute(const struct pools_input *input)
{
	auto_call(pools_done) struct pools pools = {
		.input = input,
		.pools.free_value = pool_free,
		.problems = json_array(),
	};

	assert(input->prefix);
	pools_index(&pools);
	pools_from_groups(&pools);
	pools_from_list(&pools);
	pools_from_shared(&pools);
	pools_from_dev_files(&pools);
	repeat_problems(&pools, input->resource_list);
	repeat_problems(&pools, input->shared);
	repeat_problems(&pools, input->dev_files);
	return finish_pools(&pools);
}

json_t *pools_names(const json_t *pools)
{
	json_t *names = json_array(), *resource;
	size_t i;

	json_array_foreach (json_at(pools, "resources"), i, resource)
		json_array_append(names, json_at(resource, "name"));
	return names;
}
