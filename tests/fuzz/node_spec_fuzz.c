// SPDX-License-Identifier: Apache-2.0
/*
 * --node of the command line: any text gives the same answer twice; what is taken has as many nodes
 * as it has names, each a good one with 1 to 32 NICs of the catalogue; what is refused leaves the
 * nodes before it as they were, and is one line.
 */
#include <stdint.h>

#include "cli/simulate/decide/node_spec.h"
#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "tests/fuzz/fuzz.h"

static const char *const nic_names[] = {"connectx-5", "connectx-7", "e810", NULL};
static const char *const gpu_names[] = {"h100", NULL};
static const struct node_models models = {nic_names, gpu_names};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = str_ndup((const char *)data, size);
	json_auto_t *one = json_array(), *two = json_array();
	struct err err = {0}, again = {0};
	const json_t *node;
	int code;
	size_t i;

	code = node_spec_add(one, text, &models, &err);
	fuzz_check(node_spec_add(two, text, &models, &again) == code, "the same code twice");
	fuzz_check(json_same(one, two) && str_eq(err.text, again.text), "the same answer twice");
	fuzz_check(code == 0 || (json_array_size(one) == 0 && err.class == ERR_INVALID),
		   "refused: unchanged");
	fuzz_check(json_array_size(one) <= NODE_SPEC_NODES_MAX, "not too many nodes");
	json_array_foreach (one, i, node) {
		size_t nics = json_array_size(json_at(node, "nics"));

		fuzz_check(!str_empty(json_str_at(node, "name")), "a name");
		fuzz_check(nics >= 1 && nics <= NODE_SPEC_NICS_MAX, "1 to 32 NICs");
	}
	return 0;
}
