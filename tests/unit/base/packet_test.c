// SPDX-License-Identifier: Apache-2.0
/* Packets with a descriptor. */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/packet.h"

struct stand {
	int ours, theirs; /* -1: closed */
	int pipe[2];
	char data[16];
	int fd; /* received */
};

static int set_up(void **state)
{
	static struct stand s;
	int pair[2];

	s = (struct stand){.fd = -2};
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(s.pipe), 0);
	s.ours = pair[0];
	s.theirs = pair[1];
	*state = &s;
	return 0;
}

static int tear_down(void **state)
{
	const struct stand *s = *state;

	(void)close(s->ours);
	if (s->theirs >= 0)
		(void)close(s->theirs);
	(void)close(s->pipe[0]);
	(void)close(s->pipe[1]);
	return 0;
}

static ssize_t receive(struct stand *s)
{
	return packet_receive(s->ours, s->data, sizeof(s->data), &s->fd);
}

static size_t count_descriptors(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

TEST_WITH(data_arrives_alone_and_in_order, set_up, tear_down)
{
	struct stand *s = *state;

	assert_int_equal(packet_send(s->theirs, "one", 3, -1, 0), 0);
	assert_int_equal(packet_send(s->theirs, "three", 5, -1, MSG_DONTWAIT), 0);
	assert_int_equal(receive(s), 3);
	assert_memory_equal(s->data, "one", 3);
	assert_int_equal(s->fd, -1);
	assert_int_equal(receive(s), 5);
	assert_memory_equal(s->data, "three", 5);
}

TEST_WITH(a_descriptor_comes_along, set_up, tear_down)
{
	struct stand *s = *state;
	char byte = 0;

	assert_int_equal(packet_send(s->theirs, "a", 1, s->pipe[1], 0), 0);
	assert_int_equal(packet_send(s->theirs, "b", 1, -1, 0), 0);
	assert_int_equal(receive(s), 1);
	assert_true(s->fd >= 0);
	assert_int_not_equal(s->fd, s->pipe[1]);
	assert_int_equal(write(s->fd, "x", 1), 1);
	assert_int_equal(read(s->pipe[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	(void)close(s->fd);
	assert_int_equal(receive(s), 1);
	assert_int_equal(s->data[0], 'b');
	assert_int_equal(s->fd, -1);
}

TEST_WITH(what_arrives_is_closed_on_exec, set_up, tear_down)
{
	struct stand *s = *state;

	assert_int_equal(fcntl(s->pipe[1], F_GETFD), 0);
	assert_int_equal(packet_send(s->theirs, "a", 1, s->pipe[1], 0), 0);
	assert_int_equal(receive(s), 1);
	assert_int_equal(fcntl(s->fd, F_GETFD), FD_CLOEXEC);
	(void)close(s->fd);
}

TEST_WITH(nothing_there_and_the_end_are_told_apart, set_up, tear_down)
{
	struct stand *s = *state;

	errno = 0;
	assert_int_equal(receive(s), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(s->fd, -1);
	(void)close(s->theirs);
	s->theirs = -1;
	s->fd = -2;
	assert_int_equal(receive(s), 0);
	assert_int_equal(s->fd, -1);
}

/* By default SIGPIPE would end this program. */
TEST_WITH(sending_to_nobody_is_an_error, set_up, tear_down)
{
	struct stand *s = *state;

	(void)close(s->theirs);
	s->theirs = -1;
	errno = 0;
	assert_int_equal(packet_send(s->ours, "a", 1, s->pipe[1], 0), -1);
	assert_int_equal(errno, EPIPE);
}

TEST_WITH(a_full_socket_is_not_waited_for, set_up, tear_down)
{
	struct stand *s = *state;
	int n = 0;

	while (n < 100000 && packet_send(s->theirs, "abcd", 4, -1, MSG_DONTWAIT) == 0)
		n++;
	assert_in_range(n, 1, 99999);
	assert_int_equal(errno, EAGAIN);
}

TEST_WITH(of_several_descriptors_one_arrives_and_none_leaks, set_up, tear_down)
{
	struct stand *s = *state;
	struct iovec part = {"a", 1};
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {.align = {.cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS,
			       .cmsg_len = CMSG_LEN(2 * sizeof(int))}};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	size_t before = count_descriptors();

	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), s->pipe, sizeof(s->pipe));
	assert_int_equal(sendmsg(s->theirs, &msg, 0), 1);
	assert_int_equal(receive(s), 1);
	assert_true(s->fd >= 0);
	(void)close(s->fd);
	assert_int_equal(count_descriptors(), before);
}

TEST_WITH(without_room_for_a_descriptor_the_data_arrives, set_up, tear_down)
{
	struct stand *s = *state;
	struct rlimit before, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(packet_send(s->theirs, "a", 1, s->pipe[1], 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(receive(s), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(s->data[0], 'a');
	assert_int_equal(s->fd, -1);
}
