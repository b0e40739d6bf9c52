// SPDX-License-Identifier: Apache-2.0
/*
 * One network namespace. See the header.
 */
#include "nodeagent/netns/netns.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "nodeagent/host/netlink.h"

/* Messages per send: their acknowledgements have to fit into the socket's receive buffer. */
#define BATCH_MAX  64
#define DUMP_TRIES 5

struct netns {
	int fd, home, socket, protocol;
	uint32_t sequence;
	int64_t kernel_us;
};

/* ---- opening and entering -------------------------------------------------------------------- */

static int open_socket(void *context, struct err *err)
{
	struct netns *ns = context;
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int on = 1;

	ns->socket = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, ns->protocol);
	if (ns->socket < 0 || bind(ns->socket, (void *)&address, sizeof(address)) < 0)
		return err_sys(err, "NetlinkUnavailable", "open a netlink socket in the namespace");
	/*
	 * Words with refusals, no copies of requests, filters that count; old kernels do without.
	 */
	(void)setsockopt(ns->socket, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	(void)setsockopt(ns->socket, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	(void)setsockopt(ns->socket, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	return 0;
}

struct netns *netns_open(int fd, struct err *err)
{
	return netns_open_protocol(fd, NETLINK_ROUTE, err);
}

struct netns *netns_open_protocol(int fd, int protocol, struct err *err)
{
	auto_netns struct netns *ns = mem_new(struct netns);

	*ns = (struct netns){
		.fd = -1, .home = -1, .socket = -1, .protocol = protocol, .sequence = 1};
	ns->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (ns->home < 0) {
		(void)err_sys(err, "BadNetns", "open /proc/self/ns/net");
		return NULL;
	}
	ns->fd = fcntl(fd < 0 ? ns->home : fd, F_DUPFD_CLOEXEC, 3);
	if (ns->fd < 0 || ioctl(ns->fd, NS_GET_NSTYPE) != CLONE_NEWNET) {
		(void)err_set(err, ERR_HOST, "BadNetns", "CNI_NETNS is no network namespace");
		return NULL;
	}
	if (netns_within(ns, open_socket, ns, err))
		return NULL;
	return take_ptr(ns);
}

void netns_close(struct netns *ns)
{
	if (!ns)
		return;
	own_close_p(&ns->fd);
	own_close_p(&ns->home);
	own_close_p(&ns->socket);
	free(ns);
}

int netns_fd(const struct netns *ns)
{
	return ns->fd;
}

int64_t netns_kernel_us(const struct netns *ns)
{
	return ns ? ns->kernel_us : 0;
}

bool netns_is_same(const struct netns *a, const struct netns *b)
{
	struct stat first, second;

	return fstat(a->fd, &first) == 0 && fstat(b->fd, &second) == 0 &&
	       first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

int netns_within(struct netns *ns, int (*work)(void *context, struct err *err), void *context,
		 struct err *err)
{
	int code;

	if (setns(ns->fd, CLONE_NEWNET) < 0)
		return err_sys(err, "BadNetns", "enter the network namespace");
	code = work(context, err);
	if (setns(ns->home, CLONE_NEWNET) < 0)
		abort();
	return code;
}

/* ---- netlink --------------------------------------------------------------------------------- */

/*
 * One packet of the kernel, whole: an answer about a PF with many VFs is larger than any fixed
 * buffer.
 */
static ssize_t receive(struct netns *ns, struct strbuf *packet, struct err *err)
{
	struct sockaddr_nl from = {0};
	struct iovec part = {0};
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &part,
		.msg_iovlen = 1,
	};
	int64_t begun_us = clock_us();
	ssize_t n;

	do {
		strbuf_reset(packet);
		strbuf_reserve(packet, 32768);
		part = (struct iovec){packet->data, 32768};
		do
			n = recvmsg(ns->socket, &message, MSG_PEEK | MSG_TRUNC);
		while (n < 0 && errno == EINTR);
		if (n > 32768)
			strbuf_reserve(packet, (size_t)n);
		if (n >= 0) {
			part = (struct iovec){packet->data, (size_t)n > 32768 ? (size_t)n : 32768};
			n = recvmsg(ns->socket, &message, 0);
		}
		if (n < 0)
			return err_sys(err, "NetlinkUnavailable", "receive from netlink");
	} while (from.nl_pid != 0); /* nobody but the kernel may speak */
	ns->kernel_us += clock_us() - begun_us;
	packet->len = (size_t)n;
	return n;
}

/* What the kernel says besides errno (NETLINK_EXT_ACK). */
static void take_words(const struct nlmsghdr *message, char *ret, size_t size)
{
	struct nlattr *table[NLMSGERR_ATTR_MAX + 1];
	const struct nlmsgerr *error = nlmsg_data(message);
	size_t skip = sizeof(*error);

	ret[0] = '\0';
	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(message->nlmsg_flags & NLM_F_CAPPED))
		skip += NLMSG_ALIGN(error->msg.nlmsg_len) - sizeof(error->msg);
	if (netlink_parse(message, skip, table, NLMSGERR_ATTR_MAX))
		(void)netlink_str(table[NLMSGERR_ATTR_MSG], ret, size);
}

static void take_answer(const struct nlmsghdr *message, struct netns_answer *ret)
{
	const struct nlmsgerr *error = nlmsg_data(message);

	if (message->nlmsg_len < NLMSG_LENGTH(sizeof(*error))) {
		ret->code = EPROTO;
		return;
	}
	ret->code = -error->error;
	take_words(message, ret->words, sizeof(ret->words));
}

static int send_bytes(struct netns *ns, const void *bytes, size_t len, struct err *err)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int64_t begun_us = clock_us();
	ssize_t n;

	do
		n = sendto(ns->socket, bytes, len, 0, (void *)&kernel, sizeof(kernel));
	while (n < 0 && errno == EINTR);
	ns->kernel_us += clock_us() - begun_us;
	return n < 0 ? err_sys(err, "NetlinkUnavailable", "send to netlink") : 0;
}

