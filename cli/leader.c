// SPDX-License-Identifier: Apache-2.0
/*
 * The operator's Lease is looked up in the world, by the namespace of the operator, and away.c
 * judges it. status and doctor both begin with it: without a leader, all that other objects say is
 * old.
 */
#include "cli/leader.h"

#include "cli/doctor/away.h"
#include "cli/source.h"
#include "lib/base/mem.h"
#include "lib/json/json.h"
#include "reconcilers/core/kinds.h"
#include "reconcilers/core/reconcile.h"

void leader_look(const struct cli *cli, struct leader_finding *ret)
{
	json_auto_t *world = source_world(cli), *lease = NULL;
	const char *ns = world_env(world, "namespace");
	/* The age of files is unknown, except for dumps. */
	const char *now = cli->files && !json_at(world, CLI_DUMP) ? NULL : world_env(world, "now");

	*ret = (struct leader_finding){0};
	if (!source_read_lease(cli, ns, &lease))
		return;
	ret->seen = away_leader(lease, now);
	if (!ret->seen)
		return;
	ret->lease = str_printf("%s/%s", ns, OPERATOR_NAME);
	ret->remedy = str_printf("look at Deployment %s: kubectl describe deployment -n %s %s%s",
				 OPERATOR_NAME, ns, OPERATOR_NAME,
				 lease ? ""
				       : "; there is no such Lease: --operator-namespace says "
					 "where the operator is");
}

void leader_done(struct leader_finding *finding)
{
	mem_free(take_ptr(finding->lease));
	mem_free(take_ptr(finding->seen));
	mem_free(take_ptr(finding->remedy));
}
