// SPDX-License-Identifier: Apache-2.0
/*
 * The index is the list of parts in the order in which they were tried. Every other file of the
 * dump reports here, with the bundle's file on success and the reason otherwise; replay reads from
 * it what may not be concluded.
 */
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/support_internal.h"
#include "lib/json/json.h"

static json_t *add_line(struct dump *dump, const char *what)
{
	json_t *line = json_object();

	json_put_str(line, "what", what);
	json_array_append_new(json_at(dump->index, "parts"), line);
	return line;
}

int dump_add(struct dump *dump, const char *what, const char *file, const struct strbuf *text,
	     int64_t items, struct err *err)
{
	json_t *line;

	assert(what && file && text);
	if (bundle_add(dump->bundle, file, strbuf_str(text), text->len, err) < 0) {
		if (err->class != ERR_INVALID)
			return -1;
		dump_failed(dump, what, err);
		return 0;
	}
	line = add_line(dump, what);
	json_put_str(line, "file", file);
	if (items >= 0)
		json_put_int(line, "items", items);
	json_put_int(line, "bytes", (int64_t)text->len);
	return 0;
}

void dump_failed(struct dump *dump, const char *what, const struct err *err)
{
	assert(what && err);
	json_put_str(add_line(dump, what), "failed", err->text);
	dump->failed++;
	dump_progress(dump, NULL);
	fprintf(stderr, "orbweaver: not in the dump: %s: %s\n", what, err->text);
}

void dump_skipped(struct dump *dump, const char *what, const char *why)
{
	json_put_str(add_line(dump, what), "skipped", why);
}

void dump_progress(const struct dump *dump, const char *what)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K%s%s", what ? "reading " : "", what ? what : "");
}
