// SPDX-License-Identifier: Apache-2.0
/* Client against server: calls of all kinds and all ways in which they end. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/own_fd.h"

#include "tests/unit/grpc/stand.h"

/* ---- calls ----------------------------------------------------------------------------------- */

TEST_WITH(answers_a_unary_call, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};

	stand_call(s, "/t/Echo", "hello", false, &o);
	assert_int_equal(o.status.code, GRPC_OK);
	assert_int_equal(o.messages, 1);
	assert_string_equal(strbuf_str(&o.text), "hello");
	assert_true(
		metric_get(metric_counter(s->metrics, "grpc_server_calls_total", "", "method,code"),
			   "/t/Echo", "OK") == 1);
}

TEST_WITH(answers_with_an_empty_message, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};

	stand_call(s, "/t/Echo", "", false, &o);
	assert_int_equal(o.status.code, GRPC_OK);
	assert_int_equal(o.messages, 1);
}

TEST_WITH(passes_a_status_with_its_text, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};

	stand_call(s, "/t/Fail", "9 l\xc3\xb6st nicht: 100%\nund mehr", false, &o);
	assert_int_equal(o.status.code, GRPC_FAILED_PRECONDITION);
	assert_string_equal(o.status.text, "l\xc3\xb6st nicht: 100%\nund mehr");
	assert_int_equal(o.messages, 0);
}

TEST_WITH(says_unimplemented_for_methods_that_are_not_there, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};

	stand_call(s, "/t/Nothing", "", false, &o);
	assert_int_equal(o.status.code, GRPC_UNIMPLEMENTED);
	assert_string_equal(o.status.text, "unknown method \"/t/Nothing\"");
}

TEST_WITH(runs_a_thousand_calls_at_once, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	struct outcome *o = mem_calloc(1000, sizeof(*o));
	int done = 0;

	for (int i = 0; i < 1000; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%d", i);
		(void)stand_begin(s, "/t/Echo", text, false, 5000, &o[i]);
	}
	for (int i = 0; i < 1000; i++) {
		char text[16];

		stand_until(s, o[i].done);
		snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(o[i].status.code, GRPC_OK);
		assert_string_equal(strbuf_str(&o[i].text), text);
		outcome_done(&o[i]);
		done++;
	}
	assert_int_equal(done, 1000);
	assert_int_equal(s->handled, 1000);
	mem_free(o);
}

TEST_WITH(carries_messages_far_beyond_the_windows, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome down = {0}, up = {0};
	auto_free char *text = mem_zalloc(3000001);

	stand_call(s, "/t/Big", "4000000", false, &down);
	assert_int_equal(down.status.code, GRPC_OK);
	assert_int_equal(down.text.len, 4000000);
	memset(text, 'y', 3000000);
	stand_call(s, "/t/Echo", text, false, &up);
	assert_int_equal(up.status.code, GRPC_OK);
	assert_string_equal(strbuf_str(&up.text), text);
}

TEST_WITH(answers_while_a_stream_is_open, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome stream = {0}, o = {0};
	PluginRegistration__RegistrationStatus message = text_message("first ");

	(void)stand_begin(s, "/t/Watch", "", true, 0, &stream);
	stand_until(s, s->held);
	assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	stand_until(s, stream.messages == 1);
	stand_call(s, "/t/Echo", "between", false, &o);
	assert_int_equal(o.status.code, GRPC_OK);
	message.error = (char *)"second";
	assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	stand_until(s, stream.messages == 2);
	assert_string_equal(strbuf_str(&stream.text), "first second");
	grpc_call_finish(s->held);
	stand_until(s, stream.done);
	assert_int_equal(stream.status.code, GRPC_OK);
	assert_int_equal(s->ended, 0);
}

TEST_WITH(a_stream_may_fail_after_messages, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};
	PluginRegistration__RegistrationStatus message = text_message("one");

	(void)stand_begin(s, "/t/Watch", "", true, 0, &o);
	stand_until(s, s->held);
	assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	grpc_call_fail(s->held, GRPC_DATA_LOSS, "the device is gone");
	stand_until(s, o.done);
	assert_int_equal(o.messages, 1);
	assert_int_equal(o.status.code, GRPC_DATA_LOSS);
	assert_string_equal(o.status.text, "the device is gone");
}

/* ---- deadlines and cancellation -------------------------------------------------------------- */

