// SPDX-License-Identifier: Apache-2.0
/*
 * Two maps of maps: policy → node → text to read; node → policies, to know what it said before.
 */
#include "operator/reports.h"

#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"

struct reports {
	struct map by_policy; /* policy → struct map: node → char * */
	struct map by_node;   /* node → struct map: policy → non-NULL */
};

static void free_map(void *ptr)
{
	struct map *map = ptr;

	map_done(map);
	mem_free(map);
}

struct reports *reports_new(void)
{
	struct reports *reports = mem_new(struct reports);

	reports->by_policy.free_value = free_map;
	reports->by_node.free_value = free_map;
	return reports;
}

void reports_free(struct reports *reports)
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

/* True when that is new. */
static bool say(struct reports *reports, const char *node, const char *policy, const json_t *report)
{
	struct map *nodes = need_map(&reports->by_policy, policy, mem_free);
	struct map *policies = need_map(&reports->by_node, node, NULL);
	auto_free char *text = json_text(report);
	const char *before = map_get(nodes, node);

	if (str_eq(before, text))
		return false;
	map_set(nodes, node, take_ptr(text));
	map_set(policies, policy, reports);
	return true;
}

static void unsay(struct reports *reports, const char *node, const char *policy)
{
	struct map *nodes = map_get(&reports->by_policy, policy);

	if (!nodes)
		return;
	map_del(nodes, node);
	if (nodes->len == 0)
		map_del(&reports->by_policy, policy);
}

void reports_set(struct reports *reports, const char *node, const json_t *policies,
		 void (*changed)(void *arg, const char *policy), void *arg)
{
	struct map *before = map_get(&reports->by_node, node);
	const char *policy = NULL;
	json_t *report = NULL;
	void *ignored = NULL;
	size_t iter = 0;

	while (before && map_next(before, &iter, &policy, &ignored)) {
		auto_free char *gone = NULL;

		if (json_object_get(policies, policy))
			continue;
		gone = str_dup(policy);
		unsay(reports, node, gone);
		map_del(before, gone);
		changed(arg, gone);
	}
	json_each (policies, policy, report)
		if (say(reports, node, policy, report))
			changed(arg, policy);
	before = map_get(&reports->by_node, node);
	if (before && before->len == 0)
		map_del(&reports->by_node, node);
}

static void drop(void *report)
{
	json_decref(report);
}

/* Thousands of nodes say the same few things, which are read once. */
json_t *reports_of(const struct reports *reports, const char *policy)
{
	const struct map *nodes = map_get(&reports->by_policy, policy);
	struct map read = {.free_value = drop};
	json_t *all = json_object();
	const char *node = NULL;
	void *text = NULL;
	size_t iter = 0;

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
