// SPDX-License-Identifier: Apache-2.0
/*
 * YAML: reading is pure, what comes out is JSON within the limits, and the text of it reads as the
 * same. Bounded time and memory is for libFuzzer to see (-timeout, -rss_limit_mb).
 */
#include <stdint.h>
#include <string.h>

#include "lib/json/json.h"
#include "lib/json/yaml.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	json_init();
	return 0;
}

/* A float without a fraction comes back as an integer, so values with floats are left out. */
static void check_written(const json_t *document)
{
	auto_strbuf struct strbuf out = {0};
	json_auto_t *again = NULL;
	struct err err = {0};

	yaml_write(document, &out);
	if (strpbrk(strbuf_str(&out), ".e"))
		return;
	again = yaml_parse(strbuf_str(&out), out.len, &err);
	fuzz_check(json_same(document, again), "what is written is read as the same value");
}

/*
 * The list of documents is one level more than the deepest of them may have, so each goes by
 * itself.
 */
static void check_document(const json_t *document)
{
	auto_free char *text = json_text(document);
	json_auto_t *as_json = json_parse(text, strlen(text), NULL);

	fuzz_check(!json_is_null(document), "empty documents are left out");
	fuzz_check(json_same(document, as_json), "what was read is JSON within the limits");
	if (json_is_object(document) || json_is_array(document)) {
		json_auto_t *again = yaml_parse(text, strlen(text), NULL);

		fuzz_check(json_same(document, again), "its text is YAML of the same value");
	}
	check_written(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = {0}, err_again = {0};
	json_auto_t *documents = yaml_parse_all((const char *)data, size, &err);
	json_auto_t *again = yaml_parse_all((const char *)data, size, &err_again);
	json_t *document;
	size_t i;

	fuzz_check(json_same(documents, again) && str_eq(err.text, err_again.text),
		   "reading is pure");
	fuzz_check(!documents == (err.class == ERR_INVALID),
		   "an error comes exactly without a value");
	fuzz_check(!strchr(err.text, '\n'), "an error is one line");
	json_array_foreach (documents, i, document)
		check_document(document);
	return 0;
}
