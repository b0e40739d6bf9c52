// SPDX-License-Identifier: Apache-2.0
/* `orbweaver test`: RDMA and TCP on the path between pods of two nodes, in the user's networks. */
#pragma once

#include "cli/command.h"

extern const char *const test_kinds[];
extern const struct cli_field test_fields[];

cli_run_fn test_run;
