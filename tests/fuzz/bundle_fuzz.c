// SPDX-License-Identifier: Apache-2.0
/*
 * Archives of support dumps: whatever comes, reading is pure, names stay below the top folder, and
 * no more than the limits is handed out.
 */
#include <stdint.h>
#include <string.h>

#include "cli/support/bundle.h"
#include "lib/base/str.h"
#include "tests/fuzz/fuzz.h"

struct sum {
	uint64_t hash;
	size_t bytes, parts;
};

/* Every other name, so that skipping is tried as well. */
static bool wants(void *arg, const char *name)
{
	return strlen(name) % 2 == 0;
}

static int take_part(void *arg, const char *name, const char *text, size_t len, struct err *err)
{
	struct sum *sum = arg;

	fuzz_check(name[0] && name[0] != '/' && !strstr(name, "..") && !strstr(name, "//"),
		   "a name leads into the dump");
	fuzz_check(strlen(name) <= BUNDLE_NAME_MAX, "a name has a limit");
	fuzz_check(text[len] == '\0', "a text is terminated");
	sum->hash = sum->hash * 31 + str_hash(text, len) + str_hash(name, strlen(name));
	sum->bytes += len;
	sum->parts++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum first = {0}, again = {0};
	const struct bundle_reader one = {wants, take_part, &first};
	const struct bundle_reader two = {wants, take_part, &again};
	struct err err = {0}, err_again = {0};
	int result = bundle_unpack(data, size, &one, &err);

	fuzz_check(bundle_unpack(data, size, &two, &err_again) == result &&
			   memcmp(&first, &again, sizeof(first)) == 0 &&
			   str_eq(err.text, err_again.text),
		   "reading is pure");
	fuzz_check(result == 0 || str_eq(err.reason, "BadDump"), "an error is of the dump");
	fuzz_check(!strchr(err.text, '\n'), "an error is one line");
	fuzz_check(first.bytes <= BUNDLE_TOTAL_MAX && first.parts <= BUNDLE_PARTS_MAX,
		   "no more than the limits");
	return 0;
}
