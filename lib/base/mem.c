// SPDX-License-Identifier: Apache-2.0
/*
 * Allocation that ends the process when memory is out.
 *
 * Running on without memory would need a tested error path at every call; a restart is tested
 * anyway.
 */
#include "lib/base/mem.h"

#include <assert.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Noreturn void mem_exhausted(void)
{
	static const char line[] =
		"{\"level\":\"error\",\"module\":\"lib/base/mem\",\"msg\":\"out of memory\"}\n";

	/* Nothing that could allocate: no stdio, no log. */
	(void)!write(STDERR_FILENO, line, sizeof(line) - 1);
	abort();
}

void *mem_alloc(size_t size)
{
	void *ptr = malloc(size ? size : 1);

	if (!ptr)
		mem_exhausted();
	return ptr;
}

void *mem_zalloc(size_t size)
{
	return mem_calloc(1, size);
}

void *mem_calloc(size_t n, size_t size)
{
	void *ptr = n && size ? calloc(n, size) : calloc(1, 1);

	if (!ptr)
		mem_exhausted();
	return ptr;
}

void *mem_realloc(void *ptr, size_t size)
{
	/* realloc(ptr, 0) may free and return NULL, which no caller here wants. */
	void *bigger = realloc(ptr, size ? size : 1);

	if (!bigger)
		mem_exhausted();
	return bigger;
}

void *mem_dup(const void *data, size_t len)
{
	void *copy = mem_alloc(len);

	assert(data || len == 0);
	if (len)
		memcpy(copy, data, len);
	return copy;
}

void mem_free(void *ptr)
{
	free(ptr);
}

void mem_tune(void)
{
	/*
	 * mallopt(3): setting a threshold switches off its automatic growth, so that a list of some
	 * megabytes goes back to the system when it is freed instead of staying in the heap.
	 */
	(void)mallopt(M_ARENA_MAX, 1);
	(void)mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	(void)mallopt(M_TRIM_THRESHOLD, 256 * 1024);
}

/* There where the program is linked with mimalloc, which then has all of the heap. */
extern void mi_collect(bool force) __attribute__((weak));

void mem_trim(void)
{
	(void)malloc_trim(0);
	if (mi_collect)
		mi_collect(true);
}
