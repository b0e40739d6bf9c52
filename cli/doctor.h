// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver doctor`: what keeps RDMA from working, of nodes by their NodeStates, and
 * of the host that it runs on.
 */
#pragma once

#include "cli/command.h"

extern const char *const doctor_kinds[];
extern const struct cli_field doctor_fields[];

cli_run_fn doctor_run;
