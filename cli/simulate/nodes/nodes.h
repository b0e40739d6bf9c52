// SPDX-License-Identifier: Apache-2.0
/* The process that plays all nodes of a simulated cluster, and the words to it. */
#pragma once

#include <jansson.h>

#include "cli/simulate/decide/node_spec.h"
#include "lib/base/err.h"

/* All borrowed. */
struct nodes_config {
	const char *kubeconfig;
	const json_t *nodes; /* of node_spec_add() (cli/simulate/decide/node_spec.h) */
	/* A private folder: hosts are in folders of their own below it, and go with us. */
	const char *folder;
	const char *socket;    /* path of the control socket; NULL: none */
	const char *ns;        /* of NodeStates and the operator */
	const char *config_ns; /* of the ConfigMap spiderpool-conf */
};

/*
 * Play them until SIGTERM or SIGINT; returns the exit status of the process, after a line on stderr
 * where it is not 0. json_init() comes before.
 */
int nodes_run(const struct nodes_config *config);

/* Names of NICs and GPUs for --node, as node_spec_add() wants them. */
extern const struct node_models nodes_models;

/*
 * Break a NIC, or repair it: `nic` is NODE/NIC with the name of its interface or its PCI address,
 * `kind` one of link-down, vf-refusal, driver-missing, pf-missing (repair: NULL for all).
 * *ret_text: what was done, a line, new.
 *
 * Errors: ERR_INVALID "UnknownNode", "UnknownNic", "UnknownFault", with the possible values;
 * ERR_HOST "NotSimulated": nothing listens there.
 */
int nodes_break(const char *socket, const char *nic, const char *kind, char **ret_text,
		struct err *err);
int nodes_repair(const char *socket, const char *nic, const char *kind, char **ret_text,
		 struct err *err);
