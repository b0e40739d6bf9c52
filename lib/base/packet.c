// SPDX-License-Identifier: Apache-2.0
/*
 * One sendmsg(2) or recvmsg(2) per packet, with room for exactly one descriptor: a second one is
 * closed by the kernel, so a peer cannot fill our table. The supervisor's sockets use it, on both
 * ends.
 */
#include "lib/base/packet.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union one_fd {
	char bytes[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

int packet_send(int socket, const void *data, size_t len, int fd, int flags)
{
	struct iovec part = {(void *)data, len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	union one_fd control = {0};
	ssize_t n;

	assert(socket >= 0 && data && len > 0);
	if (fd >= 0) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		control.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS,
						 .cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &msg, flags | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -1 : 0;
}

ssize_t packet_receive(int socket, void *data, size_t len, int *ret_fd)
{
	struct iovec part = {data, len};
	union one_fd control = {0};
	/*
	 * No room for a second descriptor, which the kernel then closes; padding would have some.
	 */
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = CMSG_LEN(sizeof(int))};
	const struct cmsghdr *header;
	ssize_t n;

	assert(socket >= 0 && data && len > 0 && ret_fd);
	*ret_fd = -1;
	do
		n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	header = n >= 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
	    header->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_fd, CMSG_DATA(header), sizeof(int));
	return n;
}
