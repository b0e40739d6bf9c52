// SPDX-License-Identifier: Apache-2.0
/*
 * rehearsed.c has the steps; here they become rows, without what is so already and without members
 * of conditions that follow from others. One controller or key may be named.
 */
#include "cli/replay.h"

#include "cli/print.h"
#include "cli/rehearsed.h"
#include "cli/source.h"
#include "lib/json/json.h"
#include "reconcilers/core/differences.h"
#include "reconcilers/core/reconcile.h"

enum {
	/* Of one operation, in a table. */
	ROWS_MAX = 12,
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
	{"steps[].changes[].condition", "string",
	 "of a status: the worst condition, or Ready, as TYPE=STATUS REASON: MESSAGE"},
	{"steps[].changes[].troubled", "boolean", "of a status: does somebody have to act?"},
	{"steps[].changes[].differences[].path", "string", "of a field"},
	{"steps[].changes[].differences[].before", "string",
	 "its value in the dump as JSON; absent: none"},
	{"steps[].changes[].differences[].after", "string",
	 "its value as the operator would write it; absent: none"},
	{"leftOut[].controller", "string", "decides nothing here"},
	{"leftOut[].why", "string", "what is not in the dump"},
	{0},
};

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

/* What follows from the others, and is of no use to a person. Returns new. */
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
			json_replace(&row, next_row());
			json_array_append(rows, row);
		}
		if (i == ROWS_MAX) {
			json_put(row, "what", json_fmt("and %zu more: -o json has all", n - i));
			break;
		}
		json_put(row, "what", differences_text(json_array_get(list, i)));
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

static void print(const struct cli *cli, const struct rehearsed *r, const char *time,
		  struct strbuf *out)
{
	json_auto_t *members = NULL;

	if (cli->output == CLI_TABLE) {
		static const struct column steps[] = {
			{"STEP", "step"}, {"CONTROLLER", "controller"}, {"KEY", "key"},
			{"DOES", "does"}, {"OBJECT", "object"},         {"WHAT", "what"},
		};
		static const struct column left[] = {{"NOT DECIDED", "controller"}, {"WHY", "why"}};
		json_auto_t *rows = rows_of(r->steps, cli->args_len > 0);

		print_part(out, steps, ARRAY_LEN(steps), rows);
		print_part(out, left, ARRAY_LEN(left), r->left_out);
		strbuf_addf(out, "%s%zu decisions as of %s, %zu of them about what is not so\n",
			    out->len ? "\n" : "", r->decided, time, r->differing);
		return;
	}
	members = json_pack("{s:s, s:I, s:O, s:O}", "time", time, "decided", (json_int_t)r->decided,
			    "steps", r->steps, "leftOut", r->left_out);
	print_document(cli, out, members);
}

int replay_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	       struct err *err)
{
	json_auto_t *world = source_world(cli);
	const char *only = cli->args_len > 0 ? cli->args[0] : NULL;
	struct rehearsed r;
	int result = 0;

	rehearsed_run(cli, world, only, &r);
	*ret_status = r.differing > 0 ? CLI_FOUND : CLI_OK;
	if (only && json_array_size(r.steps) == 0)
		result = err_set(err, ERR_INVALID, "DecisionNotFound",
				 "%.128s: no controller of that name, and nothing is decided about "
				 "that key",
				 only);
	else
		print(cli, &r, world_env(world, "now"), out);
	rehearsed_done(&r);
	return result;
}
