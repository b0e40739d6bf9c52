// SPDX-License-Identifier: Apache-2.0
/*
 * What a reconciler wants, as data. Only appends; meaning is in plan.h, carrying out in the
 * applier.
 */
#include "reconcilers/core/plan.h"

#include <assert.h>

#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"

void plan_done(struct plan *plan)
{
	json_decref(plan->ops);
	plan->ops = NULL;
}

bool plan_is_empty(const struct plan *plan)
{
	return json_array_size(plan->ops) == 0;
}

void plan_join(struct plan *plan, const struct plan *more)
{
	assert(plan != more);
	if (!plan_is_empty(more) && !plan->ops)
		plan->ops = json_array();
	if (more->ops)
		(void)json_array_extend(plan->ops, more->ops);
}

/* A new operation at the end of the plan, to be filled in. Borrowed. */
static json_t *append(struct plan *plan, const char *op)
{
	json_t *entry = json_object();

	if (!plan->ops)
		plan->ops = json_array();
	json_put_str(entry, "op", op);
	(void)json_array_append_new(plan->ops, entry);
	return entry;
}

static json_t *append_for(struct plan *plan, const char *op, const char *kind, const char *key)
{
	json_t *entry = append(plan, op);

	json_put_str(entry, "kind", kind);
	json_put_str(entry, "key", key);
	return entry;
}

void plan_apply(struct plan *plan, const char *kind, json_t *object)
{
	auto_free char *key = json_key(object);

	assert(*json_name(object));
	json_put(append_for(plan, "apply", kind, key), "object", object);
}

void plan_post(struct plan *plan, const char *box, const char *key, json_t *value)
{
	json_t *entry = append(plan, "post");

	assert(box && key);
	json_put_str(entry, "box", box);
	json_put_str(entry, "key", key);
	json_put(entry, "value", value ? value : json_null());
}

void plan_status(struct plan *plan, const char *kind, const char *key, json_t *status)
{
	assert(key && json_is_object(status));
	json_put(append_for(plan, "status", kind, key), "status", status);
}

void plan_status_part(struct plan *plan, const char *kind, const char *key, json_t *status)
{
	assert(key && json_is_object(status));
	json_put(append_for(plan, "status-part", kind, key), "status", status);
}

void plan_meta(struct plan *plan, const char *kind, const char *key, json_t *metadata)
{
	assert(key && json_is_object(metadata));
	json_put(append_for(plan, "meta", kind, key), "metadata", metadata);
}

void plan_node_labels(struct plan *plan, const char *key, json_t *labels)
{
	json_t *entry = append_for(plan, "meta", KIND_NODE, key);

	assert(key && json_is_object(labels));
	json_put_str(entry, "subresource", "status");
	json_put(json_need_object(entry, "metadata"), "labels", labels);
}

void plan_node_status(struct plan *plan, const char *key, json_t *annotations, json_t *condition)
{
	json_t *entry = append_for(plan, "meta", KIND_NODE, key);

	assert(key && (annotations || condition));
	json_put_str(entry, "subresource", "status");
	json_put(json_need_object(entry, "metadata"), "annotations", annotations);
	if (condition)
		json_put(entry, "status", json_pack("{s:[o]}", "conditions", condition));
}

void plan_put_condition(json_t *object, const json_t *op)
{
	json_t *condition = json_array_get(json_at(op, "status", "conditions"), 0);
	const char *type = json_str_at(condition, "type");
	json_t *list = json_array();
	const json_t *old;
	size_t i;

	assert(json_is_object(object));
	json_array_foreach (json_at(object, "status", "conditions"), i, old)
		if (!str_eq(json_str_at(old, "type"), type))
			json_array_append(list, (json_t *)old);
	if (condition && !json_at(condition, "$patch"))
		json_array_append(list, condition);
	if (condition)
		json_put(json_need_object(object, "status"), "conditions", list);
	else
		json_decref(list);
}

void plan_cordon(struct plan *plan, const char *key, bool is_cordoned, json_t *metadata)
{
	json_t *entry = append_for(plan, "cordon", KIND_NODE, key);

	assert(key && json_is_object(metadata));
	json_put(json_need_object(entry, "spec"), "unschedulable",
		 is_cordoned ? json_true() : json_null());
	json_put(entry, "metadata", metadata);
}

void plan_taints(struct plan *plan, const char *key, json_t *taints)
{
	json_t *entry = append_for(plan, "cordon", KIND_NODE, key);

	assert(key && json_is_array(taints));
	json_put(json_need_object(entry, "spec"), "taints", taints);
	json_put(entry, "metadata", json_object());
}

void plan_release(struct plan *plan, const char *kind, const char *key, const json_t *object,
		  const char *finalizer)
{
	const json_t *old = json_at(object, "metadata", "finalizers");
	json_t *metadata, *rest, *item;
	size_t i;

	assert(kind && key && finalizer);
	if (!json_list_has(old, finalizer))
		return;
	rest = json_array();
	json_array_foreach (old, i, item)
		if (!str_eq(json_string_value(item), finalizer))
			json_array_append(rest, item);
	metadata = json_object();
	json_put(metadata, "finalizers", rest);
	plan_meta(plan, kind, key, metadata);
}

void plan_delete(struct plan *plan, const char *kind, const char *key, const char *uid)
{
	assert(key && uid);
	json_put_str(append_for(plan, "delete", kind, key), "uid", uid);
}

void plan_evict(struct plan *plan, const char *key, const char *uid)
{
	assert(key && uid);
	json_put_str(append_for(plan, "evict", KIND_POD, key), "uid", uid);
}

void plan_event(struct plan *plan, const char *kind, const char *key, bool warning,
		const char *reason, const char *message)
{
	json_t *entry = append_for(plan, "event", kind, key);

	assert(key && reason && message);
	json_put_str(entry, "type", warning ? "Warning" : "Normal");
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "message", message);
}

void plan_report(struct plan *plan, const char *node, json_t *policies)
{
	json_t *entry = append(plan, "report");

	assert(node && json_is_object(policies));
	json_put_str(entry, "node", node);
	json_put(entry, "policies", policies);
}

void plan_finding(struct plan *plan, const char *kind, const char *key, const char *reason,
		  const char *message)
{
	json_t *entry = append_for(plan, "finding", kind, key);

	assert(key && (message || !reason));
	json_put_str(entry, "reason", reason);
	json_put_str(entry, "message", reason ? message : NULL);
}

void plan_requeue(struct plan *plan, int64_t after_ms)
{
	assert(after_ms >= 0);
	json_put_int(append(plan, "requeue"), "after_ms", after_ms);
}

void plan_group(struct plan *plan, size_t first, const char *group, json_t *needs)
{
	assert(first <= json_array_size(plan->ops));
	for (size_t i = first; i < json_array_size(plan->ops); i++) {
		json_t *op = json_array_get(plan->ops, i);

		json_put_str(op, "group", group);
		if (needs)
			json_object_set(op, "needs", needs);
	}
}
