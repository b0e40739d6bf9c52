// SPDX-License-Identifier: Apache-2.0
/*
 * The command line of a program, as a table; getopt_long(3) does the splitting.
 *
 * "--flag value" and "--flag=value"; booleans also "--flag". All mistakes are ERR_INVALID "BadFlag"
 * and name the flag, its value and what would be right.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"

enum { FLAGS_MAX = 64 };

enum flag_kind {
	FLAG_STRING, /* const char *, borrowed from argv */
	FLAG_BOOL,   /* bool: "true", "false", nothing means true */
	FLAG_TAKEN,  /* goes to `take` */
};

struct flag {
	const char *name; /* without the dashes */
	enum flag_kind kind;
	size_t offset; /* of the field in the program's struct of options */
	/* Called with the value and the struct; FLAG_STRING and FLAG_BOOL may leave it out. */
	int (*take)(void *options, const char *value, struct err *err);
};

/*
 * "-h" is "--help". At most FLAGS_MAX flags. Fields of flags that are not given stay as they are.
 */
int flags_parse(int argc, char *const *argv, const struct flag *flags, size_t n, void *options,
		struct err *err);

/*
 * A DNS label of at most 63 characters: what namespaces and Leases may be called. `flag` is for the
 * message.
 */
int flags_check_label(const char *flag, const char *value, struct err *err);

/* What stands before the slash of an extended resource: "spidernet.io". */
int flags_check_prefix(const char *flag, const char *value, struct err *err);
