// SPDX-License-Identifier: Apache-2.0
/*
 * What a network namespace says, and who claims addresses in frames: any bytes.
 */
#include "lib/json/json.h"
#include "nodeagent/attach/frame.h"
#include "nodeagent/netns/observe.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *look = json_object();
	static const char *const lists[] = {"links", "addresses", "routes", "rules", "neighbours"};
	struct frame_claim claim;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		json_put(look, lists[i], json_array());
	netns_decode(data, size, look);
	json_decref(netns_decode_vf(data, size, 0));
	if (frame_read(data, size, &claim))
		fuzz_check(addr_len(&claim.address) > 0, "a claim is for an address");
	return 0;
}
