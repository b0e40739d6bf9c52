// SPDX-License-Identifier: Apache-2.0
/* Does an operator lead? What status and doctor say when none does. */
#pragma once

#include "cli/command.h"
#include "lib/base/own.h"

/*
 * What is the matter, and what to do; both NULL: an operator leads, or it is unknown, as where
 * files have no Lease or the user may not read it. lease: its "namespace/name".
 */
struct leader_finding {
	char *lease, *seen, *remedy;
};

void leader_look(const struct cli *cli, struct leader_finding *ret);
void leader_done(struct leader_finding *finding);
#define auto_leader_finding auto_call(leader_done)