static int send_batch(struct netns *ns, struct nl_msg *const *messages, size_t n,
		      struct netns_answer *answers, struct err *err)
{
	auto_strbuf struct strbuf bytes = {0}, packet = {0};
	uint32_t first = ns->sequence;
	size_t missing = n;

	for (size_t i = 0; i < n; i++) {
		struct nlmsghdr *header = nlmsg_hdr(messages[i]);

		header->nlmsg_seq = ns->sequence++;
		header->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
		strbuf_add(&bytes, header, header->nlmsg_len);
		while (bytes.len % NLMSG_ALIGNTO)
			strbuf_addc(&bytes, '\0');
	}
	if (send_bytes(ns, bytes.data, bytes.len, err))
		return -1;
	while (missing > 0) {
		const struct nlmsghdr *message;
		size_t at = 0;

		if (receive(ns, &packet, err) < 0)
			return -1;
		while ((message = netlink_next(packet.data, packet.len, &at))) {
			uint32_t i = message->nlmsg_seq - first;

			if (i >= n || message->nlmsg_type != NLMSG_ERROR || answers[i].code != EIO)
				continue;
			take_answer(message, &answers[i]);
			missing--;
		}
	}
	return 0;
}

int netns_send(struct netns *ns, struct nl_msg *const *messages, size_t n,
	       struct netns_answer *answers, struct err *err)
{
	for (size_t i = 0; i < n; i++)
		answers[i] = (struct netns_answer){.code = EIO};
	for (size_t i = 0; i < n; i += BATCH_MAX)
		if (send_batch(ns, messages + i, n - i < BATCH_MAX ? n - i : BATCH_MAX, answers + i,
			       err))
			return -1;
	return 0;
}

/* 0: more to come; 1: all there; -1 with err. */
static int gather(const struct strbuf *packet, uint32_t sequence, struct strbuf *answer,
		  bool *ret_interrupted, struct err *err)
{
	const struct nlmsghdr *message;
	size_t at = 0;

	while ((message = netlink_next(packet->data, packet->len, &at))) {
		struct netns_answer end = {0};

		if (message->nlmsg_seq != sequence)
			continue;
		*ret_interrupted |= (message->nlmsg_flags & NLM_F_DUMP_INTR) != 0;
		if (message->nlmsg_type == NLMSG_DONE)
			return 1;
		if (message->nlmsg_type == NLMSG_ERROR) {
			take_answer(message, &end);
			if (end.code == 0)
				return 1;
			errno = end.code;
			return err_sys(err, "NetlinkRefused", "%s",
				       end.words[0] ? end.words : "the kernel refuses");
		}
		strbuf_add(answer, message, message->nlmsg_len);
		while (answer->len % NLMSG_ALIGNTO)
			strbuf_addc(answer, '\0');
	}
	return 0;
}

int netns_ask(struct netns *ns, struct nl_msg *request, struct strbuf *answer, struct err *err)
{
	struct nlmsghdr *header = nlmsg_hdr(request);
	auto_strbuf struct strbuf packet = {0};
	size_t before = answer->len;
	bool interrupted = true;

	/* What is not a dump ends with an acknowledgement. */
	if (!(header->nlmsg_flags & NLM_F_DUMP))
		header->nlmsg_flags |= NLM_F_ACK;
	for (int i = 0; i < DUMP_TRIES && interrupted; i++) {
		int code = 0;

		interrupted = false;
		strbuf_cut(answer, before);
		header->nlmsg_seq = ns->sequence++;
		if (send_bytes(ns, header, header->nlmsg_len, err))
			return -1;
		while (code == 0) {
			if (receive(ns, &packet, err) < 0)
				return -1;
			code = gather(&packet, header->nlmsg_seq, answer, &interrupted, err);
		}
		if (code < 0) {
			strbuf_cut(answer, before);
			return -1;
		}
	}
	if (interrupted)
		return err_set(err, ERR_TRANSIENT, "DumpInterrupted",
			       "a netlink dump was interrupted by a change, look again");
	return 0;
}

/* ---- sysctl ---------------------------------------------------------------------------------- */

struct sysctl {
	const char *path;
	char *read;
	size_t size;
	const char *write;
};

static int do_sysctl(void *context, struct err *err)
{
	struct sysctl *sysctl = context;
	auto_free char *path = str_below("/proc/sys", sysctl->path);
	auto_close int fd = open(path, (sysctl->write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return err_sys(err, "StepRefused", "open %s", path);
	if (sysctl->write) {
		if (write(fd, sysctl->write, strlen(sysctl->write)) < 0)
			return err_sys(err, "StepRefused", "write %s to %s", sysctl->write, path);
		return 0;
	}
	n = read(fd, sysctl->read, sysctl->size - 1);
	if (n < 0)
		return err_sys(err, "StepRefused", "read %s", path);
	sysctl->read[n] = '\0';
	sysctl->read[strcspn(sysctl->read, "\n")] = '\0';
	return 0;
}

int netns_read_sysctl(struct netns *ns, const char *path, char *ret, size_t size, struct err *err)
{
	assert(size > 1);
	return netns_within(ns, do_sysctl,
			    &(struct sysctl){.path = path, .read = ret, .size = size}, err);
}

int netns_write_sysctl(struct netns *ns, const char *path, const char *value, struct err *err)
{
	return netns_within(ns, do_sysctl, &(struct sysctl){.path = path, .write = value}, err);
}
