// SPDX-License-Identifier: Apache-2.0
/*
 * See the header.
 */
#include "nodeagent/cni/conversation.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/cni/exec_wire.h"

enum {
	CHUNK = 16384,
	/* For a call to come whole, or an answer to go. */
	PATIENCE_MS = 30000,
};

struct conversation {
	struct conversation_config config;
	struct poller *poller;
	struct timer *patience;
	struct wire_buffer in, out;
	int netns; /* came along; -1 */
	bool has_called, is_done, is_closed;
	bool *freed; /* while a callback runs: set when it frees us */
};

static void close_it(struct conversation *c)
{
	if (c->is_closed)
		return;
	c->is_closed = true;
	poller_want(c->poller, 0);
	timer_stop(c->patience);
	c->config.closed(c->config.arg);
}

static void on_patience(void *arg)
{
	close_it(arg);
}

/* False: it was closed, and may be freed. */
static bool transmit(struct conversation *c)
{
	while (c->out.len > 0) {
		ssize_t n =
			send(c->config.fd, c->out.data, c->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			wire_consume(&c->out, (size_t)n);
		} else if (errno == EAGAIN) {
			poller_want(c->poller, POLL_READ | POLL_WRITE);
			return true;
		} else if (errno != EINTR) {
			close_it(c);
			return false;
		}
	}
	if (c->is_done) {
		close_it(c);
		return false;
	}
	poller_want(c->poller, POLL_READ);
	return true;
}

static void on_result(struct conversation *c, const struct wire_message *message)
{
	uint32_t id;
	json_auto_t *end = exec_wire_read(message, &id);

	c->config.resulted(c->config.arg, id, end);
}

/* False: this is no message that may come now. */
static bool take(struct conversation *c, const struct wire_message *message)
{
	if (!c->has_called && message->kind == WIRE_CALL) {
		c->has_called = true;
		timer_stop(c->patience);
		c->config.called(c->config.arg, message, take_fd(&c->netns));
		return true;
	}
	if (!c->has_called || message->kind != WIRE_RESULT)
		return false;
	on_result(c, message);
	return true;
}

static void hear(struct conversation *c)
{
	bool freed = false;

	c->freed = &freed;
	for (;;) {
		struct wire_message message;
		int rc = wire_read(c->in.data, c->in.len, &message);

		if (rc == 0)
			break;
		if (rc < 0 || !take(c, &message)) {
			close_it(c);
			if (freed)
				return;
			break;
		}
		if (freed)
			return;
		if (c->is_closed)
			break;
		wire_consume(&c->in, message.bytes);
	}
	c->freed = NULL;
}

/* Of several descriptors the first counts. */
static int descriptor_of(struct msghdr *message)
{
	int first = -1;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head;
	     head = CMSG_NXTHDR(message, head)) {
		size_t n = head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS
				   ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int)
				   : 0;

		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				(void)close(fd);
		}
	}
	return first;
}

static void receive(struct conversation *c)
{
	unsigned char chunk[CHUNK];
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {.iov_base = chunk, .iov_len = sizeof(chunk)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(c->config.fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd = n >= 0 ? descriptor_of(&message) : -1;

	if (fd >= 0 && c->netns < 0 && !c->has_called)
		c->netns = fd;
	else if (fd >= 0)
		(void)close(fd);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_it(c);
		return;
	}
	wire_append(&c->in, chunk, (size_t)n);
	hear(c);
}

static void on_socket(void *arg, int events)
{
	struct conversation *c = arg;

	if ((events & POLL_WRITE) && !transmit(c))
		return;
	if (events & ~POLL_WRITE)
		receive(c);
}

struct conversation *conversation_new(const struct conversation_config *config)
{
	struct conversation *c = mem_new(struct conversation);

	c->config = *config;
	c->netns = -1;
	c->patience = timer_new(config->loop, on_patience, c);
	timer_start(c->patience, PATIENCE_MS);
	c->poller = poller_new(config->loop, config->fd, on_socket, c);
	poller_want(c->poller, POLL_READ);
	return c;
}

int conversation_exec(struct conversation *c, uint32_t id, const json_t *exec)
{
	if (exec_wire_write(&c->out, id, exec) < 0)
		return -1;
	if (!c->is_closed)
		poller_want(c->poller, POLL_READ | POLL_WRITE);
	return 0;
}

void conversation_done(struct conversation *c, const char *text, int status)
{
	size_t begun;

	if (c->is_closed || c->is_done)
		return;
	begun = wire_begin(&c->out, WIRE_DONE);
	wire_add_number(&c->out, WIRE_STATUS, (uint32_t)status);
	if (text)
		wire_add_text(&c->out, WIRE_STDOUT, text);
	/* A plugin that hears nothing says to try again. */
	(void)wire_end(&c->out, begun);
	c->is_done = true;
	timer_start(c->patience, PATIENCE_MS);
	/* From the loop, so that `closed` never comes from here. */
	poller_want(c->poller, POLL_READ | POLL_WRITE);
}

void conversation_free(struct conversation *c)
{
	if (!c)
		return;
	if (c->freed)
		*c->freed = true;
	poller_free(c->poller);
	timer_free(c->patience);
	(void)close(c->config.fd);
	if (c->netns >= 0)
		(void)close(c->netns);
	free(c->in.data);
	free(c->out.data);
	mem_free(c);
}
