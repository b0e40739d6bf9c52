// SPDX-License-Identifier: Apache-2.0
/*
 * flood: strangers at a port.
 *
 *	flood PORT RATE SECONDS [ADDRESSES]
 *
 * Opens RATE TCP connections a second to 127.0.0.1:PORT, for so many seconds, and says nothing on
 * them. They come from 127.1.0.1 and on, ADDRESSES (default 1) of them in turn. Keeps as many open
 * as it has descriptors for, then closes the oldest. At the end prints how many connections were
 * made and how many of them the other side had closed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/str.h"

enum { KEPT_MAX = 900, TICK_MS = 10 };

static int kept[KEPT_MAX];
static long made, ended;

static int64_t now_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void forget(int *fd)
{
	char byte;

	if (*fd < 0)
		return;
	/* Nothing to read, and no error: it was still open. */
	ended += recv(*fd, &byte, 1, MSG_DONTWAIT) == 0 || errno != EAGAIN;
	(void)close(*fd);
	*fd = -1;
}

static void stranger(uint16_t port, long addresses)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in from = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	from.sin_addr.s_addr = htonl(0x7f010001 + (uint32_t)(made % addresses));
	if (fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof(from)) < 0 ||
	    (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS)) {
		perror("flood");
		exit(1);
	}
	forget(&kept[made % KEPT_MAX]);
	kept[made % KEPT_MAX] = fd;
	made++;
}

int main(int argc, char **argv)
{
	int64_t port = 0, rate = 0, seconds = 0, addresses = 1, start_us = now_us();

	if (argc < 4 || argc > 5 || !str_to_int(argv[1], 1, 65535, &port) ||
	    !str_to_int(argv[2], 1, 1000000, &rate) || !str_to_int(argv[3], 1, 3600, &seconds) ||
	    (argc == 5 && !str_to_int(argv[4], 1, 65000, &addresses))) {
		fprintf(stderr, "usage: flood PORT RATE SECONDS [ADDRESSES]\n");
		return 2;
	}
	memset(kept, -1, sizeof(kept));
	for (int64_t due = 0; due < rate * seconds; usleep(TICK_MS * 1000)) {
		due = (now_us() - start_us) * rate / 1000000;
		if (due > rate * seconds)
			due = rate * seconds;
		while (made < due)
			stranger((uint16_t)port, addresses);
	}
	for (size_t i = 0; i < KEPT_MAX; i++)
		forget(&kept[i]);
	printf("%ld made, %ld closed by the other side\n", made, ended);
	return 0;
}
