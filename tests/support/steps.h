// SPDX-License-Identifier: Apache-2.0
/*
 * Calls that change the disk count as steps. Linked with -Wl,--wrap=renameat,--wrap=unlinkat,
 * --wrap=fsync, a program calls test_step() before each of them.
 */
#pragma once

/* The program's own: what happens at a step. */
void test_step(void);
