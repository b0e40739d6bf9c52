// SPDX-License-Identifier: Apache-2.0
/* Which boot this is. No network namespace outlives it, no VF, and nothing that was set on one. */
#pragma once

/*
 * The kernel's id of this boot, new (Linux, Documentation/admin-guide/sysctl/kernel.rst, random);
 * "" when it cannot be read.
 */
char *boot_id(void);
