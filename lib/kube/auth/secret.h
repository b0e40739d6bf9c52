// SPDX-License-Identifier: Apache-2.0
/*
 * Memory that held a secret is overwritten before it goes back to the allocator, so that a core
 * dump or a stale page says less. Copies that a growing buffer left behind are not followed.
 */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* Wipe and free a string; NULL is fine. */
static inline void secret_free(char *s)
{
	if (s)
		explicit_bzero(s, strlen(s));
	mem_free(s);
}

static inline void secret_buf_done(struct strbuf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	strbuf_done(b);
}

OWN_DEFINE(char, secret_free)

#define auto_secret     auto_call(secret_free_p)   /* char * */
#define auto_secret_buf auto_call(secret_buf_done) /* struct strbuf */

/*
 * Can this be the value of an HTTP header? Visible ASCII without blanks. A line break inside a
 * token would otherwise become a header of its own.
 */
static inline bool secret_is_token(const char *s)
{
	if (!*s)
		return false;
	for (; *s; s++)
		if (*s <= ' ' || *s >= 0x7f)
			return false;
	return true;
}
