// SPDX-License-Identifier: Apache-2.0
/* A stream whose other side the test plays; its frames are tested with channels and exchanges. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"
#include "lib/loop/stream.h"
#include "tests/support/until.h"

struct stand {
	struct loop *loop;
	struct stream *stream;
	int theirs;
	struct strbuf taken; /* "line;" of each */
	int n_lost, n_descriptors;
	bool answers, loses, frees, frees_when_lost;
	struct err why;
};

static bool take(void *arg, struct strbuf *in)
{
	struct stand *s = arg;
	const char *end = memchr(in->data, '\n', in->len);

	if (!end)
		return false;
	strbuf_addf(&s->taken, "%.*s;", (int)(end - in->data), in->data);
	strbuf_consume(in, (size_t)(end - in->data) + 1);
	if (s->answers)
		stream_send(s->stream, "answer", 6);
	if (s->loses)
		stream_lose(s->stream, &(struct err){.reason = "Lost"});
	if (s->frees)
		stream_free(take_ptr(s->stream));
	return true;
}

static void on_lost(void *arg, const struct err *err)
{
	struct stand *s = arg;

	s->n_lost++;
	s->why = *err;
	if (s->frees_when_lost)
		stream_free(take_ptr(s->stream));
}

static void on_descriptor(void *arg, int fd)
{
	struct stand *s = arg;

	s->n_descriptors += fcntl(fd, F_GETFD) == FD_CLOEXEC;
	(void)close(fd);
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	s->loop = loop_new();
	s->theirs = pair[1];
	s->stream = stream_new(&(struct stream_config){
		.loop = s->loop,
		.fd = pair[0],
		.take = take,
		.lost = on_lost,
		.descriptor = on_descriptor,
		.arg = s,
	});
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	stream_free(s->stream);
	own_close_p(&s->theirs);
	loop_free(s->loop);
	strbuf_done(&s->taken);
	mem_free(s);
	return 0;
}

static void say(const struct stand *s, const char *text)
{
	assert_int_equal(send(s->theirs, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

TEST_WITH(what_is_whole_is_taken_one_after_the_other, set_up, tear_down)
{
	struct stand *s = *state;

	say(s, "one\ntwo\nth");
	until(s->loop, s->taken.len == 8);
	say(s, "ree\n");
	until(s->loop, s->taken.len > 8);
	assert_string_equal(s->taken.data, "one;two;three;");
}

/* Also when it had something to read, of whose loss the kernel makes an error, or we still talk. */
TEST_WITH(the_last_words_are_taken_before_the_end, set_up, tear_down)
{
	for (int i = 0; i < 4; i++) {
		struct stand *s = *state;

		s->answers = i == 2;
		if (i > 0)
			stream_send(s->stream, "unread", 6);
		say(s, "one\ntwo\nth");
		(void)close(s->theirs);
		s->theirs = -1;
		if (i == 3)
			stream_send(s->stream, "more", 4);
		assert_int_equal(s->n_lost, 0);
		until(s->loop, s->n_lost == 1);
		pass(s->loop, 5);
		assert_int_equal(s->n_lost, 1);
		assert_string_equal(s->taken.data, "one;two;");
		assert_string_equal(s->why.reason, "ChannelClosed");
		assert_int_equal(s->why.class, ERR_TRANSIENT);
		(void)tear_down(state);
		(void)set_up(state);
	}
}

TEST_WITH(lost_by_its_user_it_takes_and_sends_no_more, set_up, tear_down)
{
	struct stand *s = *state;

	s->loses = true;
	say(s, "one\ntwo\n");
	until(s->loop, s->n_lost == 1);
	assert_string_equal(s->why.reason, "Lost");
	stream_send(s->stream, "more", 4);
	say(s, "three\n");
	pass(s->loop, 5);
	assert_string_equal(s->taken.data, "one;");
	assert_int_equal(recv(s->theirs, &(char){0}, 1, MSG_DONTWAIT), -1);
}

TEST_WITH(a_descriptor_comes_before_its_bytes, set_up, tear_down)
{
	struct stand *s = *state;

	assert_int_equal(packet_send(s->theirs, "a\n", 2, STDERR_FILENO, 0), 0);
	until(s->loop, s->taken.len > 0);
	assert_int_equal(s->n_descriptors, 1);
}

static const struct err finished = {.class = ERR_TRANSIENT, .reason = "Finished"};

TEST_WITH(what_was_sent_goes_before_the_stream_is_finished, set_up, tear_down)
{
	struct stand *s = *state;
	auto_free char *bytes = mem_zalloc(4 << 20);
	size_t got = 0;

	stream_send(s->stream, bytes, 4 << 20);
	assert_true(stream_waiting(s->stream) > 0);
	stream_finish(s->stream, &finished);
	stream_send(s->stream, "more", 4);
	while (got < 4 << 20) {
		ssize_t n = recv(s->theirs, bytes, 1 << 20, MSG_DONTWAIT);

		assert_true(s->n_lost == 0 || stream_waiting(s->stream) == 0);
		got += n > 0 ? (size_t)n : 0;
		loop_turn(s->loop, false);
	}
	until(s->loop, s->n_lost == 1);
	assert_string_equal(s->why.reason, "Finished");
	assert_int_equal(recv(s->theirs, bytes, 1, MSG_DONTWAIT), -1);
}

TEST_WITH(one_that_has_nothing_to_send_is_finished_from_the_loop, set_up, tear_down)
{
	struct stand *s = *state;

	stream_finish(s->stream, &finished);
	assert_int_equal(s->n_lost, 0);
	until(s->loop, s->n_lost == 1);
}

TEST_WITH(the_rest_is_read_without_the_loop, set_up, tear_down)
{
	struct stand *s = *state;
	const struct strbuf *rest;

	say(s, "last words\n");
	(void)shutdown(s->theirs, SHUT_WR);
	rest = stream_rest(s->stream);
	assert_int_equal(rest->len, 11);
	assert_int_equal(s->taken.len + (size_t)s->n_lost, 0);
}

TEST_WITH(it_may_be_freed_while_something_is_taken, set_up, tear_down)
{
	struct stand *s = *state;

	s->frees = true;
	say(s, "one\ntwo\n");
	until(s->loop, !s->stream);
	pass(s->loop, 5);
	assert_string_equal(s->taken.data, "one;");
	assert_int_equal(s->n_lost, 0);
}

TEST_WITH(it_may_be_freed_when_it_is_lost_and_before, set_up, tear_down)
{
	struct stand *s = *state;

	s->frees_when_lost = true;
	stream_lose(s->stream, &(struct err){.reason = "Lost"});
	until(s->loop, !s->stream);
	(void)tear_down(state);
	(void)set_up(state);
	s = *state;
	stream_lose(s->stream, &(struct err){.reason = "Lost"});
	stream_free(take_ptr(s->stream));
	pass(s->loop, 5);
	assert_int_equal(s->n_lost, 0);
	assert_int_equal(recv(s->theirs, &(char){0}, 1, MSG_DONTWAIT), 0);
	stream_free(NULL);
}
