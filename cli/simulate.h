// SPDX-License-Identifier: Apache-2.0
/* `orbweaver simulate`: a cluster without machines. */
#pragma once

#include "cli/command.h"

cli_run_fn simulate_run, simulate_break_run, simulate_repair_run;
