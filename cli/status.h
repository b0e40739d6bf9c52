// SPDX-License-Identifier: Apache-2.0
/* The command `orbweaver status`: how the cluster stands, and what does not stand well. */
#pragma once

#include "cli/command.h"

extern const char *const status_kinds[];
extern const struct cli_field status_fields[];

cli_run_fn status_run;

/*
 * The findings of `orbweaver status`: whether an operator leads, then objects by kind, then Nodes.
 * cli->world has at least status_kinds. Items: status_fields. Returns new.
 */
json_t *status_findings(const struct cli *cli);

/* The condition of an object that says most: its worst, else Ready; NULL: it has none. Borrowed. */
const json_t *status_worst(const json_t *object);

/* Is it Degraded, or neither Ready nor on its way? */
bool status_needs_somebody(const json_t *object);
