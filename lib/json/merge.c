// SPDX-License-Identifier: Apache-2.0
/* JSON merge patches (RFC 7386): apply one, find the smallest one. */
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

bool json_merge_changes(const json_t *target, const json_t *patch)
{
	const char *key;
	json_t *value;

	if (!json_is_object(patch) || !json_is_object(target))
		return !json_same(target, patch);
	json_each (patch, key, value) {
		const json_t *old = json_object_get(target, key);

		if (json_is_null(value) ? old != NULL : json_merge_changes(old, value))
			return true;
	}
	return false;
}

static bool is_absent(const json_t *value)
{
	return !value || json_is_null(value);
}

/* Every member of `a` is in `b`, or null. */
static bool merge_covers(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *value;

	json_each (a, key, value)
		if (!json_merge_same(value, json_object_get(b, key)))
			return false;
	return true;
}

static bool has_only(const json_t *b, const json_t *a)
{
	const char *key;
	json_t *value;

	json_each (b, key, value)
		if (!is_absent(value) && is_absent(json_object_get(a, key)))
			return false;
	return true;
}

bool json_merge_same(const json_t *a, const json_t *b)
{
	if (is_absent(a) || is_absent(b))
		return is_absent(a) && is_absent(b);
	if (json_is_object(a) && json_is_object(b))
		return merge_covers(a, b) && has_only(b, a);
	return json_same(a, b);
}

/*
 * What a patch says about a member that is `from` now and shall be `to`; NULL: nothing. Both are
 * present.
 */
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
