// SPDX-License-Identifier: Apache-2.0
/*
 * Errors as values: one fixed-size struct, owned by the caller, last parameter of everything that
 * can fail.
 *
 * Nothing to free, usable when memory is short, and it carries what a controller needs: the class
 * says when to try again, the reason goes into a condition and a metric label, the text is the
 * remedy for a person.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

enum err_class {
	ERR_NONE,
	ERR_INVALID,   /* input is wrong: wait until it changes */
	ERR_CONFLICT,  /* someone wrote first: read again, retry now */
	ERR_TRANSIENT, /* not yet: retry with back-off */
	ERR_HOST,      /* kernel or device refused: report, retry with back-off */
	ERR_BUG,       /* our own invariant broke: report, leave the host alone */
};

struct err {
	enum err_class class;
	int sys;                /* errno, or 0 */
	int64_t retry_after_ms; /* the server asks not to retry before; 0: it does not */
	char reason[32];        /* CamelCase: Condition.reason and metric label */
	char text[512];         /* one line, outermost context first */
};

/*
 * Fill *err and return -1, so that failing is one line. All accept err == NULL.
 *
 * err_set   the error starts here.
 * err_sys   the same, class ERR_HOST, with errno's description appended and kept in err->sys.
 * err_in    puts context in front of an error that a callee reported; everything else stays.
 *
 * Text that does not fit is cut at the end on a character boundary; line breaks become blanks.
 */
int err_set(struct err *err, enum err_class class, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
int err_sys(struct err *err, const char *reason, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int err_in(struct err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the functions always return, where compilers and analyzers can see it. */
#define err_set(...)                                                                               \
	({                                                                                         \
		(void)(err_set)(__VA_ARGS__);                                                      \
		-1;                                                                                \
	})
#define err_sys(...)                                                                               \
	({                                                                                         \
		(void)(err_sys)(__VA_ARGS__);                                                      \
		-1;                                                                                \
	})
#define err_in(...)                                                                                \
	({                                                                                         \
		(void)(err_in)(__VA_ARGS__);                                                       \
		-1;                                                                                \
	})

/*
 * Does this errno say nothing of what was looked at, because descriptors, memory or the disk
 * failed? Then it is neither there nor away.
 */
bool err_is_unknown(int sys);

/* "Invalid", "Conflict", …: a stable name, used in logs and metrics. */
const char *err_class_name(enum err_class class);
