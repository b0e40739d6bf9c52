// SPDX-License-Identifier: Apache-2.0
/* Table-driven checks of types and bounds; see fields.h. */
#include "reconcilers/core/fields.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

static bool is_one_of(const char *value, const char *words)
{
	size_t len = strlen(value);

	for (const char *word = words; word; word = strchr(word, ' ')) {
		word += *word == ' ';
		if (len && str_starts(word, value) && (word[len] == ' ' || !word[len]))
			return true;
	}
	return false;
}

static int check_string(const json_t *block, const char *where, const struct field *f,
			struct err *err)
{
	const char *value;

	if (json_get_str(block, where, f->name, NULL, &value, err))
		return -1;
	if (!value || !f->one_of || is_one_of(value, f->one_of))
		return 0;
	return err_set(err, ERR_INVALID, "BadField", "%s.%s: \"%.64s\" must be one of: %s", where,
		       f->name, value, f->one_of);
}

static int check_field(const json_t *block, const char *where, const struct field *f,
		       struct err *err)
{
	const json_t *value;
	int64_t number;
	bool flag;

	switch (f->type) {
	case FIELD_TYPE_TEXT:
		return check_string(block, where, f, err);
	case FIELD_TYPE_INT:
		return json_get_int(block, where, f->name, f->min, f->max, 0, &number, err);
	case FIELD_TYPE_BOOL:
		return json_get_bool(block, where, f->name, false, &flag, err);
	case FIELD_TYPE_TEXTS:
		return json_get_strings(block, where, f->name, &value, err);
	case FIELD_TYPE_OBJECT:
		return json_get_object(block, where, f->name, &value, err);
	case FIELD_TYPE_ARRAY:
		return json_get_array(block, where, f->name, &value, err);
	}
	return 0;
}

bool fields_check(const json_t *block, const char *where, const struct field *fields,
		  struct problems *problems)
{
	size_t before = problems->total;

	assert(where && fields && problems);
	for (const struct field *f = fields; f->name; f++) {
		auto_free char *path = NULL;
		struct err err = {0};

		assert(f->type != FIELD_TYPE_INT || f->min <= f->max);
		if (!check_field(block, where, f, &err))
			continue;
		path = str_printf("%s.%s", where, f->name);
		problem_add_err(problems, path, &err);
	}
	return problems->total == before;
}
