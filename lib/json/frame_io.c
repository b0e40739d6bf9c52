// SPDX-License-Identifier: Apache-2.0
/*
 * Reads and writes around frame.c, for workers: each serves one connection, and its deadline is
 * kept by the process that started it. Processes with a loop have lib/loop/stream.c.
 */
#include "lib/json/frame_io.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#define CHUNK 16384

int json_frame_send(int fd, const struct strbuf *frames)
{
	const char *data = frames->data;
	size_t len = frames->len;

	assert(fd >= 0 && frames);
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

bool json_frame_take_in(int fd, struct strbuf *in, int flags)
{
	ssize_t n;

	strbuf_reserve(in, CHUNK);
	n = recv(fd, in->data + in->len, CHUNK, flags);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	in->len += (size_t)n;
	return n > 0;
}

json_t *json_frame_receive(int fd, struct strbuf *in)
{
	json_t *message = NULL;

	assert(fd >= 0 && in);
	while (json_frame_read(in, &message, NULL) == 0 && !message)
		if (!json_frame_take_in(fd, in, 0))
			return NULL;
	return message;
}
