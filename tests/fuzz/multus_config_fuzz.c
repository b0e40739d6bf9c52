// SPDX-License-Identifier: Apache-2.0
/*
 * SpiderMultusConfig → NetworkAttachmentDefinition on any world: see reconcile_fuzz.h; and the
 * configuration is JSON.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/spider/multus_config.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_config(const struct plan *plan)
{
	json_t *op;
	size_t i;

	fuzz_check_conditions(plan);
	json_array_foreach (plan->ops, i, op) {
		const char *text = json_str_at(op, "object", "spec", "config");
		json_auto_t *config = text ? json_parse(text, strlen(text), NULL) : NULL;

		fuzz_check(!text || json_is_object(config), "a configuration is a JSON object");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reconcile(data, size, multus_config_reconcile, check_config);
	return 0;
}
