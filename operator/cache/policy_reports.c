// SPDX-License-Identifier: Apache-2.0
/*
 * Two maps of maps: policy → node → text to read; node → policies, to know what it said before.
 */
#include "operator/cache/policy_reports.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"

struct policy_reports {
	struct map by_policy; /* policy → struct map: node → char * */
	struct map by_node;   /* node → struct map: policy → non-NULL */
};

static void free_map(void *ptr)
{
	struct map *map = ptr;

	map_done(map);
	mem_free(map);
}

struct policy_reports *policy_reports_new(void)
{
	struct policy_reports *reports = mem_new(struct policy_reports);

	reports->by_policy.free_value = free_map;
	reports->by_node.free_value = free_map;
	return reports;
}

void policy_reports_free(struct policy_reports *reports)
{
	if (!reports)
		return;
	map_done(&reports->by_policy);
	map_done(&reports->by_node);
	mem_free(reports);
}

static struct map *need_map(struct map *maps, const char *key, void (*free_value)(void *))
{
	struct map *map = map_get(maps, key);

	if (!map) {
		map = mem_new(struct map);
		map->free_value = free_value;
		map_set(maps, key, map);
	}
	return map;
}

void policy_reports_set(struct policy_reports *reports, const char *node, const json_t *policies,
			void (*changed)(void *arg, const char *policy), void *arg)
{
	struct map *before = map_get(&reports->by_node, node);
	const char *policy = NULL;
	json_t *report = NULL;
	void *ignored = NULL;
	size_t iter = 0;

	assert(node && changed);
	while (before && map_next(before, &iter, &policy, &ignored)) {
		struct map *nodes = map_get(&reports->by_policy, policy);
		auto_free char *gone = NULL;

		if (json_object_get(policies, policy))
			continue;
		gone = str_dup(policy);
		if (nodes)
			map_del(nodes, node);
		if (nodes && nodes->len == 0)
			map_del(&reports->by_policy, gone);
		map_del(before, gone);
		changed(arg, gone);
	}
	json_each (policies, policy, report) {
		struct map *nodes = need_map(&reports->by_policy, policy, mem_free);
		auto_free char *text = json_text(report);

		map_set(need_map(&reports->by_node, node, NULL), policy, reports);
		if (str_eq(map_get(nodes, node), text))
			continue;
		map_set(nodes, node, take_ptr(text));
		changed(arg, policy);
	}
	before = map_get(&reports->by_node, node);
	if (before && before->len == 0)
		map_del(&reports->by_node, node);
}

static void drop(void *report)
{
	json_decref(report);
}

/* Thousands of nodes say the same few things, which are read once. */
json_t *policy_reports_of(const struct policy_reports *reports, const char *policy)
{
	const struct map *nodes = map_get(&reports->by_policy, policy);
	struct map read = {.free_value = drop};
	json_t *all = json_object();
	const char *node = NULL;
	void *text = NULL;
	size_t iter = 0;

	assert(policy);
	while (nodes && map_next(nodes, &iter, &node, &text)) {
		json_t *report = map_get(&read, text);

		if (!report) {
			report = json_parse(text, strlen(text), NULL);
			map_set(&read, text, report);
		}
		json_object_set(all, node, report);
	}
	map_done(&read);
	return all;
}
