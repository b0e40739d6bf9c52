// SPDX-License-Identifier: Apache-2.0
/* Sets of paths: their arithmetic, and their two written forms. Walks of values: walk.c. */
#include "cli/simulate/objects/fields.h"

#include <string.h>

#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/fields_internal.h"
#include "lib/json/json.h"
#include "lib/json/keys.h"

#define MEMBER "."

bool fields_empty(const json_t *set)
{
	return json_object_size(set) == 0;
}

void fields_mark(json_t *set)
{
	json_object_set_new(set, MEMBER, json_true());
}

bool fields_has(const json_t *set)
{
	return json_object_get(set, MEMBER) != NULL;
}

void fields_put(json_t *set, const char *element, json_t *below)
{
	if (fields_empty(below))
		json_decref(below);
	else
		json_object_set_new(set, element, below);
}

json_t *fields_read(const json_t *fields_v1)
{
	json_t *set = json_object();
	const char *element = NULL;
	json_t *below = NULL;

	json_each (fields_v1, element, below) {
		json_t *sub = NULL;

		if (str_eq(element, MEMBER)) {
			fields_mark(set);
			continue;
		}
		sub = fields_read(below);
		if (fields_empty(sub))
			fields_mark(sub);
		fields_put(set, element, sub);
	}
	return set;
}

json_t *fields_write(const json_t *set)
{
	json_t *out = json_object();
	size_t n;
	auto_free const char **names = json_sorted_keys(set, &n);

	for (size_t i = 0; i < n; i++) {
		const json_t *below = json_object_get(set, names[i]);

		if (!str_eq(names[i], MEMBER))
			json_object_set_new(out, names[i], fields_write(below));
		else if (json_object_size(set) > 1)
			json_object_set_new(out, MEMBER, json_object());
	}
	return out;
}

void fields_add(json_t *set, const json_t *other)
{
	const char *element = NULL;
	json_t *below = NULL;

	json_each (other, element, below) {
		json_t *mine = json_object_get(set, element);

		if (json_is_object(mine))
			fields_add(mine, below);
		else if (!mine)
			json_object_set_new(set, element, json_deep_copy(below));
	}
}

json_t *fields_minus(const json_t *a, const json_t *b)
{
	json_t *left = json_object();
	const char *element = NULL;
	json_t *below = NULL;

	json_each (a, element, below) {
		const json_t *other = json_object_get(b, element);

		if (!other)
			json_object_set_new(left, element, json_deep_copy(below));
		else if (json_is_object(below))
			fields_put(left, element, fields_minus(below, other));
	}
	return left;
}

json_t *fields_common(const json_t *a, const json_t *b)
{
	json_t *both = json_object();
	const char *element = NULL;
	json_t *below = NULL;

	json_each (a, element, below) {
		const json_t *other = json_object_get(b, element);

		if (!other)
			continue;
		if (json_is_object(below))
			fields_put(both, element, fields_common(below, other));
		else
			fields_mark(both);
	}
	return both;
}

/* ---- paths as text --------------------------------------------------------------------------- */

static void add_keys(struct strbuf *path, const char *text)
{
	json_auto_t *keys = json_parse(text, strlen(text), NULL);
	const char *key = NULL;
	json_t *value = NULL;
	bool first = true;

	strbuf_addc(path, '[');
	json_each (keys, key, value) {
		auto_free char *written = json_text(value);

		strbuf_addf(path, "%s%s=%s", first ? "" : ",", key, written);
		first = false;
	}
	strbuf_addc(path, ']');
}

/* Members of one level come before those below them. */
static void add_causes(const json_t *set, struct strbuf *path, const char *message, json_t *causes)
{
	size_t n, len = path->len;
	auto_free const char **names = json_sorted_keys(set, &n);
	const char *rest;

	for (int below = 0; below < 2; below++) {
		for (size_t i = 0; i < n; i++) {
			const json_t *sub = json_object_get(set, names[i]);

			if (str_eq(names[i], MEMBER))
				continue;
			rest = strlen(names[i]) > 2 ? names[i] + 2 : "";
			if (str_starts(names[i], "k:"))
				add_keys(path, rest);
			else if (str_starts(names[i], "v:"))
				strbuf_addf(path, "[=%s]", rest);
			else if (str_starts(names[i], "i:"))
				strbuf_addf(path, "[%s]", rest);
			else
				strbuf_addf(path, ".%s", rest);
			if (below)
				add_causes(sub, path, message, causes);
			else if (fields_has(sub))
				cause_add(causes, "FieldManagerConflict", strbuf_str(path), "%s",
					  message);
			strbuf_cut(path, len);
		}
	}
}

void fields_add_causes(const json_t *set, const char *message, json_t *causes)
{
	auto_strbuf struct strbuf path = {0};

	add_causes(set, &path, message, causes);
}
