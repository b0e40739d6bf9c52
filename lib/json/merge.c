/*
 * JSON merge patches (RFC 7386): apply one, find the smallest one.
 */
#include <assert.h>

#include "lib/json/json.h"

/* A copy without the null members of objects; in arrays nulls are values and stay. */
static json_t *copy_without_nulls(const json_t *value)
{
	json_t *copy, *member;
	const char *key;

	if (!json_is_object(value))
		return json_deep_copy(value);

	copy = json_object();
	json_each (value, key, member)
		if (!json_is_null(member))
			json_put(copy, key, copy_without_nulls(member));
	return copy;
}

void json_merge_patch(json_t *target, const json_t *patch)
{
	const char *key;
	json_t *value;

	assert(json_is_object(target) && json_is_object(patch));
	json_each (patch, key, value) {
		json_t *old = json_object_get(target, key);

		if (json_is_null(value))
			(void)json_object_del(target, key);
		else if (json_is_object(value) && json_is_object(old))
			json_merge_patch(old, value);
		else
			json_put(target, key, copy_without_nulls(value));
	}
}

static bool is_absent(const json_t *value)
{
	return !value || json_is_null(value);
}

/* What a patch says about a member that is `from` now and shall be `to`; NULL: nothing. Both are present. */
static json_t *diff_member(const json_t *from, const json_t *to)
{
	if (json_is_object(from) && json_is_object(to))
		return json_merge_diff(from, to);
	return json_same(from, to) ? NULL : copy_without_nulls(to);
}

json_t *json_merge_diff(const json_t *from, const json_t *to)
{
	json_auto_t *patch = json_object();
	const char *key;
	json_t *value;

	assert(json_is_object(to) && (!from || json_is_object(from)));
	json_each (to, key, value) {
		const json_t *old = json_object_get(from, key);

		if (is_absent(value))
			continue;
		json_put(patch, key,
			 is_absent(old) ? copy_without_nulls(value) : diff_member(old, value));
	}
	json_each (from, key, value)
		if (!is_absent(value) && is_absent(json_object_get(to, key)))
			json_put(patch, key, json_null());

	return json_object_size(patch) > 0 ? take_ptr(patch) : NULL;
}
