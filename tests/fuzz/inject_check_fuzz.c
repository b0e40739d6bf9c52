// SPDX-License-Identifier: Apache-2.0
/*
 * Any world for the check of pods that asked for injection: of the pod, and of the configs that it
 * should have got. Whatever was not wanted in the first place (inject_check_wants) is looked at all
 * the same.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/admission/inject_check.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* What is kept of a pod is all that the check reads. */
static void check_projection(const uint8_t *data, size_t size)
{
	json_auto_t *input = json_parse((const char *)data, size, NULL);
	const char *key = json_str_at(input, "key");
	json_auto_t *world = fuzz_world(json_at(input, "world"));
	json_t *pod = json_at(world, KIND_POD, key ? key : "");
	auto_plan struct plan whole = {0}, trimmed = {0};

	if (!pod)
		return;
	(void)inject_check_pod(world, key, &whole, NULL);
	inject_check_project(pod);
	(void)inject_check_pod(world, key, &trimmed, NULL);
	fuzz_check(json_same(whole.ops, trimmed.ops), "a trimmed pod is judged as the whole one");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reconcile(data, size, inject_check_pod, NULL);
	fuzz_reconcile(data, size, inject_check_config, fuzz_check_conditions);
	check_projection(data, size);
	return 0;
}
