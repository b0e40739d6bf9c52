// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver report`: the cluster as one HTML file that needs nothing else.
 */
#ifndef ORBWEAVER_CLI_REPORT_H
#define ORBWEAVER_CLI_REPORT_H

#include "cli/command.h"

cli_run_fn report_run;

#endif
