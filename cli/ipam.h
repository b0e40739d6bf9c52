// SPDX-License-Identifier: Apache-2.0
/* The commands `orbweaver ipam …`: addresses, from the same functions that give them. */
#pragma once

#include "cli/command.h"

extern const char *const ipam_kinds[];
extern const struct cli_field ipam_show_fields[], ipam_who_fields[], ipam_check_fields[],
	ipam_explain_fields[];

cli_run_fn ipam_show;
cli_run_fn ipam_who;
cli_run_fn ipam_check;
cli_run_fn ipam_explain;
