// SPDX-License-Identifier: Apache-2.0
/* The process that plays nodes, as `orbweaver simulate` starts it. */
#pragma once

/*
 * argv: its name, kubeconfig, state folder, control socket, namespace of the operator, namespace of
 * the ConfigMap spiderpool-conf, then --node options (decide/node_spec.h). Returns its exit status.
 *
 * Hosts are in /dev/shm where that can be written, else in the state folder.
 */
int nodes_program(int argc, char **argv);
