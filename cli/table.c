// SPDX-License-Identifier: Apache-2.0
/*
 * Widths are measured over all rows first, then rows are printed; a character counts once however
 * many bytes it has. Most commands come here through print_part() of print.c.
 */
#include "cli/table.h"

#include <string.h>

#include "lib/base/mem.h"
#include "lib/json/json.h"

/* A cell's text; free(). Lines of a message follow each other behind semicolons. */
static char *cell(const json_t *row, const char *member)
{
	const json_t *value = json_at(row, member);
	auto_free char *covered = str_dup(json_str_or(value, "-"));
	auto_strbuf struct strbuf text = {0};

	if (json_is_integer(value))
		return str_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	str_cover_controls(covered, "\n", '?');
	for (const char *c = covered; *c; c++) {
		if (*c != '\n')
			strbuf_addc(&text, *c);
		else if (c[1])
			strbuf_adds(&text, "; ");
	}
	return strbuf_take(&text);
}

/* How many characters a terminal shows. */
static size_t width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

static void add(struct strbuf *out, const char *text, size_t pad_to, bool is_last)
{
	strbuf_adds(out, text);
	if (is_last)
		strbuf_addc(out, '\n');
	for (size_t n = width(text); !is_last && n < pad_to + 2; n++)
		strbuf_addc(out, ' ');
}

void table_print(struct strbuf *out, const struct column *columns, size_t n, const json_t *rows)
{
	auto_free size_t *widths = mem_calloc(n + 1, sizeof(*widths));
	json_t *row;
	size_t i, k;

	for (k = 0; k < n; k++) {
		widths[k] = strlen(columns[k].title);
		json_array_foreach (rows, i, row) {
			auto_free char *text = cell(row, columns[k].member);

			if (width(text) > widths[k])
				widths[k] = width(text);
		}
	}
	for (k = 0; k < n; k++)
		add(out, columns[k].title, widths[k], k + 1 == n);
	json_array_foreach (rows, i, row) {
		for (k = 0; k < n; k++) {
			auto_free char *text = cell(row, columns[k].member);

			add(out, text, widths[k], k + 1 == n);
		}
	}
}
