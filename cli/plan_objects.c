// SPDX-License-Identifier: Apache-2.0
/*
 * The objects are applied to a copy of the world, as `kubectl apply` would. The operator's
 * rehearsal then runs on that world, and for each object on the world that lacks it alone: what
 * differs between the two follows from that object.
 */
#include "cli/plan_objects.h"

#include <assert.h>
#include <string.h>

#include "cli/plan_schema.h"
#include "cli/print.h"
#include "cli/rehearsed.h"
#include "cli/source.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"
#include "reconcilers/core/differences.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/reconcile.h"

enum {
	/* Of one object, in a table. */
	LINES_MAX = 12,
};

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* ---- applying -------------------------------------------------------------------------------- */

/*
 * The object as it is there after `kubectl apply`, which leaves the status to others. Items of the
 * API server's lists do not say their type. Returns new.
 */
static json_t *applied(const json_t *present, const json_t *object)
{
	static const char *const others[] = {"apiVersion", "kind", "status"};
	const char *text = json_str_at(present, "metadata", "annotations", LAST_APPLIED);
	json_auto_t *last = text ? json_parse(text, strlen(text), NULL) : NULL;
	json_auto_t *now = json_deep_copy(object), *taken_out = NULL;
	json_t *after = json_deep_copy(present);

	/* A patch names the annotations that go one by one: those of others stay. */
	json_object_del(json_need_object(json_need_object(now, "metadata"), "annotations"),
			LAST_APPLIED);
	json_merge_patch(after, object);
	if (json_is_object(last))
		taken_out = json_merge_diff(last, now);
	if (taken_out)
		json_merge_patch(after, taken_out);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		json_object_del(after, others[i]);
		json_put(after, others[i], json_incref(json_at(present, others[i])));
	}
	return after;
}

/* An object that is younger than all that are there. The API server gives it a UID. Returns new. */
static json_t *created(const json_t *world, const json_t *object, const char *kind, const char *key)
{
	json_t *after = json_deep_copy(object);
	json_t *metadata = json_need_object(after, "metadata");

	json_object_del(after, "status");
	json_put_str(metadata, "creationTimestamp", world_env(world, "now"));
	if (!json_at(metadata, "uid"))
		json_put(metadata, "uid", json_fmt("planned:%s/%s", kind, key));
	return after;
}

static json_t *row_of(const json_t *object, const char *is)
{
	auto_free char *key = json_key(object);
	json_t *row = json_object();

	json_put_str(row, "kind", json_str_or(json_at(object, "kind"), "?"));
	json_put_str(row, "key", key);
	json_put_str(row, "is", is);
	return row;
}

/* The object with its type, as the server checks it: what applied() makes may lack it. */
static bool is_accepted(struct plan_schemas *schemas, const json_t *object, const json_t *after,
			json_t *faults)
{
	json_auto_t *whole = json_copy((json_t *)after);

	json_put(whole, "apiVersion", json_incref(json_at(object, "apiVersion")));
	json_put(whole, "kind", json_incref(json_at(object, "kind")));
	return plan_schemas_accept(schemas, whole, faults);
}

/* faults: of the object, which the server drops fields of, or refuses. */
static json_t *apply_one(const struct cli *cli, json_t *world, struct plan_schemas *schemas,
			 json_t *given, json_t *faults)
{
	const char *kind = source_kind(cli, given);
	json_auto_t *object = plan_schemas_prune(schemas, given, faults);
	auto_free char *key = json_key(object);
	const json_t *present = kind ? world_get(world, kind, key) : NULL;
	json_auto_t *after = NULL, *list = NULL;
	json_t *row;

	if (!kind || source_is_unread(world, kind)) {
		row = row_of(object, NULL);
		json_put_str(row, "nothing",
			     kind ? "what the cluster has of such objects cannot be read"
				  : "neither operator nor agents look at such objects");
		return row;
	}
	after = present ? applied(present, object) : created(world, object, kind, key);
	if (!is_accepted(schemas, object, after, faults)) {
		row = row_of(object, "refused");
		json_put_str(row, "nothing", "the API server would refuse it");
		return row;
	}
	list = present ? differences(present, after) : NULL;
	row = row_of(object, !present                    ? "created"
			     : json_array_size(list) > 0 ? "changed"
							 : "unchanged");
	json_put_str(row, "id", kind);
	if (json_array_size(list) > 0)
		json_object_set(row, "differences", list);
	json_object_set(json_need_object(world, kind), key, after);
	return row;
}

