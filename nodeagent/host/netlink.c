// SPDX-License-Identifier: Apache-2.0
/*
 * Netlink: sockets, requests, and walking over answers. See the header.
 */
#include "nodeagent/host/netlink.h"

#include <errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "nodeagent/host/sysfs.h"

#define DUMP_TRIES 5

/* ---- sockets --------------------------------------------------------------------------------- */

struct netlink {
	struct {
		int protocol;
		struct nl_sock *socket;
	} sockets[3];
};

struct netlink *netlink_new(void)
{
	return mem_new(struct netlink);
}

void netlink_free(struct netlink *netlink)
{
	if (!netlink)
		return;
	for (size_t i = 0; i < ARRAY_LEN(netlink->sockets); i++)
		nl_socket_free(netlink->sockets[i].socket);
	free(netlink);
}

static struct nl_sock *open_socket(int protocol, struct err *err)
{
	struct nl_sock *socket = nl_socket_alloc();
	int on = 1, code;

	if (!socket)
		mem_exhausted();
	code = nl_connect(socket, protocol);
	if (code < 0) {
		/*
		 * libnl keeps errno of the failed call; EPROTONOSUPPORT is a module that is not
		 * loaded.
		 */
		(void)err_sys(err, "NetlinkUnavailable", "open a netlink socket of protocol %d",
			      protocol);
		nl_socket_free(socket);
		return NULL;
	}
	/* The answer for a PF with hundreds of VFs is one message of more than libnl's buffer. */
	nl_socket_enable_msg_peek(socket);
	/*
	 * Words with refusals and filters that count; kernels that lack one say so, and do without.
	 */
	(void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)setsockopt(nl_socket_get_fd(socket), SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on,
			 sizeof(on));
	return socket;
}

static struct nl_sock *socket_of(struct netlink *netlink, int protocol, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(netlink->sockets); i++) {
		struct nl_sock *socket = netlink->sockets[i].socket;

		if (socket && netlink->sockets[i].protocol == protocol)
			return socket;
		if (socket)
			continue;
		netlink->sockets[i].protocol = protocol;
		netlink->sockets[i].socket = open_socket(protocol, err);
		return netlink->sockets[i].socket;
	}
	(void)err_set(err, ERR_BUG, "NetlinkUnavailable", "no place for netlink protocol %d",
		      protocol);
	return NULL;
}

/*
 * What the kernel says besides errno (NETLINK_EXT_ACK), behind the copy of our request, which may
 * be left out.
 */
