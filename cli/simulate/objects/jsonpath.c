// SPDX-License-Identifier: Apache-2.0
/*
 * A path is read step by step while it is followed: columns are few and short, so nothing is
 * compiled.
 */
#include "cli/simulate/objects/jsonpath.h"

#include <string.h>

#include "lib/json/json.h"

enum {
	PATH_MAX_LEN = 1024,
};

struct step {
	enum {
		STEP_MEMBER,
		STEP_INDEX,
		STEP_ALL,
		STEP_FILTER, /* items whose member `name` (a path) is `text` */
	} kind;
	char *name;
	char *text;
	int64_t index; /* negative: from the end */
};

static void step_done(struct step *step)
{
	free(step->name);
	free(step->text);
}

#define auto_step auto_call(step_done)

/* Characters up to one of `ends`, without the backslashes before others. Returns new. */
static char *take_name(const char **at, const char *ends)
{
	struct strbuf name = {0};

	for (; **at && !strchr(ends, **at); (*at)++) {
		if (**at == '\\' && (*at)[1])
			(*at)++;
		strbuf_addc(&name, **at);
	}
	return strbuf_take(&name);
}

static bool take(const char **at, const char *text)
{
	if (!str_starts(*at, text))
		return false;
	*at += strlen(text);
	return true;
}

/* 'text' or "text". Returns new; NULL when it does not end. */
static char *take_quoted(const char **at)
{
	const char quote[] = {**at, '\0'};
	auto_free char *text = NULL;

	(*at)++;
	text = take_name(at, quote);
	return take(at, quote) ? take_ptr(text) : NULL;
}

static bool is_quote(char c)
{
	return c == '\'' || c == '"';
}

/* After "[". */
static bool take_bracket(const char **at, struct step *step)
{
	auto_free char *number = NULL;

	if (take(at, "?(@")) {
		step->kind = STEP_FILTER;
		step->name = take_name(at, "= ");
		*at += strspn(*at, " ");
		if (!str_starts(step->name, ".") || !take(at, "=="))
			return false;
		*at += strspn(*at, " ");
		if (!is_quote(**at))
			return false;
		step->text = take_quoted(at);
		return step->text && take(at, ")]");
	}
	if (take(at, "*]")) {
		step->kind = STEP_ALL;
		return true;
	}
	if (is_quote(**at)) {
		step->kind = STEP_MEMBER;
		step->name = take_quoted(at);
		return step->name && take(at, "]");
	}
	step->kind = STEP_INDEX;
	number = take_name(at, "]");
	return str_to_int(number, INT32_MIN, INT32_MAX, &step->index) && take(at, "]");
}

static bool take_step(const char **at, struct step *step)
{
	if (take(at, "["))
		return take_bracket(at, step);
	if (!take(at, "."))
		return false;
	if (take(at, "*")) {
		step->kind = STEP_ALL;
		return true;
	}
	/* ".[0]" is "[0]". */
	if (take(at, "["))
		return take_bracket(at, step);
	step->kind = STEP_MEMBER;
	step->name = take_name(at, ".[");
	return *step->name != '\0';
}

int jsonpath_check(const char *path, struct err *err)
{
	const char *at = path;

	if (strlen(path) > PATH_MAX_LEN)
		return err_set(err, ERR_INVALID, "Invalid", "jsonPath: longer than %d bytes",
			       PATH_MAX_LEN);
	if (!*at)
		return err_set(err, ERR_INVALID, "Invalid", "jsonPath: is empty");
	while (*at) {
		auto_step struct step step = {0};

		if (!take_step(&at, &step))
			return err_set(
				err, ERR_INVALID, "Invalid",
				"jsonPath \"%s\": supported are .name, ['name'], [0], [*] and "
				"[?(@.name==\"text\")]",
				path);
	}
	return 0;
}

static const json_t *find_item(const json_t *value, const struct step *step, const char *rest)
{
	const json_t *item = NULL, *found = NULL;
	const char *key = NULL;
	json_t *member = NULL;
	size_t i = 0;

	json_array_foreach (value, i, item) {
		if (step->kind == STEP_FILTER &&
		    !str_eq(json_string_value(jsonpath_first(item, step->name)), step->text))
			continue;
		found = jsonpath_first(item, rest);
		if (found)
			return found;
	}
	if (step->kind == STEP_FILTER)
		return NULL;
	json_each (value, key, member) {
		found = jsonpath_first(member, rest);
		if (found)
			return found;
	}
	return NULL;
}

const json_t *jsonpath_first(const json_t *value, const char *path)
{
	const char *at = path;

	if (strlen(path) > PATH_MAX_LEN)
		return NULL;
	while (value && *at) {
		auto_step struct step step = {0};

		if (!take_step(&at, &step))
			return NULL;
		switch (step.kind) {
		case STEP_MEMBER:
			value = json_object_get(value, step.name);
			break;
		case STEP_INDEX:
			if (step.index < 0)
				step.index += (int64_t)json_array_size(value);
			value = step.index < 0 ? NULL : json_array_get(value, (size_t)step.index);
			break;
		case STEP_ALL:
		case STEP_FILTER:
			return find_item(value, &step, at);
		}
	}
	return value;
}
