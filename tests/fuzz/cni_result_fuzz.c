// SPDX-License-Identifier: Apache-2.0
/*
 * CNI results of strangers: what is read can be written in every version, and read again as the
 * same.
 */
#include "lib/json/json.h"
#include "nodeagent/cni/plan/result.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *value = json_parse((const char *)data, size, NULL), *result = NULL;

	if (!value || result_read(value, "0.3.1", &result, NULL))
		return 0;
	for (size_t i = 0; i < result_n_versions; i++) {
		json_auto_t *out = result_write(result, result_versions[i]), *again = NULL;
		json_auto_t *twice = NULL;

		fuzz_check(result_read(out, NULL, &again, NULL) == 0, "what is written is read");
		twice = result_write(again, result_versions[i]);
		fuzz_check(json_same(out, twice), "writing again changes nothing");
	}
	return 0;
}
