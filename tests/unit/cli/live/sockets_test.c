// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets of the live report, over TCP connections of this process: what a client gets that
 * keeps up, one that does not, one that speaks, and one too many.
 */
#include "tests/support/test.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/live/sockets.h"
#include "lib/base/str.h"

#define HEAD                                                                                       \
	"GET /live HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"                    \
	"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"               \
	"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"                                          \
	"Sec-WebSocket-Protocol: " SOCKETS_PROTOCOL "\r\n\r\n"

struct fixture {
	struct loop *loop;
	struct sockets *sockets;
	int clients[SOCKETS_MAX + 1];
	size_t n;
	struct strbuf got; /* of the client that was read last */
};

static int set_up(void **state)
{
	static struct fixture f;

	f = (struct fixture){0};
	f.loop = loop_new();
	f.sockets = sockets_new(f.loop);
	*state = &f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	sockets_free(f->sockets);
	loop_free(f->loop);
	for (size_t i = 0; i < f->n; i++)
		(void)close(f->clients[i]);
	strbuf_done(&f->got);
	return 0;
}

/* A connection whose request the door has read. Returns the client's end. */
static int join(struct fixture *f)
{
	struct sockaddr_in here = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(here);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	int fd;

	assert_int_equal(bind(listener, (struct sockaddr *)&here, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &len), 0);
	assert_int_equal(connect(client, (struct sockaddr *)&here, len), 0);
	fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	assert_true(fd >= 0);
	(void)close(listener);
	f->clients[f->n++] = client;
	sockets_adopt(f->sockets, fd, HEAD, strlen(HEAD));
	return client;
}

/* What has come by the time that the text is in it; NULL: until the connection ends. */
static const char *read_until(struct fixture *f, int client, const char *text)
{
	char buf[4096];

	strbuf_reset(&f->got);
	while (!text || !memmem(strbuf_str(&f->got), f->got.len, text, strlen(text))) {
		ssize_t n;

		loop_turn(f->loop, false);
		n = recv(client, buf, sizeof(buf), MSG_DONTWAIT);
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			strbuf_addc(&f->got, buf[i] >= ' ' || buf[i] == '\n' ? buf[i] : '.');
	}
	return strbuf_str(&f->got);
}

TEST_WITH(a_client_gets_the_document_and_then_what_changes, set_up, tear_down)
{
	struct fixture *f = *state;
	const char *got;
	int client;

	sockets_publish(f->sockets, "{\"a\":1}", NULL);
	client = join(f);
	got = read_until(f, client, "{\"whole\":{\"a\":1}}");
	assert_true(str_starts(got, "HTTP/1.1 101 "));
	sockets_publish(f->sockets, "{\"a\":2,\"b\":3}", "{\"a\":2}");
	got = read_until(f, client, "{\"change\":{\"a\":2}}");
	assert_null(strstr(got, "whole"));
}

TEST_WITH(one_that_came_before_the_document_gets_it_when_it_is_there, set_up, tear_down)
{
	struct fixture *f = *state;
	int client = join(f);

	(void)read_until(f, client, "101 ");
	sockets_publish(f->sockets, "{\"a\":1}", NULL);
	(void)read_until(f, client, "{\"whole\":{\"a\":1}}");
}

TEST_WITH(one_that_missed_a_change_gets_the_whole_document, set_up, tear_down)
{
	struct fixture *f = *state;
	const char *got;
	int client;

	sockets_publish(f->sockets, "{\"a\":1}", NULL);
	client = join(f);
	(void)read_until(f, client, "}}");
	sockets_publish(f->sockets, "{\"a\":2}", "{\"a\":2}");
	sockets_publish(f->sockets, "{\"a\":2,\"b\":3}", "{\"b\":3}");
	got = read_until(f, client, "{\"whole\":{\"a\":2,\"b\":3}}");
	assert_null(strstr(got, "change"));
}

TEST_WITH(one_that_speaks_is_cut_off, set_up, tear_down)
{
	/* Masked with zeros, RFC 6455 section 5.2: text, "x". */
	static const unsigned char frame[] = {0x81, 0x81, 0, 0, 0, 0, 'x'};
	struct fixture *f = *state;
	int client;

	sockets_publish(f->sockets, "{}", NULL);
	client = join(f);
	(void)read_until(f, client, "{\"whole\":{}}");
	assert_int_equal(send(client, frame, sizeof(frame), 0), sizeof(frame));
	assert_null(strstr(read_until(f, client, NULL), "whole"));
}

TEST_WITH(there_is_a_most_and_who_goes_makes_room, set_up, tear_down)
{
	struct fixture *f = *state;
	int late;

	sockets_publish(f->sockets, "{}", NULL);
	for (size_t i = 0; i < SOCKETS_MAX; i++)
		(void)read_until(f, join(f), "{\"whole\":{}}");
	late = join(f);
	assert_string_equal(read_until(f, late, NULL), "");
	(void)close(late);
	f->n--;
	(void)shutdown(f->clients[0], SHUT_WR);
	(void)read_until(f, f->clients[0], NULL);
	(void)read_until(f, join(f), "{\"whole\":{}}");
}
