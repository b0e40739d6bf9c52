// SPDX-License-Identifier: Apache-2.0
/* HOST:PORT to listen on. */
#include <netinet/in.h>
#include <stdint.h>

#include "lib/base/mem.h"
#include "lib/http/address.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct address address = {.len = 12345};
	struct err err = {0};
	char *text;

	if (size > 200)
		return 0;
	text = mem_alloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	if (address_parse(text, &address, &err) < 0) {
		if (err.class != ERR_INVALID || address.len != 12345)
			abort();
	} else if (address.len != sizeof(struct sockaddr_in) &&
		   address.len != sizeof(struct sockaddr_in6)) {
		abort();
	}
	mem_free(text);
	return 0;
}
