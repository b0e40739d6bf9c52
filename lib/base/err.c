// SPDX-License-Identifier: Apache-2.0
/*
 * Errors as values. Texts are made fit for a condition and a log line here, once: one line, valid
 * UTF-8.
 */
#include "lib/base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

static void make_one_line(char *text)
{
	size_t len = strlen(text);

	/* snprintf may have cut a character in two. */
	len = str_clip(text, len, len);
	text[len] = '\0';

	for (size_t i = 0; i < len;) {
		size_t n = str_utf8_len(text + i, len - i);

		if (n == 0)
			text[i] = '?';
		i += n ? n : 1;
	}
	str_cover_controls(text, "", ' ');
}

/*
 * Write "fmt" or "fmt: tail" as the new text. By way of a copy: arguments and tail may point into
 * *err. No allocation: an error has to work when memory is short.
 */
static void write_text(struct err *err, const char *tail, const char *fmt, va_list ap)
	__attribute__((format(printf, 3, 0)));

static void write_text(struct err *err, const char *tail, const char *fmt, va_list ap)
{
	char text[sizeof(err->text)];
	size_t len;

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	len = strlen(text);
	for (const char *glue = tail ? ": " : ""; *glue && len < sizeof(text) - 1; glue++)
		text[len++] = *glue;
	for (; tail && *tail && len < sizeof(text) - 1; tail++)
		text[len++] = *tail;
	text[len] = '\0';

	make_one_line(text);
	memcpy(err->text, text, sizeof(text));
}

static void write_kind(struct err *err, enum err_class class, int sys, const char *reason)
{
	err->class = class;
	err->sys = sys;
	err->retry_after_ms = 0;
	if (reason != err->reason)
		(void)snprintf(err->reason, sizeof(err->reason), "%s", reason);
}

int(err_set)(struct err *err, enum err_class class, const char *reason, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	write_text(err, NULL, fmt, ap);
	va_end(ap);
	write_kind(err, class, 0, reason);
	return -1;
}

int(err_sys)(struct err *err, const char *reason, const char *fmt, ...)
{
	int sys = errno;
	char what[128];
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	write_text(err, strerror_r(sys, what, sizeof(what)), fmt, ap);
	va_end(ap);
	write_kind(err, ERR_HOST, sys, reason);
	errno = sys;
	return -1;
}

int(err_in)(struct err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	write_text(err, err->text, fmt, ap);
	va_end(ap);
	return -1;
}

bool err_is_unknown(int sys)
{
	return sys == EMFILE || sys == ENFILE || sys == ENOMEM || sys == ENOBUFS || sys == EIO;
}

const char *err_class_name(enum err_class class)
{
	switch (class) {
	case ERR_NONE:
		return "None";
	case ERR_INVALID:
		return "Invalid";
	case ERR_CONFLICT:
		return "Conflict";
	case ERR_TRANSIENT:
		return "Transient";
	case ERR_HOST:
		return "Host";
	case ERR_BUG:
		return "Bug";
	}
	return "Unknown";
}
