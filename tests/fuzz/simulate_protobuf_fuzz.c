// SPDX-License-Identifier: Apache-2.0
/* A body in Kubernetes' protobuf: what comes out can be written and read again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/simulate/api/protobuf.h"
#include "lib/json/json.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *object = protobuf_object(data, size, NULL), *again = NULL;
	auto_free char *text = NULL;

	if (!object)
		return 0;
	text = json_text(object);
	again = json_parse(text, strlen(text), NULL);
	if (!again || !json_is_object(again))
		abort();
	return 0;
}
