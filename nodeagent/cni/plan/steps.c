// SPDX-License-Identifier: Apache-2.0
/*
 * A planner's list is also the record of what was done: undo is a table from each step to its
 * opposite, CHECK looks for each step's effect in a snapshot. What a step means to the kernel is in
 * nodeagent/cni/execute/messages.c.
 */
#include "nodeagent/cni/plan/steps.h"

#include <assert.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/look.h"

static const struct {
	const char *what, *undo;
} kinds[] = {
	{"veth", "unlink"},           {"ipoib", "unlink"},      {"upper", "unlink"},
	{"address", "unaddress"},     {"unaddress", "address"}, {"route", "unroute"},
	{"unroute", "route"},         {"rule", "unrule"},       {"unrule", "rule"},
	{"neighbour", "unneighbour"}, {"marks", "unmarks"},
};

static bool is_place(const char *in)
{
	return str_eq(in, "pod") || str_eq(in, "host");
}

json_t *steps_add(json_t *steps, const char *in, const char *what, const char *dev)
{
	json_t *step = json_object();

	assert(is_place(in) && what);
	json_put_str(step, "in", in);
	json_put_str(step, "do", what);
	json_put_str(step, "dev", dev);
	json_array_append_new(steps, step);
	return step;
}

json_t *steps_add_shared(json_t *steps, const char *what, const char *dev)
{
	json_t *step = steps_add(steps, "host", what, dev);

	json_put_bool(step, "shared", true);
	return step;
}

json_t *steps_add_sysctl(json_t *steps, const char *in, json_t *path_new, const char *value)
{
	json_t *step = steps_add(steps, in, "sysctl", NULL);

	json_put(step, "path", path_new);
	json_put_str(step, "value", value);
	json_put_bool(step, "optional", true);
	return step;
}

static json_t *undo_one(const json_t *step)
{
	const char *what = json_str_at(step, "do");
	const json_t *was = json_at(step, "was");
	json_t *back = NULL;

	if (json_is_true(json_at(step, "shared")) ||
	    (str_eq(what, "unroute") && !json_at(step, "dev")))
		return NULL;
	if (str_eq(what, "link") && json_object_size(was) > 0) {
		back = json_deep_copy(was);
		json_put_str(back, "in", json_str_at(step, "in"));
		json_put_str(back, "do", "link");
		json_put_str(back, "dev", json_str_at(step, "dev"));
	} else if (str_eq(what, "vf")) {
		back = json_deep_copy(was);
		json_put_str(back, "in", json_str_at(step, "in"));
		json_put_str(back, "do", "vf");
		json_put_str(back, "dev", json_str_at(step, "dev"));
		json_put(back, "vf", json_deep_copy(json_at(step, "vf")));
	} else if (str_eq(what, "move")) {
		back = json_object();
		json_put_str(back, "in", str_eq(json_str_at(step, "in"), "pod") ? "host" : "pod");
		json_put_str(back, "do", "move");
		json_put_str(back, "dev", json_str_at(step, "as"));
		json_put_str(back, "as", json_str_at(step, "dev"));
	} else if (str_eq(what, "mac") && was) {
		back = json_deep_copy(step);
		json_put_str(back, "mac", json_string_value(was));
	} else if (str_eq(what, "sysctl") && was) {
		back = json_deep_copy(step);
		json_put_str(back, "value", json_string_value(was));
		json_put_str(back, "was", json_str_at(step, "value"));
	}
	for (size_t i = 0; i < ARRAY_LEN(kinds) && !back; i++) {
		if (!str_eq(what, kinds[i].what))
			continue;
		back = json_deep_copy(step);
		json_put_str(back, "do", kinds[i].undo);
		/* Another NIC's route may have the same destination. */
		if (str_eq(what, "unroute"))
			json_put_bool(back, "beside", true);
	}
	/* Where it was the kernel may give it another number; this one we have given. */
	if (!str_eq(what, "ipoib"))
		(void)json_object_del(back, "index");
	return back;
}

json_t *steps_undo(const json_t *done)
{
	json_t *undo = json_array();

	for (size_t i = json_array_size(done); i-- > 0;) {
		json_t *back = undo_one(json_array_get(done, i));

		if (back)
			json_array_append_new(undo, back);
	}
	return undo;
}

