// SPDX-License-Identifier: Apache-2.0
/*
 * What Multus kept of a sandbox, of any bytes: each delegate has a configuration and an interface;
 * what we would leave for Multus of them is read again as as many.
 */
#include <stdint.h>

#include "lib/json/json.h"
#include "nodeagent/cni/plan/multus_state.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *kept = json_parse((const char *)data, size, NULL);
	json_auto_t *pod = json_pack("{s:s, s:s, s:s}", "namespace", "ns", "name", "a", "uid", "u");
	struct err err = {0};
	json_auto_t *delegates = multus_state_read(kept, "c1", "eth0", "K8S_POD_UID=u", pod, &err);
	json_auto_t *written = NULL, *again = NULL;
	json_t *delegate;
	size_t i;

	if (!delegates) {
		fuzz_check(err.class == ERR_INVALID, "what is refused says so");
		return 0;
	}
	json_array_foreach (delegates, i, delegate)
		fuzz_check(json_at(delegate, "config") && json_str_at(delegate, "interface"),
			   "a delegate has a configuration and an interface");
	written = multus_state_write(delegates);
	again = multus_state_read(written, "c1", "eth0", "K8S_POD_UID=u", pod, NULL);
	fuzz_check(json_array_size(again) == json_array_size(delegates), "what is left is read");
	return 0;
}
