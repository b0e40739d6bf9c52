// SPDX-License-Identifier: Apache-2.0
/*
 * Validation: a walk of an object and its schema side by side that collects causes. The wording is
 * kube-apiserver's, since users and tests know it.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "cli/simulate/objects/failure.h"
#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/schema.h"
#include "cli/simulate/objects/schema_internal.h"
#include "cli/simulate/objects/shape.h"
#include "lib/base/pattern.h"
#include "lib/base/rfc3339.h"
#include "lib/json/json.h"

struct check {
	const struct schema *schema;
	json_t *causes;
};

static void check_value(struct check *check, const json_t *node, const json_t *value,
			const char *path);

/* `Invalid value: VALUE: PATH in body MESSAGE`. */
static void invalid(struct check *check, const char *path, const json_t *value, const char *fmt,
		    ...) __attribute__((format(printf, 4, 5)));

static void invalid(struct check *check, const char *path, const json_t *value, const char *fmt,
		    ...)
{
	auto_free char *text = cause_value(value);
	auto_free char *message = NULL;
	va_list ap;

	va_start(ap, fmt);
	message = str_vprintf(fmt, ap);
	va_end(ap);
	cause_add(check->causes, "FieldValueInvalid", path, "Invalid value: %s: %s in body %s",
		  text, path, message);
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *type_of(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "object";
	case JSON_ARRAY:
		return "array";
	case JSON_STRING:
		return "string";
	case JSON_INTEGER:
		return "integer";
	case JSON_REAL:
		return "number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

/* Doubles beyond 2^53 have no fraction. */
static bool is_whole_number(double number)
{
	const double most = 9007199254740992.0;

	return number >= most || number <= -most || (double)(int64_t)number == number;
}

static bool is_whole(const json_t *value)
{
	return json_is_integer(value) ||
	       (json_is_real(value) && is_whole_number(json_real_value(value)));
}

static bool is_multiple(const json_t *value, const json_t *factor)
{
	if (json_is_integer(value) && json_is_integer(factor))
		return json_integer_value(value) % json_integer_value(factor) == 0;
	return is_whole_number(json_number_value(value) / json_number_value(factor));
}

static bool has_type(const json_t *value, const char *type)
{
	if (str_eq(type, "integer"))
		return is_whole(value);
	if (str_eq(type, "number"))
		return json_is_number(value);
	return str_eq(type_of(value), type);
}

/* True when the value is of the node's type; otherwise one cause was added. */
static bool check_type(struct check *check, const json_t *node, const json_t *value,
		       const char *path)
{
	const char *type = json_str_at(node, "type");
	const char *is = type_of(value);

	if (shape_flag(node, SHAPE_INT_STR)) {
		if (json_is_string(value) || is_whole(value))
			return true;
		type = "integer,string";
	}
	if (!type || has_type(value, type))
		return true;
	cause_add(check->causes, "FieldValueTypeInvalid", path,
		  "Invalid value: \"%s\": %s in body must be of type %s: \"%s\"", is, path, type,
		  is);
	return false;
}

/* ---- formats --------------------------------------------------------------------------------- */

static bool is_date_time(const char *s)
{
	int64_t at_us = 0;

	return rfc3339_read(s, &at_us);
}

static bool is_date(const char *s)
{
	auto_free char *text = str_printf("%sT00:00:00Z", s);

	return strlen(s) == 10 && is_date_time(text);
}

static bool is_ipv4(const char *s)
{
	struct in_addr address;

	return inet_pton(AF_INET, s, &address) == 1;
}

static bool is_ipv6(const char *s)
{
	struct in6_addr address;

	return inet_pton(AF_INET6, s, &address) == 1;
}

static bool is_cidr(const char *s)
{
	const char *slash = strchr(s, '/');
	auto_free char *address = slash ? str_ndup(s, (size_t)(slash - s)) : NULL;
	int64_t bits = 0;

	if (!slash)
		return false;
	return (is_ipv4(address) && str_to_int(slash + 1, 0, 32, &bits)) ||
	       (is_ipv6(address) && str_to_int(slash + 1, 0, 128, &bits));
}

static bool is_hex_groups(const char *s, const char *groups, char between)
{
	for (; *groups; groups++) {
		for (int i = *groups == '9' ? 12 : *groups - '0'; i > 0; i--)
			if (str_hex_digit(*s++) < 0)
				return false;
		if (groups[1] && *s++ != between)
			return false;
	}
	return *s == '\0';
}

static bool is_mac(const char *s)
{
	char between = strlen(s) > 2 ? s[2] : ':';

	return (between == ':' || between == '-') &&
	       (is_hex_groups(s, "222222", between) || is_hex_groups(s, "22222222", between));
}

static bool is_uuid(const char *s)
{
	return is_hex_groups(s, "84449", '-'); /* 9: twelve digits */
}

static bool is_base64(const char *s)
{
	size_t len = strlen(s), body = len;

	while (body > 0 && s[body - 1] == '=' && len - body < 2)
		body--;
	for (size_t i = 0; i < body; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '+' && s[i] != '/')
			return false;
	return len % 4 == 0;
}

static void check_format(struct check *check, const char *format, const json_t *value,
			 const char *path)
{
	static const struct {
		const char *name;
		bool (*is)(const char *s);
	} formats[] = {
		{"date-time", is_date_time}, {"date", is_date},   {"ipv4", is_ipv4},
		{"ipv6", is_ipv6},           {"cidr", is_cidr},   {"mac", is_mac},
		{"uuid", is_uuid},           {"byte", is_base64},
	};

	for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
		if (!str_eq(format, formats[i].name) || formats[i].is(json_string_value(value)))
			continue;
		invalid(check, path, value, "must be of type %s: \"%s\"", format,
			json_string_value(value));
	}
}

/* ---- scalars --------------------------------------------------------------------------------- */

static void check_bound(struct check *check, const json_t *node, const json_t *value,
			const char *path, bool upper)
{
	const json_t *bound = json_at(node, upper ? "maximum" : "minimum");
	bool exclusive = shape_flag(node, upper ? "exclusiveMaximum" : "exclusiveMinimum");
	double is = json_number_value(value), limit = json_number_value(bound);
	auto_free char *text = NULL;

	if (!json_is_number(bound))
		return;
	/* Doubles would take neighbours beyond 2^53 for equal. */
	if (json_is_integer(bound) && json_is_integer(value)) {
		is = (double)((json_integer_value(value) > json_integer_value(bound)) -
			      (json_integer_value(value) < json_integer_value(bound)));
		limit = 0;
	}
	if (upper ? is < limit : is > limit)
		return;
	if (is == limit && !exclusive)
		return;
	text = cause_value(bound);
	invalid(check, path, value, "should be %s than %s%s", upper ? "less" : "greater",
		exclusive ? "" : "or equal to ", text);
}

static void check_number(struct check *check, const json_t *node, const json_t *value,
			 const char *path)
{
	const json_t *factor = json_at(node, "multipleOf");
	const char *format = json_str_at(node, "format");
	auto_free char *text = NULL;

	if (str_eq(format, "int32") && (json_number_value(value) < (double)INT32_MIN ||
					json_number_value(value) > (double)INT32_MAX)) {
		invalid(check, path, value, "must be of type int32");
		return;
	}
	check_bound(check, node, value, path, true);
	check_bound(check, node, value, path, false);
	if (json_number_value(factor) > 0 && !is_multiple(value, factor)) {
		text = cause_value(factor);
		invalid(check, path, value, "should be a multiple of %s", text);
	}
}

static int64_t characters(const json_t *value)
{
	const char *s = json_string_value(value);
	size_t left = json_string_length(value);
	int64_t n = 0;

	for (; left > 0; n++) {
		size_t len = str_utf8_len(s, left);

		len = len ? len : 1;
		s += len;
		left -= len;
	}
	return n;
}

static void check_string(struct check *check, const json_t *node, const json_t *value,
			 const char *path)
{
	const json_t *least = json_at(node, "minLength"), *most = json_at(node, "maxLength");
	const char *text = json_str_at(node, "pattern");
	const struct pattern *pattern = text ? map_get(&check->schema->patterns, text) : NULL;
	int64_t len = characters(value);

	if (most && len > json_integer_value(most))
		cause_add(check->causes, "FieldValueTooLong", path,
			  "Too long: may not be more than %lld bytes", json_integer_value(most));
	if (least && len < json_integer_value(least))
		invalid(check, path, value, "should be at least %lld chars long",
			json_integer_value(least));
	if (pattern && !pattern_matches(pattern, json_string_value(value)))
		invalid(check, path, value, "should match '%s'", text);
	if (json_str_at(node, "format"))
		check_format(check, json_str_at(node, "format"), value, path);
}

static void check_enum(struct check *check, const json_t *node, const json_t *value,
		       const char *path)
{
	auto_strbuf struct strbuf supported = {0};
	auto_free char *is = NULL;
	const json_t *one = NULL;
	size_t i = 0;

	if (!json_at(node, "enum"))
		return;
	json_array_foreach (json_at(node, "enum"), i, one) {
		auto_free char *text = cause_value(one);

		if (json_same(one, value))
			return;
		strbuf_addf(&supported, json_is_string(one) ? "%s%s" : "%s\"%s\"", i ? ", " : "",
			    text);
	}
	is = cause_value(value);
	cause_add(check->causes, "FieldValueNotSupported", path,
		  "Unsupported value: %s: supported values: %s", is, strbuf_str(&supported));
}

/* ---- objects and arrays ---------------------------------------------------------------------- */

/* Too few members are reported with the bound as the value, by kube-apiserver as well. */
static void check_count(struct check *check, const json_t *node, const json_t *value,
			const char *path, size_t n)
{
	bool is_object = json_is_object(value);
	const char *things = is_object ? "properties" : "items";
	const json_t *least = json_at(node, is_object ? "minProperties" : "minItems");
	const json_t *most = json_at(node, is_object ? "maxProperties" : "maxItems");
	json_auto_t *count = json_integer((json_int_t)n);

	if (least && (json_int_t)n < json_integer_value(least))
		invalid(check, path, is_object ? least : count, "should have at least %lld %s",
			json_integer_value(least), things);
	if (most && (json_int_t)n > json_integer_value(most))
		cause_add(check->causes, "FieldValueTooMany", path,
			  "Too many: %zu: must have at most %lld items", n,
			  json_integer_value(most));
}

static void check_object(struct check *check, const json_t *node, const json_t *value,
			 const char *path)
{
	const char *dot = *path ? "." : "";
	const json_t *name = NULL;
	const char *key = NULL;
	json_t *member = NULL;
	size_t i = 0;

	json_array_foreach (json_at(node, "required"), i, name) {
		const char *text = json_str_or(name, "");
		auto_free char *at = str_printf("%s%s%s", path, dot, text);

		if (!json_object_get(value, text))
			cause_add(check->causes, "FieldValueRequired", at, "Required value");
	}
	check_count(check, node, value, path, json_object_size(value));
	json_each (value, key, member) {
		const json_t *below = shape_member(node, key);
		auto_free char *at = below ? str_printf("%s%s%s", path, dot, key) : NULL;

		if (below)
			check_value(check, below, member, at);
	}
}

/* Items of a set, and keys of a list of type map, are there once. */
static void check_distinct(struct check *check, const json_t *node, const json_t *value,
			   const char *path)
{
	struct map seen = {0};
	const json_t *item = NULL;
	size_t i = 0;

	if (!shape_is_set(node) && !shape_keys(node))
		return;
	json_array_foreach (value, i, item) {
		json_auto_t *keys = shape_is_set(node) ? json_incref((json_t *)item)
						       : shape_item_keys(node, item);
		auto_free char *text = keys ? json_text(keys) : NULL;
		auto_free char *at = str_printf("%s[%zu]", path, i);

		if (!text)
			continue;
		if (map_get(&seen, text))
			cause_add(check->causes, "FieldValueDuplicate", at, "Duplicate value: %s",
				  text);
		map_set(&seen, text, (void *)item);
	}
	map_done(&seen);
}

static void check_array(struct check *check, const json_t *node, const json_t *value,
			const char *path)
{
	const json_t *item = NULL;
	size_t i = 0;

	check_count(check, node, value, path, json_array_size(value));
	check_distinct(check, node, value, path);
	if (!shape_items(node))
		return;
	json_array_foreach (value, i, item) {
		auto_free char *at = str_printf("%s[%zu]", path, i);

		check_value(check, shape_items(node), item, at);
	}
}

/* ---- combinations ---------------------------------------------------------------------------- */

/*
 * Return how many of the alternatives hold; the faults against the first of them, which are a hint
 * when none holds, are appended to `faults`.
 */
static size_t count_matches(struct check *check, const json_t *nodes, const json_t *value,
			    const char *path, json_t *faults)
{
	const json_t *node = NULL;
	size_t i = 0, n = 0;

	json_array_foreach (nodes, i, node) {
		json_auto_t *causes = json_array();
		struct check apart = {.schema = check->schema, .causes = causes};

		check_value(&apart, node, value, path);
		n += json_array_size(causes) == 0;
		if (i == 0)
			json_array_extend(faults, causes);
	}
	return n;
}

static void combination(struct check *check, const char *path, const char *message)
{
	cause_add(check->causes, "FieldValueInvalid", "<nil>",
		  "Invalid value: \"\": \"%s\" must %s", path, message);
}

static void check_alternatives(struct check *check, const json_t *nodes, const json_t *value,
			       const char *path, bool only_one)
{
	json_auto_t *faults = json_array();
	size_t n = count_matches(check, nodes, value, path, faults), i = 0;
	auto_free char *found = NULL;
	json_t *fault = NULL;

	if (n == 1 || (n > 1 && !only_one))
		return;
	found = n == 0 ? str_dup("none valid") : str_printf("%zu valid alternatives", n);
	if (only_one) {
		auto_free char *message =
			str_printf("validate one and only one schema (oneOf). Found %s", found);

		combination(check, path, message);
	} else {
		combination(check, path, "validate at least one schema (anyOf)");
	}
	json_array_foreach (faults, i, fault)
		if (n == 0 && json_array_size(check->causes) < CAUSES_MAX)
			json_array_append(check->causes, fault);
}

static void check_value(struct check *check, const json_t *node, const json_t *value,
			const char *path)
{
	const json_t *any, *one;
	const json_t *forbidden, *each = NULL;
	size_t i = 0;

	if (json_array_size(check->causes) >= CAUSES_MAX)
		return;
	if (json_is_null(value) && (shape_flag(node, "nullable") || !json_at(node, "type")))
		return;
	if (!check_type(check, node, value, path))
		return;
	check_enum(check, node, value, path);
	if (json_is_object(value))
		check_object(check, node, value, path);
	else if (json_is_array(value))
		check_array(check, node, value, path);
	else if (json_is_string(value))
		check_string(check, node, value, path);
	else if (json_is_number(value))
		check_number(check, node, value, path);
	any = json_at(node, "anyOf");
	one = json_at(node, "oneOf");
	forbidden = json_at(node, "not");
	json_array_foreach (json_at(node, "allOf"), i, each)
		check_value(check, each, value, path);
	/* With int-or-string, anyOf lists its two types, and check_type has looked at them. */
	if (any && !shape_flag(node, SHAPE_INT_STR))
		check_alternatives(check, any, value, path, false);
	if (one)
		check_alternatives(check, one, value, path, true);
	if (forbidden) {
		json_auto_t *causes = json_array();
		struct check apart = {.schema = check->schema, .causes = causes};

		check_value(&apart, forbidden, value, path);
		if (json_array_size(causes) == 0)
			combination(check, path, "not validate the schema (not)");
	}
}

void schema_validate(const struct schema *schema, const json_t *object, json_t *causes)
{
	struct check check = {.schema = schema, .causes = causes};

	check_value(&check, schema->root, object, "");
}
