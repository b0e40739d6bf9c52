// SPDX-License-Identifier: Apache-2.0
/*
 * The recorded behaviour of Spiderpool's pod webhook (conformance/pods.json), replayed through
 * ours.
 */
#include "tests/support/test.h"

#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/kinds.h"
#include "tests/fakes/json_patch.h"
#include "tests/fakes/review.h"
#include "tests/unit/reconcilers/recordings.h"

/* The configs that existed: pods.json's own, and those of spider.json. */
static void add_configs(json_t *world, const json_t *cases)
{
	json_t *configs = json_need_object(world, KIND_MULTUS_CONFIG), *entry;
	size_t i;

	json_array_foreach (cases, i, entry) {
		const json_t *object = json_at(entry, "object");
		auto_free char *key = json_key(object);

		if (str_eq(json_str_at(object, "kind"), "SpiderMultusConfig") &&
		    json_is_true(json_at(entry, "accepted")))
			json_object_set(configs, key, (json_t *)object);
	}
}

/* What a server does with a pod: a limit without a request is a request, too. */
static void default_requests(json_t *pod)
{
	json_t *container, *limit;
	const char *name;
	size_t i;

	json_array_foreach (json_at(pod, "spec", "containers"), i, container)
		json_each (json_at(container, "resources", "limits"), name, limit) {
			json_t *requests = json_need_object(
				json_need_object(container, "resources"), "requests");

			if (!json_object_get(requests, name))
				json_object_set(requests, name, limit);
		}
}

static json_t *resources_of(const json_t *containers)
{
	json_t *list = json_array(), *container;
	size_t i;

	json_array_foreach (containers, i, container) {
		json_t *entry = json_object();

		json_put_str(entry, "name", json_str_at(container, "name"));
		json_put(entry, "resources", json_incref(json_at(container, "resources")));
		if (!json_at(entry, "resources"))
			json_put(entry, "resources", json_object());
		json_array_append_new(list, entry);
	}
	return list;
}

/* The pod as it would be stored; NULL: refused. Returns new. */
static json_t *create(const json_t *world, const json_t *pod)
{
	json_auto_t *review = review_new(KIND_POD, "CREATE", pod, NULL);
	auto_inject_settings struct inject_settings settings = {0};
	auto_admission_request struct admission_request request = {0};
	json_auto_t *answer = NULL, *patch = NULL;
	struct err err = {0};
	json_t *stored;

	assert_int_equal(admission_read(review, &request, &err), 0);
	assert_int_equal(inject_settings_read(NULL, &settings, &err), 0);
	settings.enabled = true;
	answer = pod_inject(world, &settings, &request);
	if (!json_is_true(json_at(answer, "response", "allowed")))
		return NULL;
	patch = json_patch_of(answer);
	stored = json_deep_copy(pod);
	assert_true(json_patch_apply(stored, patch));
	default_requests(stored);
	return stored;
}

static bool same_as_recorded(const json_t *stored, const json_t *recorded)
{
	json_auto_t *containers = resources_of(json_at(stored, "spec", "containers"));
	json_auto_t *init = resources_of(json_at(stored, "spec", "initContainers"));

	if (!stored || !json_is_true(json_at(recorded, "accepted")))
		return !stored && !json_is_true(json_at(recorded, "accepted"));
	return json_same(json_at(stored, "metadata", "annotations"),
			 json_at(recorded, "annotations")) &&
	       json_same(containers, json_at(recorded, "containers")) &&
	       json_same(init, json_at(recorded, "initContainers"));
}

TEST(agrees_with_the_recorded_behaviour)
{
	json_auto_t *recording = recordings_need("pods.json"),
		    *others = recordings_need("spider.json");
	json_auto_t *differences = recordings_differences("pods-differences.txt");
	/* Spiderpool takes configs of every namespace. */
	json_auto_t *world = json_pack("{s:{s:s, s:[s, s]}}", "env", "namespace",
				       "orbweaver-system", "policyNamespaces", "default", "ai");
	json_t *recorded;
	int failed = 0;
	size_t i;

	add_configs(world, json_at(recording, "configs"));
	add_configs(world, others);
	json_array_foreach (json_at(recording, "pods"), i, recorded) {
		const char *id = json_str_at(recorded, "id");
		json_auto_t *stored = create(world, json_at(recorded, "object"));
		auto_free char *text = NULL;

		if (same_as_recorded(stored, recorded) == !json_at(differences, id))
			continue;
		text = stored ? json_text(stored) : str_dup("refused");
		print_error("%s: %s\n", id, text);
		failed++;
	}
	print_message("%zu pods, %zu of them differ on purpose\n",
		      json_array_size(json_at(recording, "pods")), json_object_size(differences));
	assert_int_equal(failed, 0);
}