void plan_objects_apply(const struct cli *cli, json_t *world, const json_t *objects,
			struct plan_objects *ret)
{
	auto_plan_schemas struct plan_schemas *schemas = plan_schemas_new();
	json_t *object;
	size_t i;

	assert(json_is_object(world) && ret);
	json_array_foreach (objects, i, object) {
		json_auto_t *faults = json_array();
		json_t *row = apply_one(cli, world, schemas, object, faults);

		if (json_array_size(faults)) {
			json_object_set(row, "faults", faults);
			ret->troubled = true;
		}
		json_array_append_new(ret->rows, row);
	}
}

/* ---- what follows ---------------------------------------------------------------------------- */

static void add_deed(json_t *deeds, const json_t *step, json_t *deed)
{
	auto_free char *what =
		str_printf("%s %s %s", json_str_or(json_at(deed, "does"), ""),
			   json_str_or(json_at(deed, "kind"), ""), json_str_at(deed, "key"));

	json_object_set(deed, "controller", json_at(step, "controller"));
	json_object_set(deeds, what, deed);
}

/* Events say what the status says. */
static void add_deeds(json_t *deeds, const json_t *step)
{
	const char *error = json_str_at(step, "error");
	json_t *change;
	size_t i;

	json_array_foreach (json_at(step, "changes"), i, change)
		if (!str_eq(json_str_at(change, "does"), "event"))
			add_deed(deeds, step, change);
	if (error) {
		json_auto_t *deed = json_object();

		json_put_str(deed, "does", "fail");
		json_put_str(deed, "key", json_str_at(step, "key"));
		json_put_str(deed, "message", error);
		add_deed(deeds, step, deed);
	}
}

/* The world a while after these NetworkAttachmentDefinitions were written. Returns new. */
static json_t *with_definitions(const json_t *world, const json_t *definitions)
{
	json_t *copy = json_copy((json_t *)world), *all, *definition;
	const char *key;
	json_t *env;
	char text[RFC3339_SIZE];
	int64_t now_us;

	json_put(copy, KIND_NAD,
		 json_at(world, KIND_NAD) ? json_copy(json_at(world, KIND_NAD)) : json_object());
	all = json_at(copy, KIND_NAD);
	json_each (definitions, key, definition) {
		json_t *metadata = json_need_object(definition, "metadata");

		if (!json_at(metadata, "uid"))
			json_put(metadata, "uid", json_fmt("planned:%s/%s", KIND_NAD, key));
		json_object_set(all, key, definition);
	}
	/* The world when what was made just now is no longer fresh (OBJECT_FRESH_MS). */
	env = json_copy(json_at(copy, "env"));
	if (rfc3339_read(world_env(copy, "now"), &now_us)) {
		rfc3339_write(now_us + (int64_t)OBJECT_FRESH_MS * 1000, text);
		json_put_str(env, "now", text);
	}
	json_put(copy, "env", env);
	return copy;
}

static bool writes_definitions(const char *kind)
{
	static const char *const kinds[] = {KIND_MULTUS_CONFIG, KIND_SRIOV_NETWORK,
					    KIND_SRIOV_IB_NETWORK, KIND_OVS_NETWORK};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kind, kind_find(kinds[i])->kind))
			return true;
	return false;
}

/* Without any, nothing is said later that is not said at once, and a rehearsal is saved. */
static bool has_writers(const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach (rows, i, row)
		if (writes_definitions(json_str_at(row, "kind")))
			return true;
	return false;
}

/*
 * What is said of objects once the definitions are there: a config warns of a pool that is missing
 * when it has read back what it wrote.
 */
