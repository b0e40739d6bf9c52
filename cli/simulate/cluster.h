// SPDX-License-Identifier: Apache-2.0
/*
 * A simulated cluster, from its start to its end: the API server in this process, the operator and
 * the nodes in others.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/err.h"

#define CLUSTER_LISTEN_DEFAULT "127.0.0.1:0"

/* All borrowed. */
struct cluster_options {
	const char *listen;     /* "127.0.0.1:PORT", "[::1]:PORT"; port 0: a free one */
	const char *kubeconfig; /* written there, mode 0600; NULL: FOLDER/kubeconfig */
	const char *folder;     /* NULL: cluster_folder() */
	/* --node options (decide/node_spec.h), which are good; NULL at the end. */
	const char *const *nodes;
	/* Neither operator nor nodes, definitions nor namespaces of ours: for tests. */
	bool api_only;
};

/*
 * Where kubeconfig, lock, control socket and logs are unless said otherwise:
 * $XDG_RUNTIME_DIR/orbweaver-simulate, or /tmp/orbweaver-simulate-UID. Returns new; free().
 */
char *cluster_folder(void);

/* The control socket of the nodes (nodes/nodes.h) in such a folder. Returns new; free(). */
char *cluster_socket(const char *folder);

/*
 * Run it until SIGINT, SIGTERM or SIGHUP, or until one of its processes ends; what clients need to
 * know is printed to stdout once the API server answers. Nothing is left running, and the
 * kubeconfig is removed. Returns 0, or -1 with err:
 *
 *	ERR_INVALID "BadFlag"  the message names the flag, its value and what would be right: an
 *                             address that is not loopback, a port in use, a folder in which
 *                             another simulation runs, a kubeconfig that is not ours
 *	ERR_HOST "ChildEnded"  one of its processes ended by itself; names its log
 *	others                 of the folder, the certificate, the definitions
 */
int cluster_run(const struct cluster_options *options, struct err *err);
