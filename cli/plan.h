// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver plan`: what a change of policies would do, by the operator's own decision
 * (reconcilers/sriov).
 */
#pragma once

#include "cli/command.h"

extern const char *const plan_kinds[];
extern const struct cli_field plan_fields[];

cli_run_fn plan_run;
