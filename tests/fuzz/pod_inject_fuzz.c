// SPDX-License-Identifier: Apache-2.0
/*
 * Any pod, configs and settings: no crash, pure, a patch that fits, and nothing left to do for a
 * second review of the patched pod, nor for the check of pods that run.
 *
 * Input: an AdmissionReview; beside "request" "world" (namespaces, configs, definitions), and
 * "settings" and "switches" (the ConfigMaps).
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/names.h"
#include "tests/fakes/json_patch.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* Namespaces have names that a server accepts. */
static json_t *world_of(const json_t *input)
{
	json_t *world = fuzz_world(json_at(input, "world"));
	json_t *configs = json_object_get(world, KIND_MULTUS_CONFIG), *config;
	const char *key;
	void *next;

	json_object_foreach_safe(configs, next, key,
				 config) if (!name_is_dns_subdomain(json_namespace(config)))
		json_object_del(configs, key);
	return world;
}

static json_t *inject(const json_t *world, const struct inject_settings *settings,
		      const json_t *review)
{
	auto_admission_request struct admission_request request = {0};

	if (admission_read(review, &request, NULL))
		return NULL;
	return pod_inject(world, settings, &request);
}

/* A container to put limits on, and limits that are a map, if they are there. */
static bool is_pod(const json_t *object)
{
	json_t *first = json_array_get(json_at(object, "spec", "containers"), 0);
	const json_t *resources = json_at(first, "resources"),
		     *limits = json_at(resources, "limits");
	const json_t *metadata = json_at(object, "metadata");
	const json_t *annotations = json_at(metadata, "annotations");

	return json_is_object(metadata) && json_is_object(first) &&
	       (!annotations || json_is_object(annotations)) &&
	       (!resources || json_is_object(resources)) && (!limits || json_is_object(limits));
}

static void check_patch(const json_t *world, const struct inject_settings *settings,
			const json_t *review, const json_t *answer)
{
	json_auto_t *patch = json_patch_of(answer), *again = NULL;
	json_auto_t *changed = json_deep_copy(review);
	json_t *pod = json_at(changed, "request", "object");
	auto_free char *lacks = NULL;

	if (!patch || !is_pod(pod))
		return;
	fuzz_check(json_patch_apply(pod, patch), "a patch fits");
	again = inject(world, settings, changed);
	fuzz_check(json_is_true(json_at(again, "response", "allowed")), "a patched pod is allowed");
	fuzz_check(!json_at(again, "response", "patch"), "a patched pod needs no patch");
	if (!str_eq(json_namespace(pod), json_str_at(review, "request", "namespace")))
		return;
	lacks = pod_inject_lacks(world, pod, NULL);
	fuzz_check(!lacks, "a patched pod lacks nothing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	json_auto_t *before = json_deep_copy(input);
	json_auto_t *world = world_of(input);
	auto_inject_settings struct inject_settings settings = {0};
	json_auto_t *answer = NULL, *again = NULL, *selector = NULL;

	if (!input || inject_settings_read(json_at(input, "settings"), &settings, NULL) ||
	    inject_switches_read(json_at(input, "switches"), &settings.switches, NULL))
		return 0;
	selector = inject_settings_selector(&settings, world_env(world, "namespace"));
	answer = inject(world, &settings, input);
	again = inject(world, &settings, input);
	if (!answer)
		return 0;
	fuzz_check(json_same(answer, again), "the same pod gets the same answer");
	fuzz_check(str_eq(json_str_at(answer, "response", "uid"),
			  json_str_at(input, "request", "uid")),
		   "an answer has the request's uid");
	check_patch(world, &settings, input, answer);
	fuzz_check(json_same(input, before), "the input is not changed");
	return 0;
}
