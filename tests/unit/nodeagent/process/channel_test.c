// SPDX-License-Identifier: Apache-2.0
/*
 * Both ends of a channel on one loop; or ours against a socket that the test plays itself. How it
 * ends and is freed: tests/unit/loop/stream_test.c.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/json/frame.h"
#include "lib/json/json.h"
#include "nodeagent/process/channel.h"
#include "tests/support/until.h"

struct end {
	struct channel *channel;
	struct strbuf heard; /* "n;" of each message */
	size_t text_len;     /* of the last message */
	int n_heard, n_lost;
	struct err why;
	bool answers;
};

struct stand {
	struct loop *loop;
	int fds[2]; /* -1: a channel's, or closed */
	struct end a, b;
};

static json_t *message(int n, size_t text_len)
{
	auto_free char *text = mem_zalloc(text_len + 1);

	memset(text, 'x', text_len);
	return json_pack("{s:i, s:s}", "n", n, "text", text);
}

static void tell(struct end *end, int n, size_t text_len)
{
	json_auto_t *said = message(n, text_len);

	channel_send(end->channel, said);
}

static void on_heard(void *arg, const json_t *said)
{
	struct end *end = arg;

	end->n_heard++;
	end->text_len = strlen(json_str_at(said, "text"));
	strbuf_addf(&end->heard, "%lld;", json_integer_value(json_at(said, "n")));
	if (end->answers)
		tell(end, 100 + end->n_heard, 0);
}

static void on_lost(void *arg, const struct err *err)
{
	struct end *end = arg;

	end->n_lost++;
	end->why = *err;
}

static void open_end(struct stand *s, struct end *end, int which)
{
	end->channel = channel_new(&(struct channel_config){
		.loop = s->loop,
		.fd = s->fds[which],
		.heard = on_heard,
		.lost = on_lost,
		.arg = end,
	});
	s->fds[which] = -1;
}

static int set_up(void **state)
{
	struct stand *s = mem_new(struct stand);

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->fds), 0);
	s->loop = loop_new();
	open_end(s, &s->a, 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct stand *s = *state;

	channel_free(s->a.channel);
	channel_free(s->b.channel);
	if (s->fds[1] >= 0)
		(void)close(s->fds[1]);
	loop_free(s->loop);
	strbuf_done(&s->a.heard);
	strbuf_done(&s->b.heard);
	mem_free(s);
	return 0;
}

/* Bytes from the side that the test plays. */
static void say_bytes(const struct stand *s, const void *bytes, size_t len)
{
	assert_int_equal(send(s->fds[1], bytes, len, MSG_NOSIGNAL), len);
}

static void say_messages(const struct stand *s, int first, int last, size_t text_len)
{
	auto_strbuf struct strbuf out = {0};

	for (int n = first; n <= last; n++) {
		json_auto_t *said = message(n, text_len);

		assert_int_equal(json_frame_write(said, &out, NULL), 0);
	}
	say_bytes(s, out.data, out.len);
}

TEST_WITH(messages_go_both_ways, set_up, tear_down)
{
	struct stand *s = *state;

	open_end(s, &s->b, 1);
	s->b.answers = true;
	for (int n = 1; n <= 3; n++)
		tell(&s->a, n, 5);
	until(s->loop, s->a.n_heard == 3);
	assert_string_equal(s->b.heard.data, "1;2;3;");
	assert_int_equal(s->b.text_len, 5);
	assert_string_equal(s->a.heard.data, "101;102;103;");
	assert_int_equal(s->a.n_lost + s->b.n_lost, 0);
}

TEST_WITH(large_messages_arrive_whole_and_in_order, set_up, tear_down)
{
	static const size_t large = JSON_FRAME_MAX - 100;
	struct stand *s = *state;

	open_end(s, &s->b, 1);
	tell(&s->a, 1, large);
	tell(&s->b, 2, large);
	tell(&s->a, 3, 1);
	until(s->loop, s->b.n_heard == 2 && s->a.n_heard == 1);
	assert_string_equal(s->b.heard.data, "1;3;");
	assert_int_equal(s->b.text_len, 1);
	assert_int_equal(s->a.text_len, large);
}

/* What is ready all the time makes the loop turn all the time. */
static void expect_rest(struct stand *s)
{
	int64_t end = clock_ms() + 20;
	int turns = 0;

	until(s->loop, ++turns > 1000 || clock_ms() >= end);
	assert_in_range(turns, 1, 1000);
}

TEST_WITH(what_is_no_frame_ends_it, set_up, tear_down)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{"\xff\xff\xff\xff", 4},
		{"\0\0\0\2[]", 6},
		{"\0\0\0\2no", 6},
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct stand *s = *state;

		say_messages(s, 1, 1, 0);
		say_bytes(s, bad[i].bytes, bad[i].len);
		say_messages(s, 2, 2, 0);
		until(s->loop, s->a.n_lost == 1);
		assert_string_equal(s->a.why.reason, "BadFrame");
		assert_int_equal(s->a.why.class, ERR_BUG);
		assert_string_equal(s->a.heard.data, "1;");
		/* Nothing goes any more either. */
		tell(&s->a, 1, 0);
		say_messages(s, 3, 3, 0);
		expect_rest(s);
		assert_int_equal(s->a.n_lost, 1);
		assert_int_equal(s->a.n_heard, 1);
		assert_int_equal(recv(s->fds[1], &(char){0}, 1, MSG_DONTWAIT), -1);
		assert_int_equal(errno, EAGAIN);
		(void)tear_down(state);
		(void)set_up(state);
	}
}

TEST_WITH(who_does_not_read_is_given_up, set_up, tear_down)
{
	struct stand *s = *state;
	int n = 0;

	while (n < 10) {
		tell(&s->a, ++n, 4 << 20);
		/* Not from channel_send(). */
		assert_int_equal(s->a.n_lost, 0);
		pass(s->loop, 5);
		if (s->a.n_lost)
			break;
	}
	/* 16 MiB, and what the kernel holds. */
	assert_in_range(n, 4, 5);
	assert_int_equal(s->a.n_lost, 1);
	assert_string_equal(s->a.why.reason, "ChannelFull");
	assert_int_equal(s->a.why.class, ERR_BUG);
}

TEST_WITH(a_message_that_is_too_large_ends_it, set_up, tear_down)
{
	struct stand *s = *state;

	tell(&s->a, 1, JSON_FRAME_MAX);
	assert_int_equal(s->a.n_lost, 0);
	until(s->loop, s->a.n_lost == 1);
	assert_string_equal(s->a.why.reason, "MessageTooLarge");
}
