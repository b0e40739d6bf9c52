// SPDX-License-Identifier: Apache-2.0
/*
 * Pools of any host, and requests for their devices. Input: {"spec": …, "observed": …, "allocated":
 * …, "before": …, "devNames": […], "resource": …, "ids": […], "must": […], "size": n, "near": …,
 * "pod": …}; each may be anything. Nothing crashes, deciding is pure, and an answer is what
 * allocate.h says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "nodeagent/devices/affinity.h"
#include "nodeagent/devices/allocate.h"
#include "nodeagent/devices/pools.h"
#include "nodeagent/model/topology.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* The strings of a list; free(). */
static const char **strings(const json_t *list, size_t *ret_n)
{
	const char **ret = mem_calloc(json_array_size(list) + 1, sizeof(*ret));
	json_t *item;
	size_t i;

	*ret_n = 0;
	json_array_foreach ((json_t *)list, i, item)
		if (json_is_string(item))
			ret[(*ret_n)++] = json_string_value(item);
	return ret;
}

static void check_pools(const json_t *input)
{
	struct pools_input in = {
		.prefix = "spidernet.io",
		.spec = json_at(input, "spec"),
		.observed = json_at(input, "observed"),
		.allocated = json_at(input, "allocated"),
		.before = json_at(input, "before"),
		.dev_names = json_at(input, "devNames"),
	};
	json_auto_t *pools = pools_compute(&in), *again = pools_compute(&in);
	json_t *pool, *device;
	size_t i, j;

	fuzz_check(json_same(pools, again), "the same host gives the same pools");
	json_array_foreach (json_at(pools, "resources"), i, pool) {
		const char *before = "";

		json_array_foreach (json_at(pool, "devices"), j, device) {
			const char *id = json_str_or(json_at(device, "id"), "");

			fuzz_check(j == 0 || strcmp(before, id) < 0,
				   "devices are sorted, each once");
			fuzz_check(json_is_true(json_at(device, "healthy")) ||
					   json_at(device, "cause") ||
					   !str_eq(json_str_at(pool, "kind"), "sriov"),
				   "what is unhealthy says why");
			before = id;
		}
	}
}

static void check_allocation(const json_t *resource, const char **ids, size_t n)
{
	struct err err = {0};
	json_auto_t *answer = allocate_devices(resource, ids, n, &err);
	const char *before = NULL;
	json_t *node;
	size_t i;

	fuzz_check(!answer == (err.class == ERR_INVALID),
		   "an error comes exactly without an answer");
	json_array_foreach (json_at(answer, "nodes"), i, node) {
		const char *path = json_str_or(json_at(node, "path"), "");

		fuzz_check(!before || strcmp(before, path) < 0, "nodes are sorted, each once");
		before = path;
	}
}

static bool has(const char **list, size_t n, const char *id)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(list[i], id))
			return true;
	return false;
}

static void check_preference(const json_t *resource, const char **ids, size_t n, const char **must,
			     size_t n_must, size_t size, const json_t *near)
{
	auto_free const char **chosen = mem_calloc(n + 1, sizeof(*chosen));
	struct err err = {0};

	if (allocate_prefer(resource, ids, n, must, n_must, size, near, chosen, &err) < 0) {
		fuzz_check(err.class == ERR_INVALID, "a refusal says why");
		return;
	}
	fuzz_check(size <= n, "no more than there is");
	for (size_t i = 0; i < size; i++) {
		fuzz_check(i == 0 || strcmp(chosen[i - 1], chosen[i]) < 0, "sorted, each once");
		fuzz_check(has(ids, n, chosen[i]), "what is chosen is available");
	}
	for (size_t i = 0; i < n_must; i++)
		fuzz_check(has(chosen, size, must[i]), "what must be included is");
}

/* Documents of any shape. */
static void check_affinity(const json_t *input)
{
	const json_t *observed = json_at(input, "observed"), *held = json_at(input, "allocated");
	const char *name = json_str_or(json_at(input, "resource", "name"), "");
	json_auto_t *holders = affinity_holders(observed, held);
	json_auto_t *suspects = affinity_suspects(holders, held, name);
	json_auto_t *pod = json_incref(json_at(input, "pod")), *wanted = NULL, *near = NULL;
	json_auto_t *distances = affinity_distances(observed, held), *missed = NULL;
	json_auto_t *counts = affinity_counts(distances), *pools = NULL;

	wanted = pod ? affinity_wanted(pod, holders, held, name) : NULL;
	fuzz_check(!wanted || json_array_size(wanted) > 0, "a pod that is found has GPUs");
	fuzz_check(json_array_size(suspects) <= json_object_size(holders), "pods with GPUs only");
	near = observed ? affinity_near(observed, holders, wanted) : NULL;
	fuzz_check(!near || json_array_size(json_at(near, "gpus")) > 0, "GPUs that count");
	pools = json_pack("{s:[O]}", "resources", json_at(input, "resource"));
	missed = affinity_missed(observed, pools, held, NULL);
	fuzz_check(json_object_size(counts) == TOPOLOGY_DISTANCES, "all distances are there");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	const json_t *resource = json_at(input, "resource"), *wanted = json_at(input, "size");
	size_t n, n_must;
	auto_free const char **ids = strings(json_at(input, "ids"), &n);
	auto_free const char **must = strings(json_at(input, "must"), &n_must);

	check_pools(input);
	check_allocation(resource, ids, n);
	check_affinity(input);
	if (json_is_integer(wanted) && json_integer_value(wanted) >= 0)
		check_preference(resource, ids, n, must, n_must, (size_t)json_integer_value(wanted),
				 json_at(input, "near"));
	return 0;
}
