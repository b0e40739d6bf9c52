// SPDX-License-Identifier: Apache-2.0
/*
 * What other plugins kept: what is read has a device, and steps that name a PF; what is refused
 * says
 * so; and the same is read twice.
 */
#include <stdint.h>
#include <stdlib.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/cni/plan/steps.h"
#include "nodeagent/cni/plan/upstream_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_plugin(const char *plugin, const json_t *kept)
{
	struct err err = {0};
	json_auto_t *saved = upstream_state_read(plugin, kept, &err), *again = NULL;
	json_t *step;
	size_t i;

	if (!saved) {
		check(err.class == ERR_INVALID);
		return;
	}
	check(!str_empty(json_str_at(saved, "device")));
	json_array_foreach (json_at(saved, "settings"), i, step) {
		auto_free char *text = step_text(step);

		check(!str_empty(json_str_at(step, "dev")) && text);
	}
	again = upstream_state_read(plugin, kept, NULL);
	check(json_same(saved, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *kept = json_parse((const char *)data, size, NULL);

	check_plugin("sriov", kept);
	check_plugin("ib-sriov", kept);
	check_plugin("rdma", kept);
	return 0;
}
