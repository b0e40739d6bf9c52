// SPDX-License-Identifier: Apache-2.0
/*
 * Commands make rows or a document as JSON and leave the form to these functions: a table through
 * table.c, or kind and apiVersion in front of JSON or YAML.
 */
#include "cli/print.h"

#include <assert.h>

#include "lib/json/json.h"
#include "lib/json/yaml.h"

void print_document(const struct cli *cli, struct strbuf *out, const json_t *members)
{
	json_auto_t *document = json_pack("{s:s, s:s}", "apiVersion", CLI_API_VERSION, "kind",
					  cli->command->document);

	json_object_update(document, (json_t *)members);
	if (cli->output == CLI_YAML) {
		yaml_write(document, out);
		return;
	}
	json_write(document, out);
	strbuf_addc(out, '\n');
}

void print_items(const struct cli *cli, struct strbuf *out, const json_t *rows)
{
	json_auto_t *members = json_pack("{s:O}", "items", rows);

	print_document(cli, out, members);
}

void print_part(struct strbuf *out, const struct column *columns, size_t n, const json_t *rows)
{
	assert(columns || n == 0);
	if (json_array_size(rows) == 0)
		return;
	if (out->len > 0)
		strbuf_addc(out, '\n');
	table_print(out, columns, n, rows);
}
