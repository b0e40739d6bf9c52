// SPDX-License-Identifier: Apache-2.0
/*
 * `orbweaver test`: RDMA and TCP on the path between pods of two nodes, in the user's networks.
 */
#ifndef ORBWEAVER_CLI_TEST_H
#define ORBWEAVER_CLI_TEST_H

#include "cli/command.h"

extern const char *const test_kinds[];
extern const struct cli_field test_fields[];

cli_run_fn test_run;

#endif