TEST_WITH(a_deadline_ends_a_call_on_both_sides, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};
	int64_t start = clock_ms();

	(void)stand_begin(s, "/t/Hold", "", false, 60, &o);
	stand_until(s, o.done);
	assert_int_equal(o.status.code, GRPC_DEADLINE_EXCEEDED);
	assert_int_equal(clock_ms() - start, 60);
	assert_int_equal(s->handled, 1);
	stand_until(s, s->ended == 1);
	assert_true(s->ended_why == GRPC_DEADLINE_EXCEEDED || s->ended_why == GRPC_CANCELLED);
}

TEST_WITH(the_client_can_be_freed_from_a_message, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {.free_client_on_message = s}, other = {0};

	(void)stand_begin(s, "/t/Hold", "", false, 1000, &other);
	stand_until(s, s->held);
	(void)stand_begin(s, "/t/Echo", "x", false, 0, &o);
	stand_until(s, o.messages == 1);
	stand_until(s, s->ended == 1);
	stand_turn(s, 20);
	assert_int_equal(o.messages, 1);
	assert_false(o.done || other.done);
	assert_int_equal(s->client_closed, 0);
}

/* ---- flow control ---------------------------------------------------------------------------- */

TEST_WITH(of_states_only_the_latest_waits, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};
	char text[16];
	PluginRegistration__RegistrationStatus message = text_message(text);

	(void)stand_begin(s, "/t/Watch", "", true, 0, &o);
	stand_until(s, s->held);
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "%d.", i);
		assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	}
	assert_true(grpc_call_queued_bytes(s->held) < 64);
	grpc_call_finish(s->held);
	stand_until(s, o.done);
	assert_string_equal(strbuf_str(&o.text), "999.");
}

/*
 * A client that reads nothing at all: the message that has begun to leave is completed, older ones
 * are forgotten.
 */
TEST_WITH(a_state_that_has_begun_to_leave_is_completed, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};
	auto_free char *text = mem_zalloc(300001);
	PluginRegistration__RegistrationStatus message = text_message(text);

	(void)stand_begin(s, "/t/Watch", "", true, 0, &o);
	stand_until(s, s->held);
	memset(text, '1', 300000);
	assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	stand_until(s, grpc_call_queued_bytes(s->held) < 300000);
	assert_true(grpc_call_queued_bytes(s->held) > 0);
	memset(text, '2', 300000);
	assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	memset(text, '3', 300000);
	assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
	grpc_call_finish(s->held);
	stand_until(s, o.done);
	assert_int_equal(o.messages, 2);
	assert_int_equal(o.text.len, 600000);
	assert_int_equal(o.text.data[0], '1');
	assert_int_equal(o.text.data[300000], '3');
}

/*
 * A client with windows without end that reads nothing: what the socket takes has left, the rest
 * waits with us.
 */
