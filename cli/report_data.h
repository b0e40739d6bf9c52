// SPDX-License-Identifier: Apache-2.0
/* The data of the report. */
#pragma once

#include "cli/command.h"

/* What cli->world has to have, ends with NULL: also all of status_kinds. */
extern const char *const report_kinds[];
extern const struct cli_field report_fields[];

/*
 * The cluster as report_fields describe it, new. Equal worlds give equal data, but for "generated",
 * which is the time of the world.
 */
json_t *report_data(const struct cli *cli);
