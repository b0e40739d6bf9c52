// SPDX-License-Identifier: Apache-2.0
/*
 * history: reads what watches have written down (o_watch of operator.sh), DIR/watch-KIND.out, in
 * the order of the revisions, and prints what address_history.h finds wrong. "quiet" and "empty":
 * that is how it is at the end (history_settle). Exit status: 0 nothing, 1 violations, 2 the
 * history has a gap or cannot be read.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/api.h"
#include "tests/support/address_history.h"

enum { KINDS_MAX = 16 };

struct reader {
	const char *kind;
	FILE *file;
	char *line;
	size_t cap, n;
	json_t *event; /* the next one; NULL: there is none */
};

/* A line without its end is still being written. */
static int read_next(struct reader *reader, struct err *err)
{
	ssize_t len = getline(&reader->line, &reader->cap, reader->file);

	json_decref(take_ptr(reader->event));
	if (len <= 0 || reader->line[len - 1] != '\n')
		return 0;
	reader->n++;
	reader->event = json_parse(reader->line, (size_t)len, err);
	return reader->event ? 0 : err_in(err, "event %zu of %s", reader->n, reader->kind);
}

static int open_all(const char *dir, struct reader *readers, size_t *ret_n, struct err *err)
{
	for (size_t i = 0; history_kinds[i]; i++) {
		auto_free char *path = str_printf("%s/watch-%s.out", dir, history_kinds[i]);
		struct reader *reader = &readers[(*ret_n)++];

		*reader = (struct reader){.kind = history_kinds[i], .file = fopen(path, "r")};
		if (!reader->file)
			return err_set(err, ERR_INVALID, "NoHistory", "%s: %s", path,
				       strerror(errno));
		if (read_next(reader, err) < 0)
			return -1;
	}
	return 0;
}

/* What cannot go on comes first, so that it is seen. */
static uint64_t revision_of(const struct reader *reader)
{
	return kube_resource_version(json_at(reader->event, "object"));
}

static struct reader *find_next(struct reader *readers, size_t n)
{
	struct reader *next = NULL;

	for (size_t i = 0; i < n; i++)
		if (readers[i].event && (!next || revision_of(&readers[i]) < revision_of(next)))
			next = &readers[i];
	return next;
}

static int judge(struct history *history, struct reader *readers, size_t n, struct err *err)
{
	struct reader *next;

	while ((next = find_next(readers, n)))
		if (history_add(history, next->kind, next->event, err) < 0 ||
		    read_next(next, err) < 0)
			return -1;
	return 0;
}

static void print(const struct history *history)
{
	auto_free char *counts = json_text(history_counts(history));
	json_t *violation;
	size_t i;

	fprintf(stderr, "# history: %s\n", counts);
	json_array_foreach (history_violations(history), i, violation)
		printf("%s\n", json_string_value(violation));
}

int main(int argc, char **argv)
{
	struct reader readers[KINDS_MAX];
	auto_history struct history *history = NULL;
	struct err err = {0};
	size_t n = 0;
	int status;

	json_init();
	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: history DIR [quiet|empty]\n");
		return 2;
	}
	history = history_new();
	status = open_all(argv[1], readers, &n, &err) < 0 || judge(history, readers, n, &err) < 0;
	for (size_t i = 0; i < n; i++) {
		if (readers[i].file)
			(void)fclose(readers[i].file);
		free(readers[i].line);
		json_decref(readers[i].event);
	}
	if (argc == 3)
		history_settle(history, str_eq(argv[2], "empty"));
	print(history);
	if (status) {
		fprintf(stderr, "history: %s\n", err.text);
		return 2;
	}
	return json_array_size(history_violations(history)) > 0;
}