void steps_number(json_t *steps, const char *in, const json_t *link)
{
	const char *name = json_str_at(link, "name");
	size_t i;
	json_t *step;

	assert(is_place(in));
	json_array_foreach (steps, i, step) {
		const char *what = json_str_at(step, "do");

		if (!name || !str_eq(json_str_at(step, "in"), in) ||
		    !str_eq(json_str_at(step, "dev"), name))
			continue;
		json_put_int(step, "index", look_number(link, "index"));
		if (str_eq(what, "move") || str_eq(what, "unlink"))
			return;
		if (str_eq(what, "rename"))
			name = json_str_at(step, "as");
	}
}

json_t *steps_in(const json_t *steps, const char *in)
{
	json_t *some = json_array();
	size_t i;
	json_t *step;

	assert(is_place(in));
	json_array_foreach (steps, i, step)
		if (str_eq(json_str_at(step, "in"), in))
			json_array_append(some, step);
	return some;
}

/* Do both agree in these members? One that both lack counts as equal. */
static bool members_agree(const json_t *a, const json_t *b, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!json_same(json_at(a, keys[i]), json_at(b, keys[i])))
			return false;
	return true;
}

static bool has_alike(const json_t *look, const char *list, const json_t *step,
		      const char *const *keys, size_t n)
{
	size_t i;
	json_t *item;

	json_array_foreach (json_at(look, list), i, item)
		if (members_agree(item, step, keys, n))
			return true;
	return false;
}

static bool step_holds(const json_t *step, const json_t *look)
{
	static const char *const route[] = {"family", "table", "dst", "gw", "dev"};
	static const char *const rule[] = {"family", "table", "from", "to", "mark"};
	static const char *const neighbour[] = {"address", "mac", "dev"};
	static const char *const address[] = {"address", "dev"};
	const char *what = json_str_at(step, "do");

	if (str_eq(what, "route"))
		return has_alike(look, "routes", step, route, ARRAY_LEN(route));
	if (str_eq(what, "rule"))
		return has_alike(look, "rules", step, rule, ARRAY_LEN(rule));
	if (str_eq(what, "neighbour"))
		return has_alike(look, "neighbours", step, neighbour, ARRAY_LEN(neighbour));
	if (str_eq(what, "address"))
		return has_alike(look, "addresses", step, address, ARRAY_LEN(address));
	if (str_eq(what, "veth") || (str_eq(what, "link") && !json_is_false(json_at(step, "up"))))
		return look_link(look, json_str_at(step, "dev")) != NULL;
	return true;
}

const json_t *steps_missing(const json_t *done, const json_t *pod, const json_t *host)
{
	size_t i;
	json_t *step;

	json_array_foreach (done, i, step)
		if (!step_holds(step, str_eq(json_str_at(step, "in"), "pod") ? pod : host))
			return step;
	return NULL;
}

char *step_text(const json_t *step)
{
	static const struct {
		const char *key, *word;
	} words[] = {
		{"dst", " "},         {"address", " "},     {"path", " "},
		{"value", " = "},     {"from", " from "},   {"to", " to "},
		{"mark", " mark "},   {"gw", " via "},      {"dev", " dev "},
		{"peer", " peer "},   {"table", " table "}, {"priority", " priority "},
		{"mac", " mac "},     {"mtu", " mtu "},     {"txqlen", " txqlen "},
		{"group", " group "},
	};
	struct strbuf text = {0};

	strbuf_adds(&text, json_str_or(json_at(step, "do"), "step"));
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		const json_t *value = json_at(step, words[i].key);

		if (json_is_string(value))
			strbuf_addf(&text, "%s%s", words[i].word, json_string_value(value));
		else if (json_is_integer(value))
			strbuf_addf(&text, "%s%lld", words[i].word,
				    (long long)json_integer_value(value));
	}
	strbuf_addf(&text, " in the %s",
		    str_eq(json_str_at(step, "in"), "pod") ? "pod" : "node's namespace");
	return strbuf_take(&text);
}
