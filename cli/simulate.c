// SPDX-License-Identifier: Apache-2.0
/*
 * Flags of the command to options of the cluster, and orders to its nodes. What runs is in
 * cli/simulate/.
 */
#include "cli/simulate.h"

#include "cli/simulate/cluster.h"
#include "cli/simulate/decide/node_spec.h"
#include "cli/simulate/nodes/nodes.h"
#include "lib/base/log.h"
#include "lib/base/own.h"

static const char *const default_nodes[] = {NODE_SPEC_DEFAULT, NULL};

int simulate_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		 struct err *err)
{
	const struct cluster_options options = {
		.listen = cli->listen ? cli->listen : CLUSTER_LISTEN_DEFAULT,
		.kubeconfig = cli->kubeconfig,
		.folder = cli->state,
		.api_only = cli->api_only,
		.nodes = cli->nodes ? cli->nodes : default_nodes,
	};
	json_auto_t *nodes = json_array();

	/* Before anything is started. */
	for (size_t i = 0; options.nodes[i]; i++)
		if (node_spec_add(nodes, options.nodes[i], &nodes_models, err) < 0)
			return -1;
	/* It is a server for as long as it runs. */
	(void)log_configure("warn", NULL);
	return cluster_run(&options, err);
}

static int order(const struct cli *cli,
		 int (*give)(const char *socket, const char *nic, const char *kind, char **ret_text,
			     struct err *err),
		 struct strbuf *out, struct err *err)
{
	auto_free char *folder = cli->state ? str_dup(cli->state) : cluster_folder();
	auto_free char *socket = cluster_socket(folder), *text = NULL;

	if (give(socket, cli->args[0], cli->args_len > 1 ? cli->args[1] : NULL, &text, err) < 0)
		return -1;
	strbuf_addf(out, "%s\n", text);
	return 0;
}

int simulate_break_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
		       struct err *err)
{
	return order(cli, nodes_break, out, err);
}

int simulate_repair_run(const struct cli *cli, struct strbuf *out, enum cli_status *ret_status,
			struct err *err)
{
	return order(cli, nodes_repair, out, err);
}
