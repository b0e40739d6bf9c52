// SPDX-License-Identifier: Apache-2.0
/*
 * How to call it: --help, the man page and the schema of documents, all from the tables of
 * commands, flags and exit statuses.
 */
#pragma once

#include "cli/command.h"

/* Append the help of a command; NULL: of the program. */
void usage_help(const struct cli_command *command, struct strbuf *out);

/* The command `orbweaver man`: a page for man(1). */
cli_run_fn usage_man;

/* The command `orbweaver schema`: JSON Schema of the documents that commands print. */
cli_run_fn usage_schema;
