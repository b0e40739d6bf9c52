// SPDX-License-Identifier: Apache-2.0
/*
 * Callbacks of operator/rehearsal.h turn each decision into a step, with the differences that it
 * would make. What a world lacks (a dump without Secrets, a kind that may not be read) is named per
 * controller instead of being decided wrongly. `replay` prints the steps, `plan` compares them.
 */
#include "cli/rehearsed.h"

#include "cli/status.h"
#include "cli/support_list.h"
#include "lib/json/json.h"
#include "operator/rehearsal.h"
#include "reconcilers/core/differences.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

struct run {
	const json_t *index; /* of the dump; NULL: there is none */
	const json_t *unread;
	const char *only; /* this controller or key; NULL: all */
	struct rehearsed *ret;
};

/* ---- what is in the dump --------------------------------------------------------------------- */

/* The line of the index about a part; NULL: there is none. */
static const json_t *find_part(const json_t *index, const char *what)
{
	return json_find(json_at(index, "parts"), "what", what);
}

static struct kube_resource resource_of(const struct operator_kind *kind)
{
	const struct kind_info *info = kind_find(kind->kind);

	if (info)
		return (struct kube_resource){info->group, info->version, info->id, info->kind,
					      info->namespaced};
	return kind->resource;
}

/* What could not be read is named, for a dump in its index. */
static bool has(void *arg, const struct operator_kind *kind)
{
	const struct run *run = arg;
	const struct kube_resource resource = resource_of(kind);
	auto_free char *all = support_resource_name(&resource);
	auto_free char *one = kind->name ? str_printf("%s %s", all, kind->name) : str_dup(all);

	if (json_at(run->unread, all) || json_at(find_part(run->index, all), "failed") ||
	    json_at(find_part(run->index, one), "failed"))
		return false;
	return kind->optional || !json_at(find_part(run->index, all), "skipped");
}

static void left_out(void *arg, const char *controller, const struct operator_kind *kind)
{
	struct run *run = arg;
	const struct kube_resource resource = resource_of(kind);
	auto_free char *name = support_resource_name(&resource);
	const char *unread = json_str_at(run->unread, name);
	json_t *line = json_object();

	json_put_str(line, "controller", controller);
	json_put(line, "why",
		 str_eq(resource.plural, "secrets")
			 ? json_string("looks at a Secret, and no dump has one")
		 : unread ? json_fmt("%s: %s", name, unread)
			  : json_fmt("%s are not in the dump", name));
	json_array_append_new(run->ret->left_out, line);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The kind as people write it. */
static const char *kind_word(const json_t *op)
{
	const struct operator_kind *row = operator_kind_find(json_str_or(json_at(op, "kind"), ""));

	return row ? resource_of(row).kind : "Pod"; /* evictions name pods alone */
}

static json_t *change_of(const struct rehearsal_op *op)
{
	const char *reason = json_str_at(op->op, "reason");
	json_t *change = json_object();

	json_put_str(change, "does", op->does);
	json_put_str(change, "kind", kind_word(op->op));
	json_put_str(change, "key", json_str_at(op->op, "key"));
	if (reason)
		json_put(change, "message",
			 json_fmt("%s: %s", reason, json_str_or(json_at(op->op, "message"), "")));
	if (str_eq(op->does, "status")) {
		const json_t *said = status_worst(op->after);

		/* What the object says of itself then. */
		if (said)
			json_put(change, "condition",
				 json_fmt("%s=%s %s: %s", json_str_or(json_at(said, "type"), ""),
					  json_str_or(json_at(said, "status"), ""),
					  json_str_or(json_at(said, "reason"), ""),
					  json_str_or(json_at(said, "message"), "")));
		json_put_bool(change, "troubled", status_needs_somebody(op->after));
	}
	if (op->before && op->after) {
		json_put(change, "differences", differences(op->before, op->after));
	} else if (op->after) {
		json_auto_t *fresh = json_copy((json_t *)op->after), *none = json_object();

		/* Metadata of a new object is its name. */
		json_object_del(fresh, "metadata");
		json_put(change, "differences", differences(none, fresh));
	}
	return change;
}

/* An event or a finding is not a difference. */
static bool differs(const struct rehearsal_op *op)
{
	return op->does && !str_eq(op->does, "event") && !str_eq(op->does, "finding");
}

static void keep_definition(json_t *definitions, const struct rehearsal_op *op)
{
	if (!op->after || !str_eq(json_str_at(op->op, "kind"), KIND_NAD) ||
	    (!str_eq(op->does, "create") && !str_eq(op->does, "patch")))
		return;
	json_object_set_new(definitions, json_str_or(json_at(op->op, "key"), ""),
			    json_deep_copy(op->after));
}

static void decided(void *arg, const struct rehearsal_step *step)
{
	struct run *run = arg;
	json_t *line, *plan = json_array(), *changes = json_array();
	bool is_different = step->err != NULL;

	run->ret->decided++;
	for (size_t i = 0; i < step->n; i++) {
		json_array_append(plan, (json_t *)step->ops[i].op);
		if (step->ops[i].does)
			json_array_append_new(changes, change_of(&step->ops[i]));
		keep_definition(run->ret->definitions, &step->ops[i]);
		is_different = is_different || differs(&step->ops[i]);
	}
	run->ret->differing += is_different;
	line = json_object();
	json_put_int(line, "step", (int64_t)run->ret->decided);
	json_put_str(line, "controller", step->controller);
	json_put_str(line, "key", step->key);
	json_put_str(line, "error", step->err ? step->err->text : NULL);
	json_put(line, "plan", plan);
	json_put(line, "changes", changes);
	if (!run->only || str_eq(run->only, step->controller) || str_eq(run->only, step->key))
		json_array_append(run->ret->steps, line);
	json_decref(line);
}

void rehearsed_run(const struct cli *cli, const json_t *world, const char *only,
		   struct rehearsed *ret)
{
	struct run run = {
		.index = json_at(world, CLI_DUMP),
		.unread = json_at(world, CLI_UNREAD),
		.only = only,
		.ret = ret,
	};

	*ret = (struct rehearsed){
		.steps = json_array(), .left_out = json_array(), .definitions = json_object()};
	rehearse(&(struct rehearsal_config){
		.objects = world,
		.ns = world_env(world, "namespace"),
		.resource_prefix = world_env(world, "resourcePrefix"),
		.config_ns = cli->config_ns,
		.cilium_config = json_str_at(run.index, "operator", "ciliumConfigMap"),
		.policy_namespaces = json_at(world, "env", "policyNamespaces"),
		.now = world_env(world, "now"),
		.webhooks = json_is_true(json_at(run.index, "operator", "webhooks")),
		.has = has,
		.decided = decided,
		.left_out = left_out,
		.arg = &run,
	});
}

void rehearsed_done(struct rehearsed *r)
{
	json_decref(r->steps);
	json_decref(r->left_out);
	json_decref(r->definitions);
}
