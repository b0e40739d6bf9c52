// SPDX-License-Identifier: Apache-2.0
/* The folder of an allocation: one name for both sides, and no name that leads elsewhere. */
#include "tests/support/test.h"

#include <limits.h>
#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "nodeagent/model/job_folder.h"

TEST(is_for_the_resources_that_patterns_name)
{
	static const struct {
		const char *patterns, *resource;
		bool is_for;
	} rows[] = {
		{NULL, "spidernet.io/rails", false},
		{"spidernet.io/rails", "spidernet.io/rails", true},
		{"spidernet.io/rails", "spidernet.io/rails2", false},
		{"a.b/c, spidernet.io/*", "spidernet.io/rails", true},
		{"*", "x.y/z", true},
		{"spidernet.io/rail[0-3]", "spidernet.io/rail7", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (job_folder_is_for(rows[i].patterns, rows[i].resource) != rows[i].is_for)
			fail_msg("row %zu", i);
}

TEST(checks_patterns)
{
	static const char *const bad[] = {"", "a b/c", "spidernet.io/x,", "../x", "a/$(x)"};
	struct err err = {0};

	assert_int_equal(job_folder_check(NULL, &err), 0);
	assert_int_equal(job_folder_check("spidernet.io/*, a.b/c_d", &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(job_folder_check(bad[i], &err), -1);
	assert_non_null(strstr(err.text, "must be the name of a resource"));
}

TEST(the_first_device_names_it)
{
	static const struct {
		const char *resource, *a, *b, *name;
	} rows[] = {
		{"spidernet.io/rails", "0000:3b:00.3", "0000:3b:00.2",
		 "spidernet.io_rails_0000-3b-00.2"},
		{"spidernet.io/rails", "0000:3b:00.2", "0000:3b:00.3",
		 "spidernet.io_rails_0000-3b-00.2"},
		{"spidernet.io/h_a", "17", NULL, "spidernet.io_h_a_17"},
		{"spidernet.io/x", NULL, NULL, NULL},
		{NULL, "1", NULL, NULL},
		{"spidernet.io", "1", NULL, NULL},
		{"spidernet.io/..", "1", NULL, NULL},
		{"../x", "1", NULL, NULL},
		{"spidernet.io/a/b", "1", NULL, NULL},
		{"spidernet.io/x", "../1", NULL, NULL},
		{"spidernet.io/x", "a_1", NULL, NULL},
		{"spidernet.io/x", ".", NULL, NULL},
		{"spidernet.io/x", "", NULL, NULL},
		{"spidernet.io/x", "123456789012345678901234567890123", NULL, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *ids[] = {rows[i].a, rows[i].b};
		auto_free char *name = job_folder_name(rows[i].resource, ids,
						       (rows[i].a != NULL) + (rows[i].b != NULL));

		if (!str_eq(name, rows[i].name))
			fail_msg("row %zu: %s", i, name ? name : "none");
	}
}

/* Else the runtime cannot make it, and no container starts. */
TEST(its_name_is_one_that_a_folder_can_have)
{
	const char *const ids[] = {"0123456789abcdef-0123456789abcde"};

	for (int domain = 1; domain <= 253; domain++) {
		auto_free char *resource = str_printf("%0*d/%063d", domain, 1, 1);
		auto_free char *name = job_folder_name(resource, ids, 1);

		if (domain < 100)
			assert_non_null(name);
		assert_true(!name || strlen(name) <= NAME_MAX);
	}
}
