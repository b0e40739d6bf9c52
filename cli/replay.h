// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver replay`: what the operator would decide on a support dump, or on objects
 * of files, and what of it is not so there.
 */
#pragma once

#include "cli/command.h"

extern const struct cli_field replay_fields[];

cli_run_fn replay_run;
