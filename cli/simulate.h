// SPDX-License-Identifier: Apache-2.0
/*
 * `orbweaver simulate`: a cluster without machines.
 */
#ifndef ORBWEAVER_CLI_SIMULATE_H
#define ORBWEAVER_CLI_SIMULATE_H

#include "cli/command.h"

cli_run_fn simulate_run, simulate_break_run, simulate_repair_run;

#endif
