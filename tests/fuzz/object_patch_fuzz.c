// SPDX-License-Identifier: Apache-2.0
/*
 * Patches: inputs stay as they are, a result meets the bounds, a refusal leaves nothing, and a
 * merge patch twice is once.
 *
 * Input: one byte for the type, an object, a NUL byte, a patch.
 */
#include "cli/simulate/objects/limits.h"
#include "cli/simulate/objects/patch.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/object_documents.h"

static struct schema *pods;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	pods = schema_builtin("", "Pod");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum patch_type type = size ? (enum patch_type)(*data % 3) : PATCH_JSON;
	json_auto_t *object = NULL, *patch = NULL, *object_before = NULL, *patch_before = NULL;
	json_auto_t *result = NULL, *again = NULL;
	struct err err = {0};
	int failed = 0;

	if (size < 1)
		return 0;
	data++;
	size--;
	object = next_document(&data, &size);
	patch = next_document(&data, &size);
	if (!object || !patch)
		return 0;
	object_before = json_deep_copy(object);
	patch_before = json_deep_copy(patch);
	failed = patch_object(type, pods, object, patch, &result, &err);
	fuzz_check(json_same(object, object_before), "the object stays as it is");
	fuzz_check(json_same(patch, patch_before), "the patch stays as it is");
	fuzz_check(!result == (failed != 0) && !*err.reason == !failed,
		   "a result, or an error with a reason");
	if (failed)
		return 0;
	fuzz_check(object_check_size(result, NULL) == 0, "a result meets the bounds");
	if (type != PATCH_MERGE)
		return 0;
	fuzz_check(patch_object(type, pods, result, patch, &again, NULL) == 0 &&
			   json_same(again, result),
		   "a merge patch twice is once");
	return 0;
}
