// SPDX-License-Identifier: Apache-2.0
/*
 * `orbweaver drain`: which nodes have pods in the way of a change, how far each drain is, and
 * keeping a node out of it.
 */
#pragma once

#include "cli/command.h"

extern const char *const drain_kinds[];
extern const struct cli_field drain_fields[];

cli_run_fn drain_status, drain_stop, drain_retry;
