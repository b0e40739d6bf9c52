// SPDX-License-Identifier: Apache-2.0
/* Owner references and age; see owner.h. */
#include "reconcilers/core/owner.h"

#include <assert.h>
#include <string.h>

#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "lib/json/json.h"

const json_t *owner_controller(const json_t *object)
{
	const json_t *references = json_at(object, "metadata", "ownerReferences");
	json_t *reference;
	size_t i;

	json_array_foreach (references, i, reference)
		if (json_is_true(json_at(reference, "controller")))
			return reference;
	return NULL;
}

bool owner_is(const json_t *reference, const char *group, const char *kind, const char *name)
{
	const char *version = json_str_or(json_at(reference, "apiVersion"), "");
	size_t len = strlen(group);

	assert(group && kind && name);
	return str_starts(version, group) && version[len] == '/' &&
	       str_eq(json_str_at(reference, "kind"), kind) &&
	       str_eq(json_str_at(reference, "name"), name);
}

bool object_is_terminating(const json_t *object)
{
	return json_at(object, "metadata", "deletionTimestamp") != NULL;
}

bool object_precedes(const json_t *a, const json_t *b)
{
	/*
	 * metav1.Time is always written in UTC with seconds, so text order is time order; '~' sorts
	 * after digits.
	 */
	const char *created_a = json_str_or(json_at(a, "metadata", "creationTimestamp"), "~");
	const char *created_b = json_str_or(json_at(b, "metadata", "creationTimestamp"), "~");
	int order = strcmp(created_a, created_b);

	return order ? order < 0 : strcmp(json_name(a), json_name(b)) < 0;
}

bool object_is_fresh(const json_t *object, const char *now)
{
	int64_t now_us, created_us;

	return rfc3339_read(now, &now_us) &&
	       rfc3339_read(json_str_or(json_at(object, "metadata", "creationTimestamp"), ""),
			    &created_us) &&
	       now_us - created_us < OBJECT_FRESH_MS * 1000;
}