static void add_later_sayings(const struct cli *cli, const json_t *world, const json_t *definitions,
			      json_t *deeds)
{
	json_auto_t *later = with_definitions(world, definitions);
	struct rehearsed r;
	json_t *step, *change;
	size_t i, j;

	rehearsed_run(cli, later, NULL, &r);
	json_array_foreach (r.steps, i, step)
		json_array_foreach (json_at(step, "changes"), j, change)
			if (str_eq(json_str_at(change, "does"), "status") &&
			    writes_definitions(json_str_at(change, "kind")))
				add_deed(deeds, step, change);
	rehearsed_done(&r);
}

/* What the operator would do: { "<does> <kind> <key>": change with its "controller" }, new. */
static json_t *deeds_in(const struct cli *cli, const json_t *world, bool with_later,
			json_t *ret_left_out)
{
	json_t *deeds = json_object(), *step;
	struct rehearsed r;
	size_t i;

	rehearsed_run(cli, world, NULL, &r);
	json_array_foreach (r.steps, i, step)
		add_deeds(deeds, step);
	/* No object that is applied bears on the certificate of the webhooks. */
	json_array_foreach (r.left_out, i, step)
		if (ret_left_out && !str_eq(json_str_at(step, "controller"), "webhook-setup"))
			json_array_append(ret_left_out, step);
	if (with_later)
		add_later_sayings(cli, world, r.definitions, deeds);
	rehearsed_done(&r);
	return deeds;
}

/* The world with one object as it was before. Returns new. */
static json_t *without(const json_t *world, const json_t *before, const json_t *row)
{
	const char *kind = json_str_at(row, "id"), *key = json_str_at(row, "key");
	json_t *copy = json_copy((json_t *)world), *was = json_at(before, kind, key);

	json_put(copy, kind, json_copy(json_at(world, kind)));
	if (was)
		json_object_set(json_at(copy, kind), key, was);
	else
		json_object_del(json_at(copy, kind), key);
	return copy;
}

static bool is_about(const json_t *deed, const json_t *row)
{
	return str_eq(json_str_at(deed, "kind"), json_str_at(row, "kind")) &&
	       str_eq(json_str_at(deed, "key"), json_str_at(row, "key"));
}

static void put_follows(json_t *row, const json_t *with, const json_t *lacking,
			struct plan_objects *objects)
{
	json_t *follows = json_array(), *deed;
	const char *what;

	json_each (with, what, deed) {
		if (json_same(deed, json_object_get(lacking, what)))
			continue;
		json_array_append(follows, deed);
		if (is_about(deed, row) && json_is_true(json_at(deed, "troubled")))
			objects->troubled = true;
	}
	if (json_array_size(follows) > 0)
		json_object_set(row, "follows", follows);
	json_decref(follows);
}

static void put_nothing(json_t *row, const struct plan_objects *objects)
{
	if (str_eq(json_str_at(row, "is"), "unchanged"))
		json_put_str(row, "nothing", "the cluster has it like this");
	else if (str_eq(json_str_at(row, "id"), "configmaps"))
		json_put_str(row, "nothing",
			     "the operator decides as before; agents that are told to read it "
			     "offer what it selects of their nodes' devices");
	else if (json_array_size(objects->left_out) > 0)
		json_put_str(row, "nothing", "not all can be decided, the rest is as before");
	else
		json_put_str(row, "nothing", "operator and agents decide as before");
}

void plan_objects_follow(const struct cli *cli, const json_t *before, const json_t *world,
			 struct plan_objects *objects)
{
	bool with_later = has_writers(objects->rows);
	json_auto_t *with = deeds_in(cli, world, with_later, objects->left_out);
	json_t *row;
	size_t i;

	json_array_foreach (objects->rows, i, row) {
		if (str_eq(json_str_at(row, "is"), "created") ||
		    str_eq(json_str_at(row, "is"), "changed")) {
			json_auto_t *other = without(world, before, row);
			json_auto_t *lacking = deeds_in(cli, other, with_later, NULL);

			put_follows(row, with, lacking, objects);
		}
		if (!json_at(row, "follows") && !json_at(row, "nothing"))
			put_nothing(row, objects);
		json_object_del(row, "id");
	}
}

