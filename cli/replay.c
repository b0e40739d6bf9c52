/*
 * The operator's rehearsal, written down. See the header.
 */
#include "cli/replay.h"

#include <string.h>

#include "cli/differences.h"
#include "cli/print.h"
#include "cli/source.h"
#include "cli/support_list.h"
#include "lib/json/json.h"
#include "operator/rehearsal.h"
#include "reconcilers/core/reconcile.h"

enum {
	/* Of one operation, in a table. */
	ROWS_MAX = 12,
	VALUE_MAX = 80,
};

const struct cli_field replay_fields[] = {
	{"time", "string", "at which is decided: when the dump was made"},
	{"decided", "integer", "how often something was decided, changes or not"},
	{"steps[].step", "integer", "which decision, from 1"},
	{"steps[].controller", "string", "who decides: controllers as in the operator's metrics"},
	{"steps[].key", "string", "NAMESPACE/NAME or NAME of the object that it is about"},
	{"steps[].error", "string", "why nothing can be decided; absent: it can"},
	{"steps[].plan[]", "object",
	 "operations in order, as reconcilers/core/plan.h has them; those that change nothing as "
	 "well"},
	{"steps[].changes[].does", "string",
	 "create, patch, delete, status, evict; event, finding: people are told"},
	{"steps[].changes[].kind", "string", "of the object"},
	{"steps[].changes[].key", "string", "of the object"},
	{"steps[].changes[].message", "string", "of an event or a finding"},
	{"steps[].changes[].differences[].path", "string", "of a field"},
	{"steps[].changes[].differences[].before", "string",
	 "its value in the dump as JSON; absent: none"},
	{"steps[].changes[].differences[].after", "string",
	 "its value as the operator would write it; absent: none"},
	{"leftOut[].controller", "string", "decides nothing here"},
	{"leftOut[].why", "string", "what is not in the dump"},
	{0},
};

