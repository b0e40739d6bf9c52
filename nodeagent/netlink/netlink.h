// SPDX-License-Identifier: Apache-2.0
/*
 * Speaking to the kernel by netlink: one transport for the host's steps and for CNI calls.
 *
 * Blocking, for one thread. Below it is a door, so that tests and `orbweaver simulate` can put a
 * kernel of their own in the place of the sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/own.h"
#include "lib/base/str.h"

struct nl_msg; /* message.h */

/* What became of one message. */
struct netlink_answer {
	int code;            /* errno, 0: done */
	bool is_interrupted; /* a dump, during which the kernel's list changed */
	char words[200];     /* the kernel's own (NETLINK_EXT_ACK), "" when it sent none */
};

/*
 * The door: send `n` messages to `protocol` (NETLINK_ROUTE, NETLINK_RDMA, …) at once, to be carried
 * out in order, and wait for the end of the answer to each that wants one (NLM_F_ACK).
 * A refusal does not stop the messages behind it. But a message that wants no answer, and gets a
 * refusal, ends the wait: with an edge of a transaction nfnetlink refuses all of it.
 *
 * answers: n of them. data: all messages of the answers are appended, without acknowledgements and
 * ends of dumps, each padded to NLMSG_ALIGN. -1 with err when the kernel could not be asked.
 */
typedef int netlink_exchange_fn(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
				struct netlink_answer *answers, struct strbuf *data,
				struct err *err);

/*
 * Sockets, one for each protocol, made when first used. A socket belongs to the network namespace
 * in which it was made (network_namespaces(7)).
 */
struct netlink;
struct netlink *netlink_new(void);
void netlink_free(struct netlink *netlink);
OWN_DEFINE(struct netlink, netlink_free)
#define auto_netlink auto_call(netlink_free_p)

/* Another door; NULL: sockets, as at the start. `ctx` stays the caller's. */
void netlink_set_door(struct netlink *netlink, netlink_exchange_fn *exchange, void *ctx);

/* Close all sockets: those that follow belong to the namespace where the thread is then. */
void netlink_reset(struct netlink *netlink);

/*
 * Is there a socket for the protocol, or none needed? Make it now, where the thread is.
 * ERR_HOST "NetlinkUnavailable" with errno; EPROTONOSUPPORT: a module is not loaded.
 */
bool netlink_is_open(const struct netlink *netlink, int protocol);
int netlink_open(struct netlink *netlink, int protocol, struct err *err);
/* Its descriptor, borrowed; -1: there is none. Close it before its time. */
int netlink_fd(const struct netlink *netlink, int protocol);
void netlink_close(struct netlink *netlink, int protocol);

/* How long the kernel took for what NETLINK_ROUTE was sent and asked so far. */
int64_t netlink_kernel_us(const struct netlink *netlink);

/*
 * Send all messages in few system calls and wait for each to be acknowledged; they are carried out
 * in order, a refusal does not stop those behind it. -1 with err when the kernel could not be asked
 * ("NetlinkUnavailable"); answers that are unknown then have EIO.
 */
int netlink_send(struct netlink *netlink, int protocol, struct nl_msg *const *messages, size_t n,
		 struct netlink_answer *answers, struct err *err);

/*
 * A transaction of nfnetlink (net/netfilter/nfnetlink.c): all messages are carried out, or none.
 * The first and the last are its edges. Errors as of netlink_ask(), the kernel's first refusal.
 */
int netlink_commit(struct netlink *netlink, int protocol, struct nl_msg *const *messages, size_t n,
		   struct err *err);

/*
 * Ask one question, or send one change. `answer` is emptied first, and stays empty on failure. A
 * dump that was interrupted is asked for again, a few times.
 *
 *   ERR_HOST "NetlinkRefused"        with errno in err->sys, and the kernel's words in the text
 *   ERR_HOST "NetlinkUnavailable"    the kernel could not be asked
 *   ERR_TRANSIENT "DumpInterrupted"  the list changes all the time
 */
int netlink_ask(struct netlink *netlink, int protocol, struct nl_msg *request,
		struct strbuf *answer, struct err *err);

/*
 * A request to version 1 of a generic family ("devlink", "ethtool"), new; attributes follow.
 * Families are numbered when their module is loaded, so the kernel is asked each time; errors as of
 * netlink_ask(), ENOENT: it has no such family.
 */
int netlink_generic(struct netlink *netlink, const char *family, uint8_t command, uint16_t flags,
		    struct nl_msg **ret, struct err *err);
/* The number of a family; 0 when the answer has none. Pure. */
uint16_t netlink_decode_family(const void *bytes, size_t len);
