/*
 * What is dropped comes back as it was.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Constants whose addresses the linker fills in when the program starts. */
static const char *const words[] = {"one", "two", "three"};
static const struct {
	void *(*function)(size_t size);
	const char *name;
} functions[] = {{mem_alloc, "mem_alloc"}, {mem_zalloc, "mem_zalloc"}};

/* Pages of files that this process has mapped now: the third number, proc(5). */
static long file_pages(void)
{
	auto_strbuf struct strbuf text = {0};
	long size, resident, shared;

	assert_int_equal(fs_read(AT_FDCWD, "/proc/self/statm", 4096, &text, NULL), 0);
	assert_int_equal(sscanf(strbuf_str(&text), "%ld %ld %ld", &size, &resident, &shared), 3);
	return shared;
}

static void code_and_constants_that_are_dropped_come_back(void **state)
{
	long before = file_pages();

	mem_drop_code();
	assert_true(file_pages() < before);
	assert_string_equal(words[2], "three");
	for (size_t i = 0; i < 2; i++) {
		auto_free void *ptr = functions[i].function(8);

		assert_non_null(ptr);
		assert_true(str_starts(functions[i].name, "mem_"));
	}
}

static void memory_in_use_survives_a_trim(void **state)
{
	auto_free char *kept = mem_dup("kept", 5);

	mem_free(mem_alloc(1 << 20));
	mem_trim();
	assert_string_equal(kept, "kept");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_and_constants_that_are_dropped_come_back),
		cmocka_unit_test(memory_in_use_survives_a_trim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
