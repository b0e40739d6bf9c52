// SPDX-License-Identifier: Apache-2.0
/*
 * TCP connections of the node: from which addresses a process talks to others, and to which
 * addresses the node talks. Where the kubelet's connections end is where the node has the addresses
 * that it needs, whatever an agent says.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "nodeagent/host/sysfs.h"

/*
 * The process that listens on this socket of AF_UNIX: 0 when none does, or when it belongs to
 * another PID namespace.
 */
pid_t connections_listener(const char *path);

/*
 * Local addresses of a process's TCP connections that are established, without loopback: an array
 * of strings, each once, new. Empty when nothing can be read.
 */
json_t *connections_addresses(const struct host *host, pid_t pid);

/* More of them are not returned. */
#define CONNECTIONS_PEERS_MAX 64

/*
 * Other ends of the established TCP connections of the network namespace that the calling thread is
 * in, without loopback: those that `is_wanted`, each once, an array of strings, new. root: a folder
 * with a proc in it that shows this thread. NULL with err: ERR_HOST "HostUnreadable".
 */
json_t *connections_peers(int root, bool (*is_wanted)(const void *arg, const char *address),
			  const void *arg, struct err *err);

/*
 * Of the addresses that `is_wanted` those to which a process has TCP connections that are
 * established and that it began itself: their local port is none that is listened on. An array of
 * strings, new; empty when nothing can be read.
 */
json_t *connections_reached(int root, pid_t pid,
			    bool (*is_wanted)(const void *arg, const char *address),
			    const void *arg);
