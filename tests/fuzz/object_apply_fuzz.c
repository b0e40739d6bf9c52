// SPDX-License-Identifier: Apache-2.0
/*
 * Server-side apply: inputs stay as they are, the same configuration a second time changes nothing,
 * by force there are no conflicts, and an update that changes nothing keeps all owners.
 *
 * Input: a live object (null: none), a NUL byte, a configuration.
 */
#include "cli/simulate/objects/apply.h"
#include "cli/simulate/objects/failure.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/object_documents.h"

static struct schema *schemas[2];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char text[] =
		"{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":"
		"{"
		"\"map\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\","
		"\"x-kubernetes-list-map-keys\":[\"k\"],\"items\":{\"type\":\"object\","
		"\"properties\":{\"k\":{\"type\":\"string\",\"default\":\"d\"}}}},"
		"\"set\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{}},"
		"\"atom\":{\"type\":\"object\",\"x-kubernetes-map-type\":\"atomic\"},"
		"\"free\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\"}}}}}}";
	json_auto_t *openapi = NULL;

	json_init();
	openapi = json_parse(text, sizeof(text) - 1, NULL);
	schemas[0] = schema_new(openapi, NULL);
	schemas[1] = schema_builtin("apps", "Deployment");
	return 0;
}

static void check_apply(const struct schema *schema, const json_t *live, const json_t *config)
{
	struct apply_write write = {
		.schema = schema, .manager = "m", .api_version = "v1", .force = true};
	json_auto_t *first = NULL, *second = NULL, *status = NULL, *causes = NULL;
	json_auto_t *config_before = json_deep_copy(config);
	json_auto_t *live_before = live ? json_deep_copy(live) : NULL;
	struct err err = {0};

	if (apply_object(&write, live, config, &first, &causes, &err)) {
		fuzz_check(!first && !causes && *err.reason, "a refusal has a reason alone");
		return;
	}
	fuzz_check(json_same(config, config_before), "the configuration stays as it is");
	fuzz_check(json_same(live, live_before), "the live object stays as it is");
	write.now_us = 5000000;
	fuzz_check(apply_object(&write, first, config, &second, &causes, NULL) == 0,
		   "what was applied can be applied again");
	fuzz_check(json_same(first, second), "the same again changes nothing");
	json_decref(second);
	second = json_deep_copy(first);
	fuzz_check(apply_track_update(&write, first, second, NULL) == 0, "updates are tracked");
	fuzz_check(json_same(first, second), "an update that changes nothing keeps all owners");

	write.force = false;
	write.manager = "n";
	json_decref(second);
	second = NULL;
	if (apply_object(&write, live, config, &second, &causes, &err)) {
		status = failure_apply_conflict(causes);
		fuzz_check(json_str_at(status, "message") != NULL, "a conflict has a message");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *live = next_document(&data, &size);
	json_auto_t *config = next_document(&data, &size);

	if (!live || !config)
		return 0;
	check_apply(schemas[0], json_is_object(live) ? live : NULL, config);
	check_apply(schemas[1], json_is_object(live) ? live : NULL, config);
	return 0;
}