void plan_objects_done(struct plan_objects *objects)
{
	json_decref(objects->rows);
	json_decref(objects->left_out);
}

/* ---- what is printed ------------------------------------------------------------------------- */

/* What is said, by the object or of a change. Returns a new string, NULL: nothing. */
static json_t *saying(const json_t *deed)
{
	const char *said = json_str_or(json_at(deed, "condition"), json_str_at(deed, "message"));
	const json_t *first = json_array_get(json_at(deed, "differences"), 0);
	size_t n = json_array_size(json_at(deed, "differences"));
	json_auto_t *text = NULL;

	if (said)
		return json_string(said);
	if (!first || !str_eq(json_str_at(deed, "does"), "patch"))
		return NULL;
	text = differences_text(first);
	return n == 1 ? json_incref(text)
		      : json_fmt("%s, and %zu more", json_string_value(text), n - 1);
}

/* "operator: creates NetworkAttachmentDefinition ml/rail" */
static json_t *deed_text(const json_t *row, const json_t *deed)
{
	static const struct {
		const char *does, *words;
	} words[] = {
		{"create", "creates"},           {"patch", "changes"},
		{"delete", "deletes"},           {"evict", "evicts"},
		{"status", "says of"},           {"finding", "says of"},
		{"fail", "cannot decide about"},
	};
	const char *does = json_str_or(json_at(deed, "does"), ""), *verb = does;
	json_auto_t *text = saying(deed);
	const char *said = json_str_or(text, "");
	const char *kind = json_str_or(json_at(deed, "kind"), "");

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (str_eq(does, words[i].does))
			verb = words[i].words;
	if (!text && str_eq(does, "status"))
		verb = "writes the status of";
	if (is_about(deed, row))
		return json_fmt("operator: %s it%s%s", verb, *said ? ": " : "", said);
	return json_fmt("operator: %s %s%s%s%s%s", verb, kind, *kind ? " " : "",
			json_str_or(json_at(deed, "key"), ""), *said ? ": " : "", said);
}

/* What stands beside an object, line by line. Returns new. */
static json_t *lines_of(const json_t *row)
{
	json_t *lines = json_array(), *item;
	size_t i;

	json_array_foreach (json_at(row, "faults"), i, item)
		json_array_append(lines, json_at(item, "message"));
	json_array_foreach (json_at(row, "differences"), i, item)
		json_array_append_new(lines, differences_text(item));
	json_array_foreach (json_at(row, "follows"), i, item)
		json_array_append_new(lines, deed_text(row, item));
	if (json_at(row, "nothing"))
		json_array_append_new(lines, json_fmt("nothing follows: %s",
						      json_string_value(json_at(row, "nothing"))));
	return lines;
}

static void add_lines(json_t *table, const json_t *row)
{
	json_auto_t *lines = lines_of(row);
	size_t n = json_array_size(lines);

	for (size_t i = 0; i < n && i <= LINES_MAX; i++) {
		json_t *line = json_object();

		json_put(line, "object",
			 i > 0 ? json_string("")
			       : json_fmt("%s %s", json_str_or(json_at(row, "kind"), ""),
					  json_str_or(json_at(row, "key"), "")));
		json_put_str(line, "is", i > 0 ? "" : json_str_at(row, "is"));
		json_put(line, "what",
			 i < LINES_MAX ? json_incref(json_array_get(lines, i))
				       : json_fmt("and %zu more: -o json has all", n - i));
		json_array_append_new(table, line);
	}
}

void plan_objects_print(struct strbuf *out, const struct plan_objects *objects)
{
	static const struct column columns[] = {
		{"OBJECT", "object"}, {"IS", "is"}, {"WHAT", "what"}};
	static const struct column left[] = {{"NOT DECIDED", "controller"}, {"WHY", "why"}};
	json_auto_t *table = json_array();
	json_t *row;
	size_t i;

	json_array_foreach (objects->rows, i, row)
		add_lines(table, row);
	print_part(out, columns, ARRAY_LEN(columns), table);
	print_part(out, left, ARRAY_LEN(left), objects->left_out);
}
