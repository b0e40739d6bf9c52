// SPDX-License-Identifier: Apache-2.0
/*
 * The table is translated into getopt_long(3)'s, and each value that this returns is written
 * through the table: strings and booleans here, anything else by the flag's own `take`, which
 * checks it. Programs call it once, at their start.
 */
#include "lib/base/flags.h"

#include <assert.h>
#include <getopt.h>
#include <string.h>

#include "lib/base/str.h"

static int take_flag(const struct flag *flag, const char *value, void *options, struct err *err)
{
	void *field = (char *)options + flag->offset;

	switch (flag->kind) {
	case FLAG_STRING:
		*(const char **)field = value;
		break;
	case FLAG_BOOL:
		if (!value || str_eq(value, "true"))
			*(bool *)field = true;
		else if (str_eq(value, "false"))
			*(bool *)field = false;
		else
			return err_set(err, ERR_INVALID, "BadFlag",
				       "--%s=%s: must be true or false", flag->name, value);
		break;
	case FLAG_TAKEN:
		break;
	}
	return flag->take ? flag->take(options, value, err) : 0;
}

int flags_parse(int argc, char *const *argv, const struct flag *flags, size_t n, void *options,
		struct err *err)
{
	struct option known[FLAGS_MAX + 1] = {0};
	int at;
	int c = 0;

	assert(n <= FLAGS_MAX);
	assert(argc > 0 && argv && options);
	for (size_t i = 0; i < n; i++) {
		known[i].name = flags[i].name;
		known[i].has_arg =
			flags[i].kind == FLAG_BOOL ? optional_argument : required_argument;
	}
	at = -1;
	optind = 0; /* glibc: start again */
	while ((c = getopt_long(argc, argv, "+:h", known, &at)) != -1) {
		if (c == ':')
			return err_set(err, ERR_INVALID, "BadFlag", "%s: needs a value",
				       argv[optind - 1]);
		if (c == 'h')
			for (at = 0; at < (int)n && !str_eq(flags[at].name, "help");)
				at++;
		if (c == '?' || at < 0 || at >= (int)n)
			return err_set(err, ERR_INVALID, "BadFlag", "%s: unknown; see --help",
				       argv[optind - 1]);
		if (take_flag(&flags[at], optarg, options, err) < 0)
			return -1;
		at = -1;
	}
	if (optind < argc)
		return err_set(err, ERR_INVALID, "BadFlag", "\"%s\": not a flag; see --help",
			       argv[optind]);
	return 0;
}

int flags_check_label(const char *flag, const char *value, struct err *err)
{
	size_t len = strlen(value);

	if (len >= 1 && len <= 63 &&
	    strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789-") == len && value[0] != '-' &&
	    value[len - 1] != '-')
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--%s %s: must be 1 to 63 lower-case letters, digits and inner dashes", flag,
		       value);
}

int flags_check_prefix(const char *flag, const char *value, struct err *err)
{
	if (!str_empty(value) && !strchr(value, '/'))
		return 0;
	return err_set(err, ERR_INVALID, "BadFlag",
		       "--%s \"%s\": must be a DNS name such as spidernet.io", flag, value);
}
