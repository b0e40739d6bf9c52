// SPDX-License-Identifier: Apache-2.0
/*
 * Bodies of answers that are errors: each is one clear error, the same each time, on one line.
 *
 * Input: two bytes that make the HTTP status (100 to 599), then the body.
 */
#include <stdint.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "lib/kube/status.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

static void check_err(const struct err *err)
{
	fuzz_check(err->class == ERR_INVALID || err->class == ERR_CONFLICT ||
			   err->class == ERR_TRANSIENT,
		   "the class says when to try again");
	fuzz_check(err->reason[0], "there is a reason");
	fuzz_check(err->text[0] && !strchr(err->text, '\n'), "the text is one line");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err first = {0}, second = {0};
	json_auto_t *object = NULL;
	auto_free char *body = NULL;
	size_t len = 0;
	int status = 0;

	if (size < 2)
		return 0;
	status = 100 + (data[0] << 8 | data[1]) % 500;
	len = size - 2;
	body = mem_dup(data + 2, len);
	fuzz_check(kube_status_err(status, body, len, &first) == -1, "an error is an error");
	check_err(&first);
	fuzz_check(kube_status_err(status, body, len, &second) == -1, "and again");
	fuzz_check(first.class == second.class && first.sys == second.sys &&
			   str_eq(first.reason, second.reason) && str_eq(first.text, second.text),
		   "the same each time");
	fuzz_check(!kube_err_is_expired(&first) || !kube_err_is(&first, "NotFound"),
		   "one reason at a time");

	object = json_parse(body, len, NULL);
	if (!object)
		return 0;
	fuzz_check(kube_status_object_err(object, &second) == -1, "in a watch, too");
	check_err(&second);
	return 0;
}
