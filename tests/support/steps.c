// SPDX-License-Identifier: Apache-2.0
/* Steps. See the header. */
#include "tests/support/steps.h"

int __real_renameat(int from, const char *old, int to, const char *new);
int __wrap_renameat(int from, const char *old, int to, const char *new);
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __real_fsync(int fd);
int __wrap_fsync(int fd);

int __wrap_renameat(int from, const char *old, int to, const char *new)
{
	test_step();
	return __real_renameat(from, old, to, new);
}

int __wrap_unlinkat(int dir, const char *name, int flags)
{
	test_step();
	return __real_unlinkat(dir, name, flags);
}

int __wrap_fsync(int fd)
{
	test_step();
	return __real_fsync(fd);
}
