// SPDX-License-Identifier: Apache-2.0
/*
 * The transport: libnl's sockets, several messages in one system call, answers matched by sequence
 * number. netlink_send() and netlink_ask() are what both users know; the door lies below them.
 */
#include "nodeagent/netlink/netlink.h"

#include <assert.h>
#include <errno.h>
#include <linux/genetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "nodeagent/netlink/message.h"

/* Acknowledgements of as many messages have to fit into a receive buffer, at about 1 KiB each. */
#define BATCH_MAX    64
#define BUFFER_BYTES (1 << 17)

/*
 * The answer for a PF with hundreds of VFs is one message, which old kernels let grow beyond 64 KiB
 * (rtnl_vf.h). From 128 KiB on it fills the receive buffer, and the kernel drops what comes behind.
 * Dumps come in pieces of 32 KiB.
 */
#define MESSAGE_MAX (120 << 10)

/* A list that changes while it is read: as often as pods come and go at once. */
#define DUMP_TRIES 8

struct netlink {
	netlink_exchange_fn *exchange;
	void *ctx;
	int64_t kernel_us;
	struct {
		int protocol;
		struct nl_sock *socket;
	} sockets[4];
};

/* ---- sockets --------------------------------------------------------------------------------- */

static struct nl_sock *open_socket(int protocol, struct err *err)
{
	struct nl_sock *socket = nl_socket_alloc();
	int on = 1;