struct replay {
	const struct cli *cli;
	const json_t *index; /* of the dump; NULL: there is none */
	const char *only;    /* argument: this controller or key; NULL: all */
	json_t *steps, *left_out;
	size_t decided, differing;
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

/* The index of a dump names what could not be read; without one all was. */
static bool has(void *arg, const struct operator_kind *kind)
{
	const struct replay *replay = arg;
	const struct kube_resource resource = resource_of(kind);
	auto_free char *all = support_resource_name(&resource);
	auto_free char *one = kind->name ? str_printf("%s %s", all, kind->name) : str_dup(all);

	if (json_at(find_part(replay->index, all), "failed") ||
	    json_at(find_part(replay->index, one), "failed"))
		return false;
	return kind->optional || !json_at(find_part(replay->index, all), "skipped");
}

static void left_out(void *arg, const char *controller, const struct operator_kind *kind)
{
	struct replay *replay = arg;
	const struct kube_resource resource = resource_of(kind);
	auto_free char *name = support_resource_name(&resource);
	json_t *line = json_object();

	json_put_str(line, "controller", controller);
	json_put(line, "why",
		 str_eq(resource.plural, "secrets")
			 ? json_string("looks at a Secret, and no dump has one")
			 : json_fmt("%s are not in the dump", name));
	json_array_append_new(replay->left_out, line);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Metadata of a new object is its name. */
static json_t *without_metadata(const json_t *object)
{
	json_t *copy = json_copy((json_t *)object);

	json_object_del(copy, "metadata");
	return copy;
}

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
	if (op->before && op->after) {
		json_put(change, "differences", differences(op->before, op->after));
	} else if (op->after) {
		json_auto_t *fresh = without_metadata(op->after), *none = json_object();

		json_put(change, "differences", differences(none, fresh));
	}
	return change;
}

/* Being told of something is no difference. */
static bool differs(const struct rehearsal_op *op)
{
	return op->does && !str_eq(op->does, "event") && !str_eq(op->does, "finding");
}

static void decided(void *arg, const struct rehearsal_step *step)
{
	struct replay *replay = arg;
	json_t *line, *plan = json_array(), *changes = json_array();
	bool is_different = step->err != NULL;

	replay->decided++;
	for (size_t i = 0; i < step->n; i++) {
		json_array_append(plan, (json_t *)step->ops[i].op);
		if (step->ops[i].does)
			json_array_append_new(changes, change_of(&step->ops[i]));
		is_different = is_different || differs(&step->ops[i]);
	}
	replay->differing += is_different;
	line = json_object();
	json_put_int(line, "step", (int64_t)replay->decided);
	json_put_str(line, "controller", step->controller);
	json_put_str(line, "key", step->key);
	json_put_str(line, "error", step->err ? step->err->text : NULL);
	json_put(line, "plan", plan);
	json_put(line, "changes", changes);
	if (!replay->only || str_eq(replay->only, step->controller) ||
	    str_eq(replay->only, step->key))
		json_array_append(replay->steps, line);
	json_decref(line);
}

/* ---- what is printed ------------------------------------------------------------------------- */

static json_t *row_of(const json_t *step)
{
	json_t *row = json_object();

	json_object_set(row, "step", json_at(step, "step"));
	json_object_set(row, "controller", json_at(step, "controller"));
	json_object_set(row, "key", json_at(step, "key"));
	return row;
}

/* A row that goes on with the one before. */
static json_t *next_row(void)
{
	static const char *const members[] = {"step", "controller", "key", "does", "object"};
	json_t *row = json_object();

	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		json_put_str(row, members[i], "");
	return row;
}

static void add_clipped(struct strbuf *out, const char *text)
{
	size_t len = text ? str_clip(text, strlen(text), VALUE_MAX) : 0;

	strbuf_adds(out, text ? "" : "nothing");
	strbuf_add(out, text ? text : "", len);
	strbuf_adds(out, text && text[len] ? "…" : "");
}

static json_t *difference_text(const json_t *difference)
{
	auto_strbuf struct strbuf text = {0};

	strbuf_addf(&text, "%s: ", json_str_or(json_at(difference, "path"), ""));
	if (json_at(difference, "before")) {
		add_clipped(&text, json_str_at(difference, "before"));
		strbuf_adds(&text, " -> ");
	}
	add_clipped(&text, json_str_at(difference, "after"));
	return json_string(strbuf_str(&text));
}

/* What follows from the others, and tells a person nothing. Returns new. */
static json_t *telling(const json_t *list)
{
	static const char *const idle[] = {".lastTransitionTime", ".observedGeneration", "].type"};
	json_t *kept = json_array(), *difference;
	size_t i;

	json_array_foreach (list, i, difference) {
		const char *path = json_str_or(json_at(difference, "path"), "");
		bool is_idle = false;

		for (size_t k = 0; k < ARRAY_LEN(idle); k++)
			is_idle = is_idle || str_ends(path, idle[k]);
		if (!is_idle)
			json_array_append(kept, difference);
	}
	return kept;
}

static void add_change_rows(json_t *rows, const json_t *step, const json_t *change)
{
	json_auto_t *list = telling(json_at(change, "differences"));
	size_t n = json_array_size(list);
	json_t *row = row_of(step);

	json_object_set(row, "does", json_at(change, "does"));
	json_put(row, "object",
		 json_fmt("%s %s", json_str_or(json_at(change, "kind"), ""),
			  json_str_or(json_at(change, "key"), "")));
	if (json_at(change, "message"))
		json_object_set(row, "what", json_at(change, "message"));
	json_array_append(rows, row);
	for (size_t i = 0; i < n; i++) {
		if (i > 0) {
			json_decref(row);
			row = next_row();
			json_array_append(rows, row);
		}
		if (i == ROWS_MAX) {
			json_put(row, "what", json_fmt("and %zu more: -o json has all", n - i));
			break;
		}
		json_put(row, "what", difference_text(json_array_get(list, i)));
	}
	json_decref(row);
}

/* all: also decisions that change nothing. */
static json_t *rows_of(const json_t *steps, bool all)
{
	json_t *rows = json_array(), *step, *change;
	size_t i, k;

	json_array_foreach (steps, i, step) {
		const json_t *changes = json_at(step, "changes");
		const char *error = json_str_at(step, "error");

		if (error || (all && json_array_size(changes) == 0)) {
			json_t *row = row_of(step);

			json_put_str(row, "what", error ? error : "all is so already");
			json_array_append_new(rows, row);
		}
		json_array_foreach (changes, k, change)
			add_change_rows(rows, step, change);
	}
	return rows;
}

static void print_tables(const struct replay *replay, const char *time, struct strbuf *out)
{
	static const struct column steps[] = {
		{"STEP", "step"}, {"CONTROLLER", "controller"}, {"KEY", "key"},
		{"DOES", "does"}, {"OBJECT", "object"},         {"WHAT", "what"},
	};
	static const struct column left[] = {{"NOT DECIDED", "controller"}, {"WHY", "why"}};
	json_auto_t *rows = rows_of(replay->steps, replay->only != NULL);

	print_part(out, steps, ARRAY_LEN(steps), rows);
	print_part(out, left, ARRAY_LEN(left), replay->left_out);
	strbuf_addf(out, "%s%zu decisions as of %s, %zu of them about what is not so\n",
		    out->len ? "\n" : "", replay->decided, time, replay->differing);
}

int replay_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	json_auto_t *world = source_world(cli), *steps = json_array(), *left = json_array();
	struct replay replay = {
		.cli = cli,
		.index = json_at(cli->world, CLI_DUMP),
		.only = cli->args_len > 0 ? cli->args[0] : NULL,
		.steps = steps,
		.left_out = left,
	};
	const char *now = world_env(world, "now");

	rehearse(&(struct rehearsal_config){
		.objects = cli->world,
		.ns = world_env(world, "namespace"),
		.resource_prefix = world_env(world, "resourcePrefix"),
		.config_ns = cli->config_ns,
		.policy_namespaces = json_at(world, "env", "policyNamespaces"),
		.now = now,
		.webhooks = json_is_true(json_at(replay.index, "operator", "webhooks")),
		.has = has,
		.decided = decided,
		.left_out = left_out,
		.arg = &replay,
	});
	if (replay.only && json_array_size(steps) == 0)
		return err_set(err, ERR_INVALID, "DecisionNotFound",
			       "%.128s: no controller of that name, and nothing is decided about "
			       "that key",
			       replay.only);
	*ret_status = replay.differing > 0 ? CLI_FOUND : CLI_OK;
	if (cli->output != CLI_TABLE) {
		json_auto_t *members =
			json_pack("{s:s, s:I, s:O, s:O}", "time", now, "decided",
				  (json_int_t)replay.decided, "steps", steps, "leftOut", left);

		print_document(cli, out, members);
		return 0;
	}
	print_tables(&replay, now, out);
	return 0;
}
