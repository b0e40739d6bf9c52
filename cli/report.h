// SPDX-License-Identifier: Apache-2.0
/* The command `orbweaver report`: the cluster as one HTML file that needs nothing else. */
#pragma once

#include "cli/command.h"

cli_run_fn report_run;
