// SPDX-License-Identifier: Apache-2.0
/*
 * Allocation that ends the process when memory is out; nothing above needs to check.
 *
 * Sizes that come from outside meet a named maximum before they get here.
 */
#pragma once

#include <stddef.h>

void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_zalloc(size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1)));
void *mem_calloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull, alloc_size(1, 2)));
void *mem_realloc(void *ptr, size_t size) __attribute__((returns_nonnull, alloc_size(2)));
void *mem_dup(const void *data, size_t len) __attribute__((malloc, returns_nonnull));
void mem_free(void *ptr);

/*
 * Say so and end the process: for libraries that allocate by themselves and report that they could
 * not.
 */
_Noreturn void mem_exhausted(void);

/* One zeroed object of the pointed-to type: `struct x *x = mem_new(struct x);` */
#define mem_new(type) ((type *)mem_zalloc(sizeof(type)))

/*
 * Tune the C library's allocator for a long-running process of one thread: one arena, freed memory
 * goes back to the system. Call once at the start of main.
 */
void mem_tune(void);

/* Give memory freed by now back to the system; worth a call after a large list was decoded. */
void mem_trim(void);
