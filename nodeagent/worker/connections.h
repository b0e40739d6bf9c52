// SPDX-License-Identifier: Apache-2.0
/*
 * From which addresses a process talks to others: where the kubelet's connections end is where the
 * node has the addresses that it needs, whatever an agent says.
 */
#ifndef ORBWEAVER_NODEAGENT_WORKER_CONNECTIONS_H
#define ORBWEAVER_NODEAGENT_WORKER_CONNECTIONS_H

#include <sys/types.h>

#include "nodeagent/host/sysfs.h"

/*
 * The process that listens on this socket of AF_UNIX: 0 when nobody does, or when it belongs to
 * another PID namespace.
 */
pid_t connections_listener(const char *path);

/*
 * Local addresses of a process's TCP connections that are established, without loopback: an array
 * of strings, each once, new. Empty when nothing can be read.
 */
json_t *connections_addresses(const struct host *host, pid_t pid);

#endif
