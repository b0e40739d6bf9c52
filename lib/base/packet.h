// SPDX-License-Identifier: Apache-2.0
/*
 * Packets with a descriptor, between processes of ours on a socket that keeps packets apart
 * (SOCK_SEQPACKET).
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * fd: a copy goes along; -1: none. flags as of send(2), MSG_NOSIGNAL is added. -1 with errno set.
 */
int packet_send(int socket, const void *data, size_t len, int fd, int flags);

/*
 * Does not wait. What recvmsg(2) says: bytes, 0 at the end, -1 with errno set (EAGAIN: nothing has
 * come). *ret_fd: the descriptor that came along, close-on-exec, the caller's; else -1, also when
 * this process can have no more of them. Of several that a stranger sent it is the first.
 */
ssize_t packet_receive(int socket, void *data, size_t len, int *ret_fd);
