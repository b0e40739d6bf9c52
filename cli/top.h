// SPDX-License-Identifier: Apache-2.0
/*
 * orbweaver top: what goes over the ports of nodes, and which pods' it is. See
 * docs/command-line.md.
 */
#ifndef ORBWEAVER_CLI_TOP_H
#define ORBWEAVER_CLI_TOP_H

#include "cli/command.h"

extern const char *const top_kinds[];
extern const struct cli_field top_fields[];

int top_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	    struct err *err);

#endif
