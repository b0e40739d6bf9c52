// SPDX-License-Identifier: Apache-2.0
/* Matching labels with a metav1.LabelSelector. */
#include "reconcilers/core/labels.h"

#include "lib/base/str.h"
#include "lib/json/json.h"

enum selector_operator {
	OPERATOR_IN,
	OPERATOR_NOT_IN,
	OPERATOR_EXISTS,
	OPERATOR_DOES_NOT_EXIST,
};

static const char *const operator_names[] = {
	[OPERATOR_IN] = "In",
	[OPERATOR_NOT_IN] = "NotIn",
	[OPERATOR_EXISTS] = "Exists",
	[OPERATOR_DOES_NOT_EXIST] = "DoesNotExist",
};

static bool operator_find(const char *name, enum selector_operator *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(operator_names); i++) {
		if (str_eq(name, operator_names[i])) {
			*ret = (enum selector_operator)i;
			return true;
		}
	}
	return false;
}

/* Is every pair among labels? */
static bool labels_have(const json_t *labels, const json_t *pairs)
{
	const char *key;
	json_t *value;

	json_each (pairs, key, value) {
		const char *has = json_string_value(json_object_get(labels, key));

		if (!has || !str_eq(has, json_string_value(value)))
			return false;
	}
	return true;
}

static bool expression_matches(const json_t *expression, const json_t *labels)
{
	const char *has = json_string_value(
		json_object_get(labels, json_str_or(json_object_get(expression, "key"), "")));
	const json_t *values = json_object_get(expression, "values");
	enum selector_operator operator;

	if (!operator_find(json_string_value(json_object_get(expression, "operator")), &operator))
		return false;
	switch (operator) {
	case OPERATOR_IN:
		return has && json_list_has(values, has);
	case OPERATOR_NOT_IN:
		return !has || !json_list_has(values, has);
	case OPERATOR_EXISTS:
		return has;
	case OPERATOR_DOES_NOT_EXIST:
		return !has;
	}
	return false;
}

bool label_selector_matches(const json_t *selector, const json_t *labels)
{
	const json_t *expression;
	size_t i;

	if (!labels_have(labels, json_at(selector, "matchLabels")))
		return false;
	json_array_foreach (json_at(selector, "matchExpressions"), i, expression) {
		if (!expression_matches(expression, labels))
			return false;
	}
	return true;
}
