// SPDX-License-Identifier: Apache-2.0
/*
 * One network namespace: a netlink socket that lives in it, and a way to run code inside.
 *
 * A socket belongs to the namespace it was made in (network_namespaces(7)), so the thread enters
 * once to open it and comes back. Blocking, for one thread; the process is a worker of its own.
 */
#ifndef ORBWEAVER_NODEAGENT_NETNS_NETNS_H
#define ORBWEAVER_NODEAGENT_NETNS_NETNS_H

#include <netlink/msg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

struct netns;

/*
 * `fd` is a descriptor of a network namespace, which stays the caller's; -1: the one we are in.
 * NULL with err:
 *
 *   ERR_HOST "BadNetns"            no network namespace, or it cannot be entered
 *   ERR_HOST "NetlinkUnavailable"  no netlink socket in it
 */
struct netns *netns_open(int fd, struct err *err);
/* The same with a socket of another protocol (NETLINK_RDMA). */
struct netns *netns_open_protocol(int fd, int protocol, struct err *err);
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
 * namespace from then on.
 */
int netns_within(struct netns *ns, int (*work)(void *context, struct err *err), void *context,
		 struct err *err);

/* What became of one message. */
struct netns_answer {
	int code;       /* errno, 0: done */
	char words[80]; /* the kernel's own, "" when it said none */
};

/*
 * Send all messages in few system calls and wait for each to be acknowledged; they are carried out
 * in order, a refusal does not stop those behind it. answers: n of them. -1 with err
 * "NetlinkUnavailable" when the kernel could not be asked; answers that are unknown then say EIO.
 */
int netns_send(struct netns *ns, struct nl_msg *const *messages, size_t n,
	       struct netns_answer *answers, struct err *err);

/*
 * Ask one question and append all messages of the answer, each padded, without acknowledgement or
 * end of dump. ERR_HOST "NetlinkRefused" with errno; a dump that was interrupted is asked for
 * again.
 */
int netns_ask(struct netns *ns, struct nl_msg *request, struct strbuf *answer, struct err *err);

/* How long the kernel took for what it was sent and asked so far. NULL: 0. */
int64_t netns_kernel_us(const struct netns *ns);

/*
 * Read and write /proc/sys/<path> of the namespace; text without the line's end. errno in err->sys.
 */
int netns_read_sysctl(struct netns *ns, const char *path, char *ret, size_t size, struct err *err);
int netns_write_sysctl(struct netns *ns, const char *path, const char *value, struct err *err);

#endif
