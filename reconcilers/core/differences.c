// SPDX-License-Identifier: Apache-2.0
/*
 * Both values are walked side by side, down to what is neither object nor list. edit.c puts the
 * result into events, the command line shows it before it applies or replays.
 */
#include "reconcilers/core/differences.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* How much of a value is shown. */
enum { VALUE_MAX = 80 };

/* What identifies an item of a list, in Kubernetes and with us. */
static const char *const identities[] = {"type", "pciAddress", "name"};

static void compare(json_t *list, const char *path, const json_t *before, const json_t *after);

static void put_text(json_t *line, const char *key, const json_t *value)
{
	auto_free char *text = value ? json_text(value) : NULL;

	json_put_str(line, key, text);
}

static void compare_member(json_t *list, const char *path, const char *key, const json_t *before,
			   const json_t *after)
{
	auto_free char *below = str_printf("%s%s%s", path, *path ? "." : "", key);

	compare(list, below, json_object_get(before, key), json_object_get(after, key));
}

/* Do all items have it, each another one? */
static bool identifies(const char *key, const json_t *items)
{
	json_auto_t *seen = json_object();
	json_t *item;
	size_t i;

	json_array_foreach (items, i, item) {
		const char *value = json_str_at(item, key);

		if (!value || json_object_get(seen, value))
			return false;
		json_put_bool(seen, value, true);
	}
	return true;
}

static void compare_identified(json_t *list, const char *path, const char *key,
			       const json_t *before, const json_t *after)
{
	json_t *item;
	size_t i;

	json_array_foreach (before, i, item) {
		const char *value = json_str_at(item, key);
		auto_free char *below = str_printf("%s[%s]", path, value);

		compare(list, below, item, json_find(after, key, value));
	}
	json_array_foreach (after, i, item) {
		const char *value = json_str_at(item, key);
		auto_free char *below = str_printf("%s[%s]", path, value);

		if (!json_find(before, key, value))
			compare(list, below, NULL, item);
	}
}

static void compare_lists(json_t *list, const char *path, const json_t *before, const json_t *after)
{
	size_t n = json_array_size(before), m = json_array_size(after);

	for (size_t i = 0; i < ARRAY_LEN(identities) && n + m > 0; i++)
		if (identifies(identities[i], before) && identifies(identities[i], after)) {
			compare_identified(list, path, identities[i], before, after);
			return;
		}
	for (size_t i = 0; i < n || i < m; i++) {
		auto_free char *below = str_printf("%s[%zu]", path, i);

		compare(list, below, json_array_get(before, i), json_array_get(after, i));
	}
}

/* Absent, or the same of what the other one is: then there is something to go into. */
static bool is_like(const json_t *value, const json_t *other)
{
	return !value || json_typeof(value) == json_typeof(other);
}

static void compare(json_t *list, const char *path, const json_t *before, const json_t *after)
{
	const json_t *there;

	before = json_is_null(before) ? NULL : before;
	after = json_is_null(after) ? NULL : after;
	there = before ? before : after;
	if (json_same(before, after))
		return;
	if (json_object_size(there) > 0 && is_like(before, there) && is_like(after, there)) {
		const char *key;
		json_t *value;

		json_each (before, key, value)
			compare_member(list, path, key, before, after);
		json_each (after, key, value)
			if (!json_object_get(before, key))
				compare_member(list, path, key, before, after);
	} else if (json_array_size(there) > 0 && is_like(before, there) && is_like(after, there)) {
		compare_lists(list, path, before, after);
	} else {
		json_t *line = json_object();

		json_put_str(line, "path", path);
		put_text(line, "before", before);
		put_text(line, "after", after);
		json_array_append_new(list, line);
	}
}

static void add_clipped(struct strbuf *out, const char *text)
{
	size_t len = text ? str_clip(text, strlen(text), VALUE_MAX) : 0;

	strbuf_adds(out, text ? "" : "nothing");
	strbuf_add(out, text ? text : "", len);
	strbuf_adds(out, text && text[len] ? "…" : "");
}

json_t *differences_text(const json_t *difference)
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

json_t *differences(const json_t *before, const json_t *after)
{
	json_t *list = json_array();

	compare(list, "", before, after);
	return list;
}
