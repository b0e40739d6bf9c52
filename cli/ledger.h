// SPDX-License-Identifier: Apache-2.0
/*
 * The command `orbweaver ledger`: which pod has which VF, RDMA device, GUID, MAC and address, and
 * where sources disagree.
 */
#pragma once

#include "cli/command.h"

extern const char *const ledger_kinds[];
extern const struct cli_field ledger_fields[];

cli_run_fn ledger_run;

/* All devices that pods have, as `fields` describes the items. World: ledger_kinds. Returns new. */
json_t *ledger_rows(const json_t *world);