static const char *kernel_words(const struct nlmsghdr *message)
{
	const struct nlmsgerr *error = nlmsg_data(message);
	size_t skip = sizeof(*error);
	struct nlattr *table[NLMSGERR_ATTR_MAX + 1];

	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	if (!(message->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(error->msg.nlmsg_len) - sizeof(error->msg);
	if (!netlink_parse(message, skip, table, NLMSGERR_ATTR_MAX) || !table[NLMSGERR_ATTR_MSG] ||
	    nla_len(table[NLMSGERR_ATTR_MSG]) < 2)
		return NULL;
	return nla_data(table[NLMSGERR_ATTR_MSG]);
}

/* 1: acknowledged or refused, with err set then. */
static int end_of_answer(const struct nlmsghdr *message, bool interrupted, int *ret_code,
			 struct err *err)
{
	const char *words;
	int error = 0;

	*ret_code = 0;
	if (message->nlmsg_type != NLMSG_DONE && message->nlmsg_type != NLMSG_ERROR)
		return 0;
	if (message->nlmsg_type == NLMSG_ERROR &&
	    message->nlmsg_len < NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		error = -EPROTO;
	else if (message->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, nlmsg_data(message), sizeof(error));
	if (error < 0) {
		words = message->nlmsg_type == NLMSG_ERROR ? kernel_words(message) : NULL;
		errno = -error;
		*ret_code = words ? err_sys(err, "NetlinkRefused", "%.200s", words)
				  : err_sys(err, "NetlinkRefused", "the kernel refuses");
	} else if (interrupted) {
		*ret_code = err_set(err, ERR_TRANSIENT, "DumpInterrupted",
				    "a netlink dump was interrupted by a change, look again");
	}
	return 1;
}

static int read_answer(struct nl_sock *socket, uint32_t sequence, struct strbuf *answer,
		       struct err *err)
{
	bool interrupted = false;

	for (;;) {
		auto_free unsigned char *bytes = NULL;
		const struct nlmsghdr *message;
		struct sockaddr_nl from;
		size_t at = 0;
		int code, n = nl_recv(socket, &from, &bytes, NULL);

		if (n < 0) {
			errno = n == -NLE_NOMEM ? ENOBUFS : EIO;
			return err_sys(err, "NetlinkUnavailable", "receive from netlink: %s",
				       nl_geterror(n));
		}
		/*
		 * Answers to a request that we gave up carry another number; nobody but the kernel
		 * may speak.
		 */
		while (from.nl_pid == 0 && (message = netlink_next(bytes, (size_t)n, &at))) {
			if (message->nlmsg_seq != sequence)
				continue;
			interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
			if (end_of_answer(message, interrupted, &code, err))
				return code;
			strbuf_reserve(answer, NLMSG_ALIGN(message->nlmsg_len));
			strbuf_add(answer, message, message->nlmsg_len);
			while (answer->len % NLMSG_ALIGNTO)
				strbuf_addc(answer, '\0');
		}
	}
}

int netlink_transact(struct netlink *netlink, int protocol, const struct nlmsghdr *request,
		     struct strbuf *answer, struct err *err)
{
	struct nl_sock *socket = socket_of(netlink, protocol, err);
	auto_nl_msg struct nl_msg *msg = NULL;
	size_t before = answer->len;
	int code;

	if (!socket)
		return -1;
	msg = nlmsg_convert((struct nlmsghdr *)request);
	if (!msg)
		mem_exhausted();
	nl_complete_msg(socket, msg);
	code = nl_send(socket, msg);
	if (code < 0) {
		errno = EIO;
		return err_sys(err, "NetlinkUnavailable", "send to netlink: %s", nl_geterror(code));
	}
	if (read_answer(socket, nlmsg_hdr(msg)->nlmsg_seq, answer, err) == 0)
		return 0;
	strbuf_cut(answer, before);
	return -1;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct nl_msg *netlink_request(uint16_t type, uint16_t flags, const void *header, size_t header_len)
{
	struct nl_msg *msg = nlmsg_alloc_simple(type, flags | NLM_F_REQUEST);

	if (!msg ||
	    (header_len > 0 && nlmsg_append(msg, (void *)header, header_len, NLMSG_ALIGNTO) < 0))
		mem_exhausted();
	return msg;
}

void netlink_put(struct nl_msg *msg, int type, const void *data, size_t len)
{
	if (nla_put(msg, type, (int)len, data) < 0)
		mem_exhausted();
}

void netlink_put_u8(struct nl_msg *msg, int type, uint8_t value)
{
	netlink_put(msg, type, &value, sizeof(value));
}

void netlink_put_u16(struct nl_msg *msg, int type, uint16_t value)
{
	netlink_put(msg, type, &value, sizeof(value));
}

void netlink_put_u32(struct nl_msg *msg, int type, uint32_t value)
{
	netlink_put(msg, type, &value, sizeof(value));
}

void netlink_put_str(struct nl_msg *msg, int type, const char *value)
{
	netlink_put(msg, type, value, strlen(value) + 1);
}

int netlink_ask(struct host *host, int protocol, struct nl_msg *request, struct strbuf *answer,
		struct err *err)
{
	struct err problem = {0};

	for (int i = 0; i < DUMP_TRIES; i++) {
		strbuf_reset(answer);
		if (host->doors->transact(host->doors_ctx, protocol, nlmsg_hdr(request), answer,
					  &problem) == 0)
			return 0;
		if (problem.class != ERR_TRANSIENT)
			break;
	}
	if (err)
		*err = problem;
	return -1;
}

/* ---- answers --------------------------------------------------------------------------------- */

const struct nlmsghdr *netlink_next(const void *bytes, size_t len, size_t *at)
{
	const struct nlmsghdr *message;

	if (*at > len || len - *at < sizeof(*message))
		return NULL;
	message = (const void *)((const char *)bytes + *at);
	if (message->nlmsg_len < sizeof(*message) || message->nlmsg_len > len - *at)
		return NULL;
	*at += NLMSG_ALIGN(message->nlmsg_len);
	return message;
}

static void parse_attributes(const struct nlattr *attr, size_t left, struct nlattr **table, int max)
{
	memset(table, 0, sizeof(struct nlattr *) * ((size_t)max + 1));
	while (left >= sizeof(*attr) && attr->nla_len >= sizeof(*attr) && attr->nla_len <= left) {
		size_t step = NLA_ALIGN(attr->nla_len);

		if (nla_type(attr) <= max)
			table[nla_type(attr)] = (struct nlattr *)attr;
		if (step > left)
			break;
		left -= step;
		attr = (const void *)((const char *)attr + step);
	}
}

bool netlink_parse(const struct nlmsghdr *message, size_t header_len, struct nlattr **table,
		   int max)
{
	size_t skip = NLMSG_HDRLEN + NLMSG_ALIGN(header_len);

	memset(table, 0, sizeof(struct nlattr *) * ((size_t)max + 1));
	if (message->nlmsg_len < NLMSG_HDRLEN + header_len)
		return false;
	if (message->nlmsg_len > skip)
		parse_attributes((const void *)((const char *)message + skip),
				 message->nlmsg_len - skip, table, max);
	return true;
}

void netlink_parse_nested(const struct nlattr *nest, struct nlattr **table, int max)
{
	parse_attributes(nla_data(nest), (size_t)nla_len(nest), table, max);
}

static bool value_of(const struct nlattr *attr, void *ret, size_t size)
{
	if (!attr || (size_t)nla_len(attr) != size)
		return false;
	memcpy(ret, nla_data(attr), size);
	return true;
}

bool netlink_u8(const struct nlattr *attr, uint8_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_u16(const struct nlattr *attr, uint16_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_u32(const struct nlattr *attr, uint32_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_u64(const struct nlattr *attr, uint64_t *ret)
{
	return value_of(attr, ret, sizeof(*ret));
}

bool netlink_str(const struct nlattr *attr, char *ret, size_t size)
{
	size_t len;

	if (!attr || nla_len(attr) < 1)
		return false;
	len = strnlen(nla_data(attr), (size_t)nla_len(attr));
	if (len > size - 1)
		len = size - 1;
	memcpy(ret, nla_data(attr), len);
	ret[len] = '\0';
	return len > 0;
}

size_t netlink_count(const void *bytes, size_t len)
{
	size_t at = 0, n = 0;

	while (netlink_next(bytes, len, &at))
		n++;
	return n;
}
