// SPDX-License-Identifier: Apache-2.0
/*
 * What every unit test includes first: cmocka, and the headers that have to stand before it
 * (cmocka.h says so, and includes none of them).
 */
#ifndef ORBWEAVER_TESTS_SUPPORT_TEST_H
#define ORBWEAVER_TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
