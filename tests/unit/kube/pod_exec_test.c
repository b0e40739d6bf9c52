// SPDX-License-Identifier: Apache-2.0
/*
 * Commands in pods, on a server that answers as each test says. How a real one refuses is in
 * tests/integration/cli_pathtest_test.sh.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/base64.h"
#include "lib/base/mem.h"
#include "lib/base/sha1.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "lib/kube/pod_exec.h"
#include "lib/kube/status.h"
#include "lib/loop/loop.h"

/* A literal with NUL bytes in it, and its length. */
#define BYTES(s) (s), sizeof(s) - 1

/* Answers each connection's request once, and keeps what it asked for. */
struct server {
	struct loop *loop;
	struct poller *listener, *peer;
	int listening, fd; /* fd: -1: nobody is connected */
	struct strbuf request;
	const char *status_line; /* NULL: no answer */
	const char *frames;      /* behind an upgrade */
	size_t frames_len;
	bool cut; /* close behind the answer */
	int connections;
};

struct stand {
	struct server server;
	struct kube_config config;
	struct kube_client *client;
	int ended, exit_code;
	char out[64], errors[64];
	struct err err;
};

static void disconnect(struct server *s)
{
	poller_free(s->peer);
	s->peer = NULL;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

static void add_upgrade(const char *request, struct strbuf *out)
{
	const char *key = strstr(request, "Sec-WebSocket-Key: ") + strlen("Sec-WebSocket-Key: ");
	auto_free char *joined = str_printf("%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	uint8_t digest[SHA1_SIZE];

	sha1(joined, strlen(joined), digest);
	strbuf_adds(out, "Upgrade: websocket\r\nConnection: Upgrade\r\n"
			 "Sec-WebSocket-Protocol: v4.channel.k8s.io\r\nSec-WebSocket-Accept: ");
	base64_encode(digest, sizeof(digest), out);
	strbuf_adds(out, "\r\n\r\n");
}

static void answer(struct server *s)
{
	auto_strbuf struct strbuf out = {0};

	if (!s->status_line)
		return;
	strbuf_adds(&out, s->status_line);
	if (s->frames) {
		add_upgrade(strbuf_str(&s->request), &out);
		strbuf_add(&out, s->frames, s->frames_len);
	}
	assert_int_equal(write(s->fd, out.data, out.len), out.len);
	if (s->cut)
		disconnect(s);
}

static void on_bytes(void *arg, int events)
{
	struct server *s = arg;
	char bytes[4096];
	ssize_t n = read(s->fd, bytes, sizeof(bytes));
	bool had_all = strstr(strbuf_str(&s->request), "\r\n\r\n");

	if (n <= 0) {
		disconnect(s);
		return;
	}
	if (had_all)
		return; /* answers to pings, and the close */
	strbuf_add(&s->request, bytes, (size_t)n);
	if (strstr(strbuf_str(&s->request), "\r\n\r\n"))
		answer(s);
}

static void on_connect(void *arg, int events)
{
	struct server *s = arg;

	disconnect(s);
	strbuf_reset(&s->request);
	s->connections++;
	s->fd = accept4(s->listening, NULL, NULL, SOCK_CLOEXEC);
	s->peer = poller_new(s->loop, s->fd, on_bytes, s);
	poller_want(s->peer, POLL_READ);
}

static void stand_open(struct stand *s)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	struct server *server = &s->server;

	*s = (struct stand){.server = {.loop = loop_new(), .fd = -1}};
	server->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->listening, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(server->listening, 4), 0);
	assert_int_equal(getsockname(server->listening, (struct sockaddr *)&address, &len), 0);
	server->listener = poller_new(server->loop, server->listening, on_connect, server);
	poller_want(server->listener, POLL_READ);
	s->config = (struct kube_config){
		.origin = str_dup("a test"),
		.host = str_dup("127.0.0.1"),
		.port = ntohs(address.sin_port),
		.path = str_dup("/prefix"),
		.server = str_printf("http://127.0.0.1:%u/prefix", ntohs(address.sin_port)),
		.auth = {.kind = KUBE_AUTH_TOKEN, .token = str_dup("secret")},
	};
	s->client = kube_client_new(server->loop, &s->config, NULL);
}

static void stand_close(struct stand *s)
{
	kube_client_free(s->client);
	disconnect(&s->server);
	poller_free(s->server.listener);
	for (int i = 0; i < 3; i++)
		loop_turn(s->server.loop, false);
	close(s->server.listening);
	loop_free(s->server.loop);
	strbuf_done(&s->server.request);
	kube_config_done(&s->config);
}

static void on_ended(void *arg, int exit_code, const char *out, const char *errors,
		     const struct err *err)
{
	struct stand *s = arg;

	s->ended++;
	s->exit_code = exit_code;
	snprintf(s->out, sizeof(s->out), "%s", out);
	snprintf(s->errors, sizeof(s->errors), "%s", errors);
	if (err)
		s->err = *err;
}

static struct pod_exec *start(struct stand *s, int64_t timeout_ms)
{
	return pod_exec_start(s->client,
			      &(struct pod_exec_request){
				      .ns = "ml",
				      .pod = "p",
				      .container = "c",
				      .argv = (const char *const[]){"echo", "a b&", NULL},
				      .timeout_ms = timeout_ms,
				      .done = on_ended,
				      .arg = s,
			      });
}

