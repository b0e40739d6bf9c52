// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver support dump`: what another person needs to understand a cluster's
 * problem, without its secrets.
 */
#pragma once

#include "cli/command.h"

cli_run_fn support_dump_run;
