// SPDX-License-Identifier: Apache-2.0
/*
 * Maps from labels to numbers; what an object added is taken off before its next version is added.
 */
#include "operator/cache/object_counts.h"

#include <assert.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/sriov/node_state.h"
#include "reconcilers/sriov/shared_offers.h"

enum { NUMBERS = 3 };

/* What a line of numbers is about, and up to three numbers. */
struct line {
	const char *labels[4]; /* NULL: none; within text */
	int64_t numbers[NUMBERS];
	size_t objects; /* that add to it */
	char text[];
};

static const int64_t nothing[NUMBERS];

struct object_counts {
	struct map conditions, findings, policies, resources; /* struct line */
};

struct object_counts *object_counts_new(void)
{
	struct object_counts *counts = mem_new(struct object_counts);

	counts->conditions.free_value = mem_free;
	counts->findings.free_value = mem_free;
	counts->policies.free_value = mem_free;
	counts->resources.free_value = mem_free;
	return counts;
}

void object_counts_free(struct object_counts *counts)
{
	if (!counts)
		return;
	map_done(&counts->conditions);
	map_done(&counts->findings);
	map_done(&counts->policies);
	map_done(&counts->resources);
	mem_free(counts);
}

/* No label has a blank in it: kinds, types, statuses, reasons, keys, names of resources. */
static struct line *need_line(struct map *lines, const char *path)
{
	struct line *line = map_get(lines, path);
	size_t size = strlen(path) + 1;
	char *rest;

	if (line)
		return line;
	line = mem_zalloc(sizeof(*line) + size);
	memcpy(line->text, path, size);
	rest = line->text;
	for (size_t i = 0; rest && i < ARRAY_LEN(line->labels); i++)
		line->labels[i] = strsep(&rest, " ");
	map_set(lines, path, line);
	return line;
}

/* sign: 1 adds the object, -1 takes off what it added. */
static void count(struct map *lines, const char *path, int sign, const int64_t numbers[NUMBERS])
{
	struct line *line = need_line(lines, path);

	assert((sign == 1 || sign == -1) && (sign > 0 || line->objects > 0));
	line->objects += (size_t)sign;
	for (size_t i = 0; i < NUMBERS; i++)
		line->numbers[i] += sign * numbers[i];
	if (line->objects == 0)
		map_del(lines, path);
}

static const char *reason_of(const json_t *conditions, const char *type, const char *status)
{
	const json_t *condition = condition_find(conditions, type);

	if (!str_eq(json_str_at(condition, "status"), status))
		return NULL;
	return json_str_at(condition, "reason");
}

/* Why somebody has to look at the object; NULL when nobody has to. */
static const char *finding_of(const json_t *conditions)
{
	static const char *const waits[] = {"Progressing", "Blocked", "RebootRequired"};
	const char *degraded = reason_of(conditions, "Degraded", "True");

	if (degraded)
		return degraded;
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		if (str_eq(condition_status_of(conditions, waits[i]), "True"))
			return NULL;
	return reason_of(conditions, "Ready", "False");
}

/* is_kept: of a node that is gone, which needs nobody. */
static void count_conditions(struct object_counts *counts, const char *kind,
			     const json_t *conditions, bool is_kept, int sign)
{
	const char *finding = is_kept ? NULL : finding_of(conditions);
	const json_t *condition;
	size_t i;

	json_array_foreach ((json_t *)conditions, i, condition) {
		auto_free char *path =
			str_printf("%s %s %s %s", kind, json_str_or(json_at(condition, "type"), ""),
				   json_str_or(json_at(condition, "status"), ""),
				   json_str_or(json_at(condition, "reason"), ""));

		count(&counts->conditions, path, sign, nothing);
	}
	if (finding) {
		auto_free char *path = str_printf("%s %s", kind, finding);

		count(&counts->findings, path, sign, nothing);
	}
}

static void count_object(struct object_counts *counts, const char *kind, const json_t *object,
			 int sign)
{
	const json_t *status = json_at(object, "status");
	bool is_node_state = str_eq(kind, KIND_NODE_STATE);

	count_conditions(counts, kind, json_at(status, "conditions"),
			 is_node_state && node_state_is_kept(object), sign);
	/* The number of series is limited: those of users' namespaces take none. */
	if (str_eq(kind, KIND_POLICY) && status &&
	    !str_eq(reason_of(json_at(status, "conditions"), "Ready", "False"),
		    "NamespaceNotTrusted")) {
		auto_free char *key = json_key(object);

		count(&counts->policies, key, sign,
		      (const int64_t[NUMBERS]){json_integer_value(json_at(status, "wantedVfs")),
					       json_integer_value(json_at(status, "presentVfs"))});
	}
	if (is_node_state && !node_state_is_kept(object)) {
		const json_t *resource;
		size_t i;

		json_array_foreach ((json_t *)json_at(status, "resources"), i, resource) {
			bool is_given = node_state_resource_is_given(resource);
			bool is_empty =
				!is_given && json_integer_value(json_at(resource, "healthy")) == 0;
			const int64_t numbers[NUMBERS] = {
				1, is_empty, is_empty && shared_offers_selects_nothing(resource)};

			if (is_given || json_integer_value(json_at(resource, "wanted")) > 0)
				count(&counts->resources,
				      json_str_or(json_at(resource, "name"), ""), sign, numbers);
		}
	}
}

void object_counts_update(struct object_counts *counts, const char *kind, const json_t *old,
			  const json_t *now)
{
	/* A node's only condition here is the kubelet's. */
	if (str_eq(kind, KIND_NODE))
		return;
	if (old)
		count_object(counts, kind, old, -1);
	if (now)
		count_object(counts, kind, now, 1);
}

void object_counts_conditions(const struct object_counts *counts,
			      void (*fn)(void *arg, const char *kind, const char *type,
					 const char *status, const char *reason, size_t count),
			      void *arg)
{
	const char *path;
	void *value;
	size_t iter = 0;

	while (map_next(&counts->conditions, &iter, &path, &value)) {
		const struct line *line = value;

		fn(arg, line->labels[0], line->labels[1], line->labels[2], line->labels[3],
		   line->objects);
	}
}

void object_counts_findings(const struct object_counts *counts,
			    void (*fn)(void *arg, const char *kind, const char *reason,
				       size_t count),
			    void *arg)
{
	const char *path;
	void *value;
	size_t iter = 0;

	while (map_next(&counts->findings, &iter, &path, &value)) {
		const struct line *line = value;

		fn(arg, line->labels[0], line->labels[1], line->objects);
	}
}

void object_counts_policies(const struct object_counts *counts,
			    void (*fn)(void *arg, const char *policy, int64_t wanted,
				       int64_t present),
			    void *arg)
{
	const char *path;
	void *value;
	size_t iter = 0;

	while (map_next(&counts->policies, &iter, &path, &value)) {
		const struct line *line = value;

		fn(arg, path, line->numbers[0], line->numbers[1]);
	}
}

void object_counts_resources(const struct object_counts *counts,
			     void (*fn)(void *arg, const char *resource, size_t nodes, size_t empty,
					size_t unselected),
			     void *arg)
{
	const char *path;
	void *value;
	size_t iter = 0;

	while (map_next(&counts->resources, &iter, &path, &value)) {
		const struct line *line = value;

		fn(arg, path, (size_t)line->numbers[0], (size_t)line->numbers[1],
		   (size_t)line->numbers[2]);
	}
}
