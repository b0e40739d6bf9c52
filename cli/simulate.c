/*
 * Flags of the command to options of the cluster. What runs is in cli/simulate/.
 */
#include "cli/simulate.h"

#include "cli/simulate/cluster.h"
#include "lib/base/log.h"

int simulate_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	const struct cluster_options options = {
		.listen = cli->listen ? cli->listen : CLUSTER_LISTEN_DEFAULT,
		.kubeconfig = cli->kubeconfig,
		.folder = cli->state,
		.api_only = cli->api_only,
	};

	/* It is a server for as long as it runs. */
	(void)log_configure("warn", NULL);
	return cluster_run(&options, err);
}