static void run(struct stand *s, int64_t timeout_ms)
{
	(void)start(s, timeout_ms);
	assert_int_equal(s->ended, 0);
	while (!s->ended)
		loop_turn(s->server.loop, true);
	assert_int_equal(s->ended, 1);
}

#define SWITCHING "HTTP/1.1 101 Switching Protocols\r\n"

static void a_command_gives_outputs_and_an_exit_code(void **state)
{
	struct stand s;

	stand_open(&s);
	s.server.status_line = SWITCHING;
	s.server.frames = "\x82\x01\x01\x82\x04\x01out\x82\x04\x02"
			  "err\x89\x01x"
			  "\x82\x15\x03{\"status\":\"Success\"}\x88\x02\x03\xe8";
	s.server.frames_len = strlen("123") + 6 + 6 + 3 + 23 + 4;
	run(&s, 10000);
	assert_int_equal(s.err.class, ERR_NONE);
	assert_int_equal(s.exit_code, 0);
	assert_string_equal(s.out, "out");
	assert_string_equal(s.errors, "err");
	assert_true(str_starts(strbuf_str(&s.server.request),
			       "GET /prefix/api/v1/namespaces/ml/pods/p/exec?stdout=true&"
			       "stderr=true&container=c&command=echo&command=a%20b%26 HTTP/1.1"));
	assert_non_null(strstr(strbuf_str(&s.server.request), "Authorization: Bearer secret\r\n"));
	stand_close(&s);
}

static void a_refusal_is_an_error(void **state)
{
	struct stand s;

	stand_open(&s);
	s.server.status_line =
		"HTTP/1.1 403 Forbidden\r\nContent-Length: 63\r\n\r\n"
		"{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"not for you\"} ";
	run(&s, 10000);
	assert_true(kube_err_is(&s.err, "Forbidden"));
	assert_string_equal(s.err.text, "not for you (HTTP 403)");
	stand_close(&s);
}

/* The same token once more would not help. */
static void a_constant_token_that_is_refused_is_not_tried_again(void **state)
{
	struct stand s;

	stand_open(&s);
	s.server.status_line = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
	run(&s, 10000);
	assert_true(kube_err_is(&s.err, "Unauthorized"));
	assert_int_equal(s.server.connections, 1);
	stand_close(&s);
}

static void a_token_that_was_replaced_is_read_anew(void **state)
{
	char path[] = "/tmp/pod-exec-test-XXXXXX";
	int fd = mkstemp(path);
	struct stand s;

	assert_int_equal(write(fd, "old", 3), 3);
	stand_open(&s);
	s.config.auth.kind = KUBE_AUTH_TOKEN_FILE;
	s.config.auth.token_file = str_dup(path);
	kube_client_free(s.client);
	s.client = kube_client_new(s.server.loop, &s.config, NULL);
	s.server.status_line = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
	run(&s, 10000);
	assert_int_equal(s.server.connections, 2);
	assert_true(kube_err_is(&s.err, "Unauthorized"));
	stand_close(&s);
	close(fd);
	unlink(path);
}

static void a_connection_that_breaks_is_not_tried_again(void **state)
{
	struct stand s;

	stand_open(&s);
	s.server.status_line = SWITCHING;
	s.server.frames = "\x82\x04\x01out";
	s.server.frames_len = 6;
	s.server.cut = true;
	run(&s, 10000);
	assert_true(kube_err_is(&s.err, "ConnectionLost"));
	assert_string_equal(s.out, "out");
	assert_int_equal(s.server.connections, 1);
	stand_close(&s);
}

static void nobody_listens(void **state)
{
	struct stand s;

	stand_open(&s);
	poller_want(s.server.listener, 0);
	shutdown(s.server.listening, SHUT_RDWR);
	run(&s, 10000);
	assert_true(kube_err_is(&s.err, "ServerUnreachable"));
	stand_close(&s);
}

static void silence_has_an_end(void **state)
{
	struct stand s;

	stand_open(&s);
	run(&s, 50);
	assert_true(kube_err_is(&s.err, "DeadlineExceeded"));
	stand_close(&s);
}

static void a_cancelled_one_says_nothing(void **state)
{
	struct pod_exec *exec;
	struct stand s;

	stand_open(&s);
	pod_exec_cancel(start(&s, 10000));
	exec = start(&s, 10000);
	while (!strstr(strbuf_str(&s.server.request), "\r\n\r\n"))
		loop_turn(s.server.loop, true);
	pod_exec_cancel(exec);
	pod_exec_cancel(NULL);
	assert_int_equal(s.ended, 0);
	stand_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_gives_outputs_and_an_exit_code),
		cmocka_unit_test(a_refusal_is_an_error),
		cmocka_unit_test(a_constant_token_that_is_refused_is_not_tried_again),
		cmocka_unit_test(a_token_that_was_replaced_is_read_anew),
		cmocka_unit_test(a_connection_that_breaks_is_not_tried_again),
		cmocka_unit_test(nobody_listens),
		cmocka_unit_test(silence_has_an_end),
		cmocka_unit_test(a_cancelled_one_says_nothing),
	};

	json_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
