// SPDX-License-Identifier: Apache-2.0
/* Names and label selectors; see names.h for the sources of the rules. */
#include "reconcilers/core/names.h"

#include <assert.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

bool name_is_cni_network(const char *s)
{
	if (str_empty(s) || !name_is_alnum(s[0]))
		return false;
	for (; *s; s++)
		if (!name_is_alnum(*s) && *s != '_' && *s != '.' && *s != '-')
			return false;
	return true;
}

const char *name_interface_fault(const char *s)
{
	if (str_empty(s))
		return "is empty";
	if (strlen(s) > INTERFACE_NAME_MAX)
		return "is longer than the 15 bytes that a network device's name can have";
	if (str_eq(s, ".") || str_eq(s, ".."))
		return "is not a name that a network device can have";
	for (; *s; s++)
		if (*s == '/' || *s == ':' || (unsigned char)*s <= ' ' || *s == 0x7f)
			return "has a character that a network device's name cannot have";
	return NULL;
}

static void check_expression_values(const json_t *expression, const char *where, bool wanted,
				    struct problems *problems)
{
	const json_t *values = NULL;
	struct err err = {0};
	json_t *value;
	size_t i;

	if (json_get_strings(expression, where, "values", &values, &err)) {
		problem_add_err(problems, where, &err);
		return;
	}
	if (wanted != (json_array_size(values) > 0))
		problem_add(problems, "BadSelector", where, "operator %s %s",
			    json_str_at(expression, "operator"),
			    wanted ? "needs at least one of values"
				   : "takes no values: remove them");
	json_array_foreach (values, i, value)
		if (!name_is_label_value(json_string_value(value)))
			problem_add(problems, "BadSelector", where,
				    "values[%zu] is not a label value", i);
}

void label_selector_check(const json_t *selector, const char *where, struct problems *problems)
{
	const json_t *labels = NULL, *expressions = NULL;
	struct err err = {0};
	json_t *expression;
	size_t i;
	const char *key;
	json_t *value;

	assert(where && problems);
	if (json_get_object(selector, where, "matchLabels", &labels, &err) ||
	    json_get_array(selector, where, "matchExpressions", &expressions, &err)) {
		problem_add_err(problems, where, &err);
		return;
	}
	json_each (labels, key, value) {
		auto_free char *field = str_printf("%s.matchLabels", where);

		if (!name_is_qualified(key))
			problem_add(problems, "BadSelector", field, "\"%s\" is not a label key",
				    key);
		if (!name_is_label_value(json_string_value(value)))
			problem_add(problems, "BadSelector", field,
				    "the value of %s is not a label value: up to 63 letters, "
				    "digits, '-', '_' and '.'",
				    key);
	}
	json_array_foreach (expressions, i, expression) {
		auto_free char *field = str_printf("%s.matchExpressions[%zu]", where, i);
		const char *op = json_str_at(expression, "operator");

		if (!name_is_qualified(json_str_at(expression, "key")))
			problem_add(problems, "BadSelector", field,
				    "key is missing or not a label key");
		if (str_eq(op, "In") || str_eq(op, "NotIn"))
			check_expression_values(expression, field, true, problems);
		else if (str_eq(op, "Exists") || str_eq(op, "DoesNotExist"))
			check_expression_values(expression, field, false, problems);
		else
			problem_add(problems, "BadSelector", field,
				    "operator must be In, NotIn, Exists or DoesNotExist");
	}
}
