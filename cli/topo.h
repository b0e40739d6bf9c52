// SPDX-License-Identifier: Apache-2.0
/* orbweaver topo NODE: which GPU is near which NIC. See docs/rails.md. */
#pragma once

#include "cli/command.h"

extern const char *const topo_kinds[];
extern const struct cli_field topo_fields[];

int topo_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
	     struct err *err);
