// SPDX-License-Identifier: Apache-2.0
/*
 * SriovNetwork, SriovIBNetwork, OVSNetwork → NetworkAttachmentDefinition on any world: see
 * reconcile_fuzz.h; and the configuration is a JSON object.
 */
#include "tests/fuzz/reconcile_fuzz.h"

#include "reconcilers/sriov/sriov_network.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_config(const struct plan *plan)
{
	json_t *op;
	size_t i;

	json_array_foreach (plan->ops, i, op) {
		const char *text = json_str_at(op, "object", "spec", "config");
		json_auto_t *config = text ? json_parse(text, strlen(text), NULL) : NULL;

		fuzz_check(!text || json_is_object(config), "a configuration is a JSON object");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_reconcile(data, size, sriov_network_reconcile, check_config);
	fuzz_reconcile(data, size, sriov_ib_network_reconcile, check_config);
	fuzz_reconcile(data, size, ovs_network_reconcile, check_config);
	return 0;
}
