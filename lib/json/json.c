// SPDX-License-Identifier: Apache-2.0
/*
 * jansson with manners: text, equality, and typed access. Parsing is in parse.c, writing in
 * write.c, merge patches in merge.c.
 */
#include "lib/json/json.h"

#include <assert.h>
#include <stdarg.h>
#include <string.h>

#include "lib/base/mem.h"

/* Bytes of a value that a message quotes. */
#define QUOTE_MAX 64

void json_init(void)
{
	json_set_alloc_funcs(mem_alloc, mem_free);
	/* 0: from the kernel. Keys come from the network, so the seed has to be random. */
	json_object_seed(0);
}

char *json_text(const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	/*
	 * Values that jansson made are valid; only a circle or NULL has no text, and both are our
	 * bugs.
	 */
	assert(text);
	return text;
}

bool json_same(const json_t *a, const json_t *b)
{
	if (!a || !b)
		return a == b;
	return json_equal(a, b);
}

bool json_list_has(const json_t *list, const char *text)
{
	json_t *item;
	size_t i;

	json_array_foreach ((json_t *)list, i, item) {
		if (str_eq(json_string_value(item), text))
			return true;
	}
	return false;
}

json_t *json_find(const json_t *list, const char *key, const char *value)
{
	json_t *item;
	size_t i;

	assert(key);
	json_array_foreach ((json_t *)list, i, item) {
		if (value && str_eq(json_str_at(item, key), value))
			return item;
	}
	return NULL;
}

json_t *json_at_path(const json_t *root, const char *const *keys)
{
	json_t *at = (json_t *)root;

	for (; *keys && at; keys++)
		at = json_object_get(at, *keys);
	return json_is_null(at) ? NULL : at;
}

const char *json_str_or(const json_t *value, const char *otherwise)
{
	return json_is_string(value) ? json_string_value(value) : otherwise;
}

const char *json_type_words(const json_t *value)
{
	if (!value)
		return "absent";
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a number with a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		return "null";
	}
	return "unknown";
}

static int quote_chunk(const char *data, size_t len, void *out)
{
	strbuf_add(out, data, len);
	return ((struct strbuf *)out)->len > QUOTE_MAX ? -1 : 0;
}

/* `where.key: VALUE PROBLEM, must be MUST` */
static int bad_field(const char *where, const char *key, const json_t *value, const char *problem,
		     const char *must, struct err *err)
{
	auto_strbuf struct strbuf shown = {0};

	/* The value as JSON text, or its beginning. */
	/* Stops with -1 as soon as there is enough: the value may be large. */
	(void)json_dump_callback(value, quote_chunk, &shown, JSON_COMPACT | JSON_ENCODE_ANY);
	if (shown.len > QUOTE_MAX) {
		strbuf_cut(&shown, str_clip(shown.data, shown.len, QUOTE_MAX));
		strbuf_adds(&shown, "…");
	}
	return err_set(err, ERR_INVALID, "BadField", "%s%s%s: %s %s, must be %s", where,
		       *where ? "." : "", key, strbuf_str(&shown), problem, must);
}

static int bad_type(const char *where, const char *key, const json_t *value, const char *must,
		    struct err *err)
{
	auto_free char *problem = json_is_null(value) ? str_dup("is not allowed here")
						      : str_printf("is %s", json_type_words(value));

	return bad_field(where, key, value, problem, must, err);
}

/* The member, or NULL when it is absent or null. */
static const json_t *member(const json_t *obj, const char *key)
{
	return json_at(obj, key);
}

int json_get_str(const json_t *obj, const char *where, const char *key, const char *otherwise,
		 const char **ret, struct err *err)
{
	const json_t *value = member(obj, key);

	assert(key && ret);
	if (value && !json_is_string(value))
		return bad_type(where, key, value, "a string", err);
	*ret = value ? json_string_value(value) : otherwise;
	return 0;
}

static char *integer_words(int64_t min, int64_t max)
{
	if (min == INT64_MIN && max == INT64_MAX)
		return str_dup("an integer");
	if (max == INT64_MAX)
		return str_printf("an integer, at least %lld", (long long)min);
	if (min == INT64_MIN)
		return str_printf("an integer, at most %lld", (long long)max);
	return str_printf("an integer from %lld to %lld", (long long)min, (long long)max);
}

