// SPDX-License-Identifier: Apache-2.0
/*
 * The smallest merge patch from what is there to what a plan wants: the applier sends it, "replay"
 * shows it. The projection of the cache says which labels and annotations are ours.
 */
#include "operator/writer/applier_patch.h"

#include <assert.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

/* Labels or annotations: what we want, and null for what we once set and no longer want. */
static json_t *pairs_patch(const json_t *present, const json_t *wanted, const json_t *ours)
{
	json_t *patch = json_object();
	const char *key = NULL;
	json_t *value = NULL;
	size_t i = 0;

	json_each (wanted, key, value)
		if (!json_same(json_object_get(present, key), value))
			json_object_set(patch, key, value);
	json_array_foreach (ours, i, value) {
		key = json_string_value(value);
		if (json_object_get(present, key) && !json_object_get(wanted, key))
			json_object_set_new(patch, key, json_null());
	}
	return patch;
}

static void put_if_any(json_t *patch, const char *key, json_t *value)
{
	if (json_object_size(value) > 0)
		json_object_set(patch, key, value);
	json_decref(value);
}

static json_t *metadata_patch(const json_t *present, const json_t *wanted)
{
	static const char *const lists[] = {"ownerReferences", "finalizers"};
	static const char *const pairs[] = {"labels", "annotations"};
	json_t *patch = json_object();

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++)
		put_if_any(patch, pairs[i],
			   pairs_patch(json_at(present, pairs[i]), json_at(wanted, pairs[i]),
				       json_at(present, "orbweaver", pairs[i])));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		json_t *list = json_at(wanted, lists[i]);

		if (list && !json_same(list, json_at(present, lists[i])))
			json_object_set(patch, lists[i], list);
	}
	return patch;
}

static bool is_ours_as_a_whole(const char *member)
{
	static const char *const others[] = {"apiVersion", "kind", "metadata"};

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_eq(member, others[i]))
			return false;
	return true;
}

json_t *applier_patch_difference(const json_t *present, const json_t *wanted)
{
	if (json_is_object(wanted) && (!present || json_is_object(present)))
		return json_merge_diff(present, wanted);
	return json_same(present, wanted) ? NULL : json_deep_copy(wanted);
}

json_t *applier_patch_conditional(json_t *patch, const json_t *present)
{
	assert(json_is_object(patch) && present);
	json_put_str(json_need_object(patch, "metadata"), "resourceVersion",
		     json_str_at(present, "metadata", "resourceVersion"));
	return patch;
}

json_t *applier_patch(const json_t *present, const json_t *wanted)
{
	json_auto_t *patch = json_object();
	const char *member = NULL;
	json_t *value = NULL;

	assert(present && wanted);
	put_if_any(patch, "metadata",
		   metadata_patch(json_at(present, "metadata"), json_at(wanted, "metadata")));
	json_each (wanted, member, value) {
		json_t *difference = NULL;

		if (!is_ours_as_a_whole(member))
			continue;
		difference = applier_patch_difference(json_object_get(present, member), value);
		if (difference)
			json_put(patch, member, difference);
	}
	if (json_object_size(patch) == 0)
		return NULL;
	return applier_patch_conditional(json_incref(patch), present);
}

enum kube_patch applier_patch_type(const struct kube_resource *resource, const json_t *patch)
{
	assert(resource && patch);
	return str_eq(resource->plural, kube_nodes.plural) && json_at(patch, "status")
		       ? KUBE_PATCH_STRATEGIC
		       : KUBE_PATCH_MERGE;
}
