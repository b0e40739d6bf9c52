// SPDX-License-Identifier: Apache-2.0
/*
 * Archives of an initramfs. Facts come out the same twice, and hold no more text than the archive.
 */
#include <stdint.h>
#include <stdio.h>

#include "lib/json/json.h"
#include "nodeagent/host/initramfs.h"
#include "tests/fuzz/fuzz.h"

static json_t *scan(const uint8_t *data, size_t size, bool *ret_whole)
{
	json_t *facts = json_object();
	FILE *in = fmemopen((void *)data, size, "r");

	*ret_whole = initramfs_scan(in, facts);
	(void)fclose(in);
	return facts;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *one = NULL, *two = NULL;
	bool whole_one, whole_two;
	const char *name;
	json_t *text;

	if (size == 0)
		return 0;
	one = scan(data, size, &whole_one);
	two = scan(data, size, &whole_two);
	if (whole_one != whole_two || !json_same(one, two))
		abort();
	json_each (json_at(one, "modprobe"), name, text)
		if (json_string_length(text) > 3 * size)
			abort();
	return 0;
}
