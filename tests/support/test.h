// SPDX-License-Identifier: Apache-2.0
/*
 * What every unit test includes first: cmocka, the headers that have to stand before it (cmocka.h
 * says so, and includes none of them), and tests that register themselves.
 *
 *	TEST(a_name_is_a_sentence)
 *	{
 *		assert_true(...);
 *	}
 *
 * They run in the order of their file, by the main() of test_main.c.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void test_add(const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	      CMFixtureFunction teardown);
void test_add_group(CMFixtureFunction setup, CMFixtureFunction teardown);

/* A test with fixtures of its own, which may be NULL. The test has them as `void **state`. */
#define TEST_WITH(name_, setup_, teardown_)                                                        \
	static void name_(void **state);                                                           \
	static void __attribute__((constructor)) name_##_add(void)                                 \
	{                                                                                          \
		test_add(#name_, name_, setup_, teardown_);                                        \
	}                                                                                          \
	static void name_(void **state)
#define TEST(name_) TEST_WITH(name_, NULL, NULL)

/* Fixtures of all tests of the file together. */
#define TEST_GROUP(setup_, teardown_)                                                              \
	static void __attribute__((constructor)) test_group_add(void)                              \
	{                                                                                          \
		test_add_group(setup_, teardown_);                                                 \
	}