TEST_WITH(a_client_that_never_reads_costs_two_messages, stand_setup, stand_teardown)
{
	static const char request[] =
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
		"\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff"    /* SETTINGS: streams */
		"\0\0\4\x8\0\0\0\0\0\x7f\xff\0\0"           /* WINDOW_UPDATE: connection */
		"\0\0\x1f\1\4\0\0\0\1\x83\x86\4\x8/t/Watch" /* HEADERS */
		"\x0f\x10\x10"
		"application/grpc"
		"\0\0\5\0\1\0\0\0\1\0\0\0\0"; /* DATA, the last 0 is C's */
	struct stand *s = *state;
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	auto_free char *text = mem_zalloc(1024 * 1024 + 1);
	PluginRegistration__RegistrationStatus message = text_message(text);

	memcpy(name.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(write(fd, request, sizeof(request)), sizeof(request));
	stand_until(s, s->held);
	memset(text, 'l', 1024 * 1024);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(grpc_call_send_latest(s->held, &message.base, NULL), 0);
		stand_turn(s, 1);
		assert_true(grpc_call_queued_bytes(s->held) <= 2 * (1024 * 1024 + 16));
	}
	assert_true(grpc_call_queued_bytes(s->held) > 1024 * 1024);
	close(take_fd(&fd));
	stand_until(s, s->ended == 1);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST_WITH(limits_of_messages_hold_in_all_directions, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome small = {0}, request = {0}, response = {0}, ours = {0};
	auto_free char *text = mem_zalloc(2001);
	PluginRegistration__RegistrationStatus message = text_message(text);
	const struct grpc_request too_large = {
		.path = "/t/Echo", .message = &message.base, .response = TEXT_TYPE};
	struct err err = {0};

	stand_serve(s, &(struct grpc_server_config){.message_max = 1000});
	stand_connect(s, &(struct grpc_client_config){.message_max = 1500});
	stand_call(s, "/t/Big", "900", false, &small);
	assert_int_equal(small.status.code, GRPC_OK);

	memset(text, 'x', 1200);
	stand_call(s, "/t/Echo", text, false, &request);
	assert_int_equal(request.status.code, GRPC_RESOURCE_EXHAUSTED);
	assert_string_equal(request.status.text, "a message of 1203 bytes; at most 1000 are taken");

	stand_call(s, "/t/Big", "1200", false, &response);
	assert_int_equal(response.status.code, GRPC_RESOURCE_EXHAUSTED);
	assert_string_equal(response.status.text, "a message of 1203 bytes; at most 1000 are sent");

	memset(text, 'x', 2000);
	assert_null(grpc_client_call(s->client, &too_large, &err));
	assert_int_equal(err.class, ERR_INVALID);
	assert_string_equal(err.reason, "MessageTooLarge");

	grpc_client_free(s->client);
	stand_connect(s, &(struct grpc_client_config){.message_max = 100});
	stand_call(s, "/t/Big", "200", false, &ours);
	assert_int_equal(ours.status.code, GRPC_RESOURCE_EXHAUSTED);
}

TEST_WITH(more_connections_than_the_limit_wait, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome a = {0}, b = {0};
	struct grpc_client *first;

	stand_serve(s, &(struct grpc_server_config){.connections_max = 1});
	stand_connect(s, NULL);
	stand_call(s, "/t/Echo", "first", false, &a);
	first = s->client;
	stand_connect(s, NULL);
	(void)stand_begin(s, "/t/Echo", "second", false, 0, &b);
	stand_turn(s, 50);
	assert_false(b.done);
	grpc_client_free(first);
	stand_until(s, b.done);
	assert_int_equal(b.status.code, GRPC_OK);
}

/* ---- the end of connections ------------------------------------------------------------------ */

TEST_WITH(a_closing_server_ends_streams_and_lets_calls_finish, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome stream = {0}, call = {0};
	PluginRegistration__RegistrationStatus first = text_message("first");
	struct grpc_call *held;

	(void)stand_begin(s, "/t/Hold", "", false, 0, &call);
	stand_until(s, s->held);
	held = s->held;
	(void)stand_begin(s, "/t/Watch", "", true, 0, &stream);
	stand_until(s, s->held != held);
	assert_int_equal(grpc_call_send_latest(s->held, &first.base, NULL), 0);
	stand_close_server(s, 5000);
	assert_int_equal(access(s->path, F_OK), -1);
	stand_until(s, stream.done);
	assert_int_equal(stream.status.code, GRPC_UNAVAILABLE);
	assert_string_equal(stream.status.text, "the server is closing");
	assert_int_equal(s->ended, 1);
	assert_int_equal(s->ended_why, GRPC_UNAVAILABLE);
	assert_false(s->server_closed || call.done);
	reply_text(held, "late");
	stand_until(s, call.done && s->server_closed);
	assert_int_equal(call.status.code, GRPC_OK);
	assert_string_equal(strbuf_str(&call.text), "late");
	stand_until(s, s->client_closed == 1);
}

TEST_WITH(calls_after_goaway_are_refused, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome call = {0};
	PluginRegistration__RegistrationStatus message = text_message("");
	const struct grpc_request request = {
		.path = "/t/Echo", .message = &message.base, .response = TEXT_TYPE};
	struct err err = {0};
	struct grpc_call *held;

	(void)stand_begin(s, "/t/Hold", "", false, 0, &call);
	stand_until(s, s->held);
	held = s->held;
	stand_close_server(s, 5000);
	stand_turn(s, 30);
	assert_null(grpc_client_call(s->client, &request, &err));
	assert_int_equal(err.class, ERR_TRANSIENT);
	assert_string_equal(err.reason, "Unavailable");
	reply_text(held, "");
	stand_until(s, call.done && s->server_closed);
}

TEST_WITH(a_closing_server_cuts_off_what_takes_too_long, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};

	(void)stand_begin(s, "/t/Hold", "", false, 0, &o);
	stand_until(s, s->held);
	stand_close_server(s, 40);
	stand_until(s, s->server_closed);
	assert_int_equal(s->ended, 1);
	assert_int_equal(s->ended_why, GRPC_UNAVAILABLE);
	stand_until(s, o.done);
	assert_int_equal(o.status.code, GRPC_UNAVAILABLE);
}

TEST_WITH(a_server_can_be_closed_by_its_own_handler, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};

	stand_call(s, "/t/Close", "", false, &o);
	assert_string_equal(strbuf_str(&o.text), "closing");
	stand_until(s, s->server_closed);
}