int json_get_int(const json_t *obj, const char *where, const char *key, int64_t min, int64_t max,
		 int64_t otherwise, int64_t *ret, struct err *err)
{
	const json_t *value = member(obj, key);
	auto_free char *must = NULL;
	int64_t n;

	assert(key && min <= max && ret);
	if (!value) {
		*ret = otherwise;
		return 0;
	}

	n = json_integer_value(value);
	if (json_is_integer(value) && n >= min && n <= max) {
		*ret = n;
		return 0;
	}

	must = integer_words(min, max);
	if (!json_is_integer(value))
		return bad_type(where, key, value, must, err);
	return bad_field(where, key, value, n < min ? "is too small" : "is too large", must, err);
}

int json_get_bool(const json_t *obj, const char *where, const char *key, bool otherwise, bool *ret,
		  struct err *err)
{
	const json_t *value = member(obj, key);

	assert(key && ret);
	if (value && !json_is_boolean(value))
		return bad_type(where, key, value, "true or false", err);
	*ret = value ? json_is_true(value) : otherwise;
	return 0;
}

int json_get_object(const json_t *obj, const char *where, const char *key, const json_t **ret,
		    struct err *err)
{
	const json_t *value = member(obj, key);

	assert(key && ret);
	if (value && !json_is_object(value))
		return bad_type(where, key, value, "an object", err);
	*ret = value;
	return 0;
}

int json_get_array(const json_t *obj, const char *where, const char *key, const json_t **ret,
		   struct err *err)
{
	const json_t *value = member(obj, key);

	assert(key && ret);
	if (value && !json_is_array(value))
		return bad_type(where, key, value, "an array", err);
	*ret = value;
	return 0;
}

int json_get_strings(const json_t *obj, const char *where, const char *key, const json_t **ret,
		     struct err *err)
{
	const json_t *array = NULL, *item;
	size_t i;

	assert(key && ret);
	if (json_get_array(obj, where, key, &array, err) < 0)
		return -1;
	json_array_foreach (array, i, item) {
		auto_free char *at = NULL;

		if (json_is_string(item))
			continue;
		at = str_printf("%s[%zu]", key, i);
		return bad_type(where, at, item, "a string", err);
	}
	*ret = array;
	return 0;
}

/* A JSON string of text that may come from anywhere; what is not UTF-8 becomes U+FFFD. */
static json_t *string_new(const char *s, size_t len)
{
	json_t *value = json_stringn(s, len);
	auto_strbuf struct strbuf clean = {0};

	if (value)
		return value;
	strbuf_add_utf8(&clean, s, len);
	return json_stringn(clean.data, clean.len);
}

json_t *json_pick(const json_t *object, const char *const *keys)
{
	json_t *picked = json_object();

	for (; *keys; keys++)
		json_put(picked, *keys, json_incref(json_at(object, *keys)));
	return picked;
}

void json_replace(json_t **field, json_t *value)
{
	json_t *old = *field;

	*field = value;
	json_decref(old);
}

void json_put(json_t *obj, const char *key, json_t *value)
{
	int rc;

	if (!value)
		return;
	rc = json_object_set_new(obj, key, value);
	assert(rc == 0);
	(void)rc;
}

void json_put_str(json_t *obj, const char *key, const char *value)
{
	if (value)
		json_put(obj, key, string_new(value, strlen(value)));
}

void json_put_int(json_t *obj, const char *key, int64_t value)
{
	json_put(obj, key, json_integer(value));
}

void json_put_bool(json_t *obj, const char *key, bool value)
{
	json_put(obj, key, json_boolean(value));
}

json_t *json_need_object(json_t *obj, const char *key)
{
	json_t *value = json_object_get(obj, key);

	if (json_is_object(value))
		return value;
	json_put(obj, key, json_object());
	return json_object_get(obj, key);
}

json_t *json_fmt(const char *fmt, ...)
{
	auto_free char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	s = str_vprintf(fmt, ap);
	va_end(ap);
	return string_new(s, strlen(s));
}

static const char *metadata(const json_t *object, const char *field)
{
	return json_str_or(json_at(object, "metadata", field), "");
}

const char *json_name(const json_t *object)
{
	return metadata(object, "name");
}

const char *json_namespace(const json_t *object)
{
	return metadata(object, "namespace");
}

const char *json_uid(const json_t *object)
{
	return metadata(object, "uid");
}

int64_t json_generation(const json_t *object)
{
	return json_integer_value(json_at(object, "metadata", "generation"));
}

char *json_key(const json_t *object)
{
	const char *namespace = json_namespace(object);

	return *namespace ? str_printf("%s/%s", namespace, json_name(object))
			  : str_dup(json_name(object));
}
