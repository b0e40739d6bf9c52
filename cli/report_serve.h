// SPDX-License-Identifier: Apache-2.0
/* `orbweaver report --serve`: the page on the loopback, up to date. */
#pragma once

#include "cli/command.h"

/*
 * Prints the URL as a line on stdout and serves until SIGINT or SIGTERM; returns 0 then. Errors:
 * those of door.h for the address, ERR_INVALID "BadUsage", and those of source.h.
 */
int report_serve(const struct cli *cli, struct err *err);