TEST_WITH(a_client_sees_the_death_of_its_server, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	int fd;

	memcpy(name.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	stand_connect(s, NULL);
	(void)stand_begin(s, "/t/Echo", "", false, 0, &o);
	fd = accept(listener, NULL, NULL);
	stand_turn(s, 20);
	assert_false(o.done);
	close(fd);
	stand_until(s, o.done && s->client_closed);
	assert_int_equal(o.status.code, GRPC_UNAVAILABLE);
	assert_non_null(strstr(o.status.text, s->path));
	assert_string_equal(s->client_why.reason, "ConnectionClosed");
}

TEST_WITH(a_server_that_never_speaks_is_given_up, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	auto_outcome struct outcome o = {0};
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(name.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(listener, 1), 0);
	stand_connect(s, &(struct grpc_client_config){.connect_ms = 50});
	(void)stand_begin(s, "/t/Echo", "", false, 0, &o);
	stand_until(s, o.done);
	assert_int_equal(o.status.code, GRPC_UNAVAILABLE);
	assert_string_equal(s->client_why.reason, "NoHttp2");
}

TEST_WITH(the_client_says_what_is_wrong_with_a_socket, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	struct grpc_client_config config = {.path = s->path};
	char longer[GRPC_CLIENT_PATH_MAX + 2];
	struct err err = {0};
	auto_close int listener = -1;
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	assert_null(grpc_client_new(s->loop, &config, &err));
	assert_int_equal(err.class, ERR_HOST);
	assert_int_equal(err.sys, ENOENT);
	assert_string_equal(err.reason, "SocketUnavailable");
	assert_non_null(strstr(err.text, s->path));

	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(name.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_null(grpc_client_new(s->loop, &config, &err));
	assert_int_equal(err.sys, ECONNREFUSED);

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	config.path = longer;
	assert_null(grpc_client_new(s->loop, &config, &err));
	assert_int_equal(err.class, ERR_INVALID);
	assert_string_equal(err.reason, "BadSocketPath");
}

/* ---- the socket ------------------------------------------------------------------------------ */

TEST_WITH(the_socket_has_its_permissions_and_no_trace_is_left, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	struct stat st;

	stand_serve(s, NULL);
	assert_int_equal(lstat(s->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0600);
	assert_true(grpc_server_owns_path(s->server));
	stand_close_server(s, 0);
	assert_int_equal(lstat(s->path, &st), -1);
	stand_until(s, s->server_closed);
	stand_serve(s, &(struct grpc_server_config){.mode = 0660});
	assert_int_equal(lstat(s->path, &st), 0);
	assert_int_equal(st.st_mode, S_IFSOCK | 0660);
}

TEST_WITH(a_new_server_takes_over_and_the_old_one_leaves_it_alone, stand_setup, stand_teardown)
{
	struct stand *s = *state;
	struct grpc_server *old = s->server;
	struct grpc_client *old_client = s->client;
	auto_outcome struct outcome a = {0}, b = {0};

	stand_call(s, "/t/Echo", "old", false, &a);
	stand_serve(s, NULL);
	assert_false(grpc_server_owns_path(old));
	assert_true(grpc_server_owns_path(s->server));
	grpc_server_close(old, 0, on_server_closed, s);
	stand_until(s, s->server_closed);
	assert_true(grpc_server_owns_path(s->server));
	stand_connect(s, NULL);
	stand_call(s, "/t/Echo", "new", false, &b);
	assert_string_equal(strbuf_str(&b.text), "new");
	grpc_client_free(old_client);
}

TEST_WITH(refuses_paths_that_cannot_be_a_socket, stand_setup_empty, stand_teardown)
{
	struct stand *s = *state;
	struct grpc_server_config config = {.path = s->path};
	char longer[GRPC_SERVER_PATH_MAX + 2];
	struct err err = {0};

	close(open(s->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_null(grpc_server_new(s->loop, &config, &err));
	assert_string_equal(err.reason, "SocketPathTaken");
	assert_non_null(strstr(err.text, s->path));
	assert_int_equal(access(s->path, F_OK), 0);

	memset(longer, 'x', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	config.path = longer;
	assert_null(grpc_server_new(s->loop, &config, &err));
	assert_string_equal(err.reason, "BadSocketPath");
	config.path = "";
	assert_null(grpc_server_new(s->loop, &config, &err));
	assert_string_equal(err.reason, "BadSocketPath");
	config.path = "/nowhere/at/all.sock";
	assert_null(grpc_server_new(s->loop, &config, &err));
	assert_string_equal(err.reason, "SocketNotMade");
	assert_int_equal(err.sys, ENOENT);
}
