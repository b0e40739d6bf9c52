// SPDX-License-Identifier: Apache-2.0
/*
 * Schemas: defaults and pruning twice are the same as once, validation changes nothing, and a cause
 * has all its parts.
 *
 * Input: a schema, a NUL byte, an object.
 */
#include "cli/simulate/objects/schema.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/object_documents.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_validation(const struct schema *schema, const json_t *object)
{
	json_auto_t *before = json_deep_copy(object);
	json_auto_t *causes = json_array();
	const json_t *cause = NULL;
	size_t i = 0;

	schema_validate(schema, object, causes);
	metadata_validate(object, true, causes);
	fuzz_check(json_same(object, before), "validation changes nothing");
	json_array_foreach (causes, i, cause)
		fuzz_check(json_str_at(cause, "field") && json_str_at(cause, "message") &&
				   json_str_at(cause, "reason"),
			   "a cause has field, message and reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *openapi = next_document(&data, &size);
	json_auto_t *object = next_document(&data, &size);
	json_auto_t *once = NULL;
	struct err err = {0};
	auto_schema struct schema *schema = openapi ? schema_new(openapi, &err) : NULL;

	if (!schema || !object)
		return 0;
	check_validation(schema, object);
	schema_prune(schema, object, NULL);
	once = json_deep_copy(object);
	schema_prune(schema, object, NULL);
	fuzz_check(json_same(object, once), "pruning twice is once");
	schema_default(schema, object);
	json_decref(once);
	once = json_deep_copy(object);
	schema_default(schema, object);
	fuzz_check(json_same(object, once), "defaults twice are once");
	check_validation(schema, object);
	return 0;
}
