// SPDX-License-Identifier: Apache-2.0
/*
 * The labels that a Node should have follow from the status of its NodeState alone; what differs is
 * planned. node_state.c calls this for each node whose agent is there, or was removed.
 */
#include "reconcilers/sriov/node_labels.h"

#include <stdlib.h>

#include "lib/json/json.h"

/* PCI ids of NICs that RDMA clusters have (pci.ids); others are named by their numbers. */
static const struct {
	const char *vendor, *device, *model;
} models[] = {
	{"15b3", "1017", "connectx-5"},    {"15b3", "1019", "connectx-5-ex"},
	{"15b3", "101b", "connectx-6"},    {"15b3", "101d", "connectx-6-dx"},
	{"15b3", "101f", "connectx-6-lx"}, {"15b3", "1021", "connectx-7"},
	{"15b3", "1023", "connectx-8"},    {"15b3", "a2d6", "bluefield-2"},
	{"15b3", "a2dc", "bluefield-3"},   {"8086", "1592", "e810"},
	{"8086", "1593", "e810"},          {"8086", "159b", "e810"},
	{"14e4", "1750", "bcm57508"},      {"14e4", "1760", "bcm57608"},
};

bool node_label_is_ours(const char *key)
{
	return key && str_starts(key, NODE_LABEL_PREFIX);
}

static json_t *model_of(const json_t *port)
{
	const char *vendor = json_str_at(port, "vendor"), *device = json_str_at(port, "deviceID");

	if (!vendor || !device)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(models); i++)
		if (str_eq(models[i].vendor, vendor) && str_eq(models[i].device, device))
			return json_string(models[i].model);
	return json_fmt("%.8s-%.8s", vendor, device);
}

static json_t *link_type_of(const json_t *port)
{
	const char *type = json_str_at(port, "linkType");

	if (str_eq(type, "ETH"))
		return json_string("ethernet");
	return str_eq(type, "IB") ? json_string("infiniband") : NULL;
}

/* Takes value; NULL is not one. */
static void put_common(json_t *labels, const char *key, json_t *value)
{
	json_t *before = json_object_get(labels, key);

	if (value && before && !json_same(value, before)) {
		json_replace(&value, json_string("mixed"));
	}
	json_put(labels, key, value);
}

/* "400000 Mb/s" */
static int64_t gbps_of(const json_t *port)
{
	return strtoll(json_str_or(json_at(port, "linkSpeed"), "0"), NULL, 10) / 1000;
}

static json_t *labels_of(const json_t *state, const json_t *current)
{
	int64_t count = json_integer_value(json_at(state, "status", "rails", "count")), fastest = 0;
	json_t *labels = json_object();
	const json_t *port;
	size_t i;

	if (count == 0)
		return labels;
	json_put_str(labels, NODE_LABEL_CAPABLE, "true");
	json_put(labels, NODE_LABEL_COUNT, json_fmt("%lld", (long long)count));
	json_array_foreach (json_at(state, "status", "interfaces"), i, port) {
		if (!json_at(port, "rail"))
			continue;
		put_common(labels, NODE_LABEL_MODEL, model_of(port));
		put_common(labels, NODE_LABEL_LINK_TYPE, link_type_of(port));
		if (gbps_of(port) > fastest)
			fastest = gbps_of(port);
	}
	if (fastest > 0)
		json_put(labels, NODE_LABEL_SPEED, json_fmt("%lld", (long long)fastest));
	else
		json_put(labels, NODE_LABEL_SPEED,
			 json_incref(json_object_get(current, NODE_LABEL_SPEED)));
	return labels;
}

void node_labels_plan(struct plan *plan, const json_t *node, const json_t *state)
{
	static const char *const keys[] = {NODE_LABEL_CAPABLE, NODE_LABEL_COUNT, NODE_LABEL_MODEL,
					   NODE_LABEL_LINK_TYPE, NODE_LABEL_SPEED};
	const json_t *current = json_at(node, "metadata", "labels");
	json_auto_t *wanted = NULL;
	json_t *changed;
	size_t first = json_array_size(plan->ops);

	if (state && !json_at(state, "status", "rails") && !json_at(state, "status", "topology"))
		return;
	wanted = labels_of(state, current);
	changed = json_object();
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const json_t *is = json_object_get(current, keys[i]);
		json_t *shall = json_object_get(wanted, keys[i]);

		if (shall && !(is && json_same(is, shall)))
			json_object_set(changed, keys[i], shall);
		else if (is && !shall)
			json_put(changed, keys[i], json_null());
	}
	if (json_object_size(changed) == 0) {
		json_decref(changed);
		return;
	}
	plan_node_labels(plan, json_name(node), changed);
	plan_group(plan, first, "labels", NULL);
}
