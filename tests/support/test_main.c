// SPDX-License-Identifier: Apache-2.0
/* The tests that a file registers (test.h), and the main() that runs them unless it has one. */
#include "tests/support/test.h"

#include <stdlib.h>

#include "lib/json/json.h"

#pragma weak json_init /* linked where a test uses JSON */

static struct CMUnitTest *tests;
static size_t n_tests;
static CMFixtureFunction group_setup, group_teardown;

void test_add(const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	      CMFixtureFunction teardown)
{
	tests = realloc(tests, (n_tests + 1) * sizeof(*tests));
	if (!tests)
		abort();
	tests[n_tests++] = (struct CMUnitTest){name, test, setup, teardown, NULL};
}

void test_add_group(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	group_setup = setup;
	group_teardown = teardown;
}

__attribute__((weak)) int main(void)
{
	if (json_init)
		json_init();
	return _cmocka_run_group_tests("tests", tests, n_tests, group_setup, group_teardown);
}
