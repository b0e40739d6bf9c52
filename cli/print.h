// SPDX-License-Identifier: Apache-2.0
/* What all commands print alike. */
#pragma once

#include "cli/command.h"
#include "cli/table.h"

/*
 * The members as a document of the command's kind, as JSON in one line or as YAML. `members` is
 * borrowed.
 */
void print_document(const struct cli *cli, struct strbuf *out, const json_t *members);

/* A document whose member "items" are these rows. */
void print_items(const struct cli *cli, struct strbuf *out, const json_t *rows);

/*
 * A table behind what is there already, with a blank line between; nothing when there are no rows.
 */
void print_part(struct strbuf *out, const struct column *columns, size_t n, const json_t *rows);