	if (!socket)
		mem_exhausted();
	/* libnl keeps errno of the failed call. */
	if (nl_connect(socket, protocol) < 0) {
		(void)err_sys(err, "NetlinkUnavailable", "open a netlink socket of protocol %d",
			      protocol);
		nl_socket_free(socket);
		return NULL;
	}
	(void)nl_socket_set_buffer_size(socket, BUFFER_BYTES, BUFFER_BYTES);
	/* One system call for a message: libnl would ask for the size of each first. */
	(void)nl_socket_set_msg_buf_size(socket, MESSAGE_MAX);
	nl_socket_disable_msg_peek(socket);
	/*
	 * Words with refusals, no copies of requests, filters that count; old kernels do without.
	 */
	(void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	(void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on,
			 sizeof(on));
	return socket;
}

static struct nl_sock *socket_of(const struct netlink *netlink, int protocol)
{
	for (size_t i = 0; i < ARRAY_LEN(netlink->sockets); i++)
		if (netlink->sockets[i].socket && netlink->sockets[i].protocol == protocol)
			return netlink->sockets[i].socket;
	return NULL;
}

/* What the kernel says besides errno, behind the copy of our request, which may be left out. */
static void take_words(const struct nlmsghdr *message, char *ret, size_t size)
{
	const struct nlmsgerr *error = nlmsg_data(message);
	size_t skip = sizeof(*error);
	struct nlattr *table[NLMSGERR_ATTR_MAX + 1];

	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(message->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(error->msg.nlmsg_len) - sizeof(error->msg);
	if (netlink_parse(message, skip, table, NLMSGERR_ATTR_MAX))
		(void)netlink_str(table[NLMSGERR_ATTR_MSG], ret, size);
}

/* Messages that were sent, the number of the first, and what is still to come. */
struct batch {
	struct nl_msg *const *messages;
	size_t n, missing;
	uint32_t first;
	struct netlink_answer *answers;
	struct strbuf *data;
};

static bool wants_answer(struct nl_msg *message)
{
	return nlmsg_hdr(message)->nlmsg_flags & NLM_F_ACK;
}

/* Numbers of requests that were given up lie before the first. */
static void take_message(struct batch *batch, const struct nlmsghdr *message)
{
	uint32_t i = message->nlmsg_seq - batch->first;
	int error = 0;

	if (i >= batch->n)
		return;
	batch->answers[i].is_interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
	if (message->nlmsg_type != NLMSG_DONE && message->nlmsg_type != NLMSG_ERROR) {
		netlink_add(batch->data, message);
		return;
	}
	/* An acknowledgement, a refusal, or the end of a dump. */
	if (message->nlmsg_type == NLMSG_ERROR &&
	    message->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		error = -EPROTO;
	else if (message->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, nlmsg_data(message), sizeof(error));
	batch->answers[i].code = -error;
	if (message->nlmsg_type == NLMSG_ERROR && error != -EPROTO)
		take_words(message, batch->answers[i].words, sizeof(batch->answers[i].words));
	if (wants_answer(batch->messages[i]))
		batch->missing--;
	else if (batch->answers[i].code)
		batch->missing = 0;
}

static int receive(struct nl_sock *socket, struct batch *batch, struct err *err)
{
	while (batch->missing > 0) {
		auto_free unsigned char *bytes = NULL;
		const struct nlmsghdr *message;
		struct sockaddr_nl from;
		int n = nl_recv(socket, &from, &bytes, NULL);
		size_t at = 0;

		if (n < 0) {
			errno = n == -NLE_NOMEM ? ENOBUFS : EIO;
			return err_sys(err, "NetlinkUnavailable", "receive from netlink: %s",
				       nl_geterror(n));
		}
		/* Only the kernel may answer. */
		while (from.nl_pid == 0 && batch->missing > 0 &&
		       (message = netlink_next(bytes, (size_t)n, &at)))
			take_message(batch, message);
	}
	return 0;
}

/* The kernel's door. */
static int exchange(void *ctx, int protocol, struct nl_msg *const *messages, size_t n,
		    struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct netlink *netlink = ctx;
	struct batch batch = {.messages = messages, .n = n, .answers = answers, .data = data};
	auto_strbuf struct strbuf bytes = {0};
	struct nl_sock *socket;
	ssize_t sent;

	if (netlink_open(netlink, protocol, err) < 0)
		return -1;
	socket = socket_of(netlink, protocol);
	for (size_t i = 0; i < n; i++) {
		struct nlmsghdr *header = nlmsg_hdr(messages[i]);

		header->nlmsg_seq = nl_socket_use_seq(socket);
		batch.first = i ? batch.first : header->nlmsg_seq;
		batch.missing += wants_answer(messages[i]);
		netlink_add(&bytes, header);
	}
	do
		sent = sendto(nl_socket_get_fd(socket), bytes.data, bytes.len, 0,
			      (const struct sockaddr *)&kernel, sizeof(kernel));
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return err_sys(err, "NetlinkUnavailable", "send to netlink");
	return receive(socket, &batch, err);
}

struct netlink *netlink_new(void)
{
	struct netlink *netlink = mem_new(struct netlink);

	netlink_set_door(netlink, NULL, NULL);
	return netlink;
}

void netlink_free(struct netlink *netlink)
{
	if (!netlink)
		return;
	netlink_reset(netlink);
	free(netlink);
}

void netlink_set_door(struct netlink *netlink, netlink_exchange_fn *door, void *ctx)
{
	netlink->exchange = door ? door : exchange;
	netlink->ctx = door ? ctx : netlink;
}

void netlink_reset(struct netlink *netlink)
{
	for (size_t i = 0; i < ARRAY_LEN(netlink->sockets); i++)
		netlink_close(netlink, netlink->sockets[i].protocol);
}

void netlink_close(struct netlink *netlink, int protocol)
{
	for (size_t i = 0; i < ARRAY_LEN(netlink->sockets); i++) {
		if (netlink->sockets[i].protocol != protocol)
			continue;
		nl_socket_free(netlink->sockets[i].socket);
		netlink->sockets[i].socket = NULL;
	}
}

int netlink_fd(const struct netlink *netlink, int protocol)
{
	struct nl_sock *socket = socket_of(netlink, protocol);

	return socket ? nl_socket_get_fd(socket) : -1;
}

bool netlink_is_open(const struct netlink *netlink, int protocol)
{
	return netlink->exchange != exchange || socket_of(netlink, protocol);
}

int netlink_open(struct netlink *netlink, int protocol, struct err *err)
{
	if (netlink_is_open(netlink, protocol))
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(netlink->sockets); i++) {
		if (netlink->sockets[i].socket)
			continue;
		netlink->sockets[i].protocol = protocol;
		netlink->sockets[i].socket = open_socket(protocol, err);
		return netlink->sockets[i].socket ? 0 : -1;
	}
	return err_set(err, ERR_BUG, "NetlinkUnavailable", "no place for netlink protocol %d",
		       protocol);
}

/* ---- what users send and ask ----------------------------------------------------------------- */

int64_t netlink_kernel_us(const struct netlink *netlink)
{
	return netlink->kernel_us;
}

/* Through the door, by the clock. */
static int pass(struct netlink *netlink, int protocol, struct nl_msg *const *messages, size_t n,
		struct netlink_answer *answers, struct strbuf *data, struct err *err)
{
	int64_t begun_us = clock_us();
	int code = netlink->exchange(netlink->ctx, protocol, messages, n, answers, data, err);

	if (protocol == NETLINK_ROUTE)
		netlink->kernel_us += clock_us() - begun_us;
	return code;
}

int netlink_send(struct netlink *netlink, int protocol, struct nl_msg *const *messages, size_t n,
		 struct netlink_answer *answers, struct err *err)
{
	auto_strbuf struct strbuf data = {0};

	for (size_t i = 0; i < n; i++) {
		nlmsg_hdr(messages[i])->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
		answers[i] = (struct netlink_answer){.code = EIO};
	}
	for (size_t i = 0; i < n; i += BATCH_MAX)
		if (pass(netlink, protocol, messages + i, n - i < BATCH_MAX ? n - i : BATCH_MAX,
			 answers + i, &data, err) < 0)
			return -1;
	return 0;
}

static int refused(const struct netlink_answer *answer, struct err *err)
{
	errno = answer->code;
	return err_sys(err, "NetlinkRefused", "%s",
		       answer->words[0] ? answer->words : "the kernel refuses");
}

/*
 * Refusals come by themselves; an acknowledgement of the last change says that there were none.
 * (The end of the transaction itself is acknowledged by Linux 6.10 and up only.)
 */
int netlink_commit(struct netlink *netlink, int protocol, struct nl_msg *const *messages, size_t n,
		   struct err *err)
{
	auto_free struct netlink_answer *answers = mem_calloc(n, sizeof(*answers));
	auto_strbuf struct strbuf data = {0};

	assert(n > 2 && n <= BATCH_MAX);
	for (size_t i = 0; i < n; i++)
		nlmsg_hdr(messages[i])->nlmsg_flags |= NLM_F_REQUEST;
	nlmsg_hdr(messages[n - 2])->nlmsg_flags |= NLM_F_ACK;
	if (pass(netlink, protocol, messages, n, answers, &data, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (answers[i].code)
			return refused(&answers[i], err);
	return 0;
}

int netlink_ask(struct netlink *netlink, int protocol, struct nl_msg *request,
		struct strbuf *answer, struct err *err)
{
	/* A dump has an end of its own, and is not acknowledged. */
	nlmsg_hdr(request)->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	for (int i = 0; i < DUMP_TRIES; i++) {
		struct netlink_answer end = {0};
		int code;

		strbuf_reset(answer);
		code = pass(netlink, protocol, &request, 1, &end, answer, err);
		if (code == 0 && !end.code && !end.is_interrupted)
			return 0;
		strbuf_reset(answer);
		if (code < 0)
			return -1;
		if (end.code)
			return refused(&end, err);
	}
	return err_set(err, ERR_TRANSIENT, "DumpInterrupted",
		       "a netlink dump was interrupted by a change, look again");
}

uint16_t netlink_decode_family(const void *bytes, size_t len)
{
	const struct nlmsghdr *message;
	struct nlattr *attrs[CTRL_ATTR_MAX + 1];
	size_t at = 0;
	uint16_t family;

	while ((message = netlink_next(bytes, len, &at)))
		if (message->nlmsg_type == GENL_ID_CTRL &&
		    netlink_parse(message, GENL_HDRLEN, attrs, CTRL_ATTR_MAX) &&
		    netlink_u16(attrs[CTRL_ATTR_FAMILY_ID], &family))
			return family;
	return 0;
}

int netlink_generic(struct netlink *netlink, const char *family, uint8_t command, uint16_t flags,
		    struct nl_msg **ret, struct err *err)
{
	struct genlmsghdr ask = {.cmd = CTRL_CMD_GETFAMILY, .version = 2},
			  header = {.cmd = command, .version = 1};
	auto_nl_msg struct nl_msg *msg = netlink_request(GENL_ID_CTRL, 0, &ask, sizeof(ask));
	auto_strbuf struct strbuf answer = {0};
	uint16_t number;

	assert(ret);
	netlink_put_str(msg, CTRL_ATTR_FAMILY_NAME, family);
	if (netlink_ask(netlink, NETLINK_GENERIC, msg, &answer, err) < 0)
		return -1;
	number = netlink_decode_family(answer.data, answer.len);
	errno = ENOENT;
	if (!number)
		return err_sys(err, "NetlinkRefused", "no number for generic netlink family %s",
			       family);
	*ret = netlink_request(number, flags, &header, sizeof(header));
	return 0;
}
