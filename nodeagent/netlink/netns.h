// SPDX-License-Identifier: Apache-2.0
/*
 * One network namespace: netlink sockets that live in it, and a way to run code inside.
 *
 * A socket belongs to the namespace it was made in (network_namespaces(7)), so the thread enters
 * once to open it and comes back. Blocking, for one thread; the process is a worker of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "nodeagent/netlink/netlink.h"

struct netns;

/*
 * `fd` is a descriptor of a network namespace, which stays the caller's; -1: the one we are in.
 * NULL with err:
 *
 *   ERR_INVALID "BadNetns"         no network namespace
 *   ERR_HOST "BadNetns"            it cannot be entered, or opened now
 *   ERR_HOST "NetlinkUnavailable"  no netlink socket in it
 */
struct netns *netns_open(int fd, struct err *err);

/*
 * The same on a simulated host, in place of the kernel: `exchange` with `ctx` is the door of its
 * sockets (netlink.h), `sysctls` the folder that stands for /proc/sys, `fd` what messages that move
 * devices name it by. Strings and `ctx` outlive it.
 */
struct netns *netns_open_door(int fd, netlink_exchange_fn *exchange, void *ctx,
			      const char *sysctls);
/*
 * The same, kept for the questions that follow: a namespace of the list is not opened again,
 * whatever descriptor names it. *list is NULL at first, and closed like one namespace. Borrowed.
 */
struct netns *netns_keep(struct netns **list, int fd, struct err *err);
void netns_close(struct netns *ns);
OWN_DEFINE(struct netns, netns_close)
#define auto_netns auto_call(netns_close_p)

/* The descriptor, for messages that move devices. Borrowed. */
int netns_fd(const struct netns *ns);

/* Are both the same namespace? */
bool netns_is_same(const struct netns *a, const struct netns *b);

/*
 * Run `work` with the thread inside the namespace, and come back. Returns what it returned, or -1
 * with err "BadNetns". A thread that cannot come back ends the process: it would act on the wrong
 * namespace from then on. `work` may call this again.
 */
int netns_within(struct netns *ns, int (*work)(void *context, struct err *err), void *context,
		 struct err *err);

/* Its sockets: that of NETLINK_ROUTE is open. The namespace's. */
struct netlink *netns_netlink(const struct netns *ns);

/* Open the socket of another protocol. Errors as of netlink_open(). */
int netns_open_socket(struct netns *ns, int protocol, struct err *err);

/*
 * Read and write /proc/sys/<path> of the namespace; text without the line's end. errno in err->sys.
 */
int netns_read_sysctl(struct netns *ns, const char *path, char *ret, size_t size, struct err *err);
int netns_write_sysctl(struct netns *ns, const char *path, const char *value, struct err *err);
