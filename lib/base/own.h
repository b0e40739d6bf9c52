// SPDX-License-Identifier: Apache-2.0
/*
 * Ownership that can be seen: a variable that owns says so where it is declared, and is moved with
 * take_ptr.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

/* Run `fn(&var)` when `var` leaves its scope. */
#define auto_call(fn) __attribute__((cleanup(fn)))

static inline void own_free_p(void *p)
{
	free(*(void **)p);
}

#define auto_free auto_call(own_free_p) /* any pointer from malloc */

/* Give the pointer away: evaluates to its value and leaves NULL behind. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__auto_type p_ = (p);                                                              \
		(p) = NULL;                                                                        \
		p_;                                                                                \
	})

/* Define `name_p` for auto_call from a destructor that accepts NULL. */
#define OWN_DEFINE(type, free_fn)                                                                  \
	static inline void free_fn##_p(type **p)                                                   \
	{                                                                                          \
		if (*p)                                                                            \
			free_fn(*p);                                                               \
	}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* clang-format takes the difference for a cast. */
/* clang-format off */
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
/* clang-format on */
