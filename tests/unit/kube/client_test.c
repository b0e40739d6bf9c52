// SPDX-License-Identifier: Apache-2.0
/*
 * The client against a scripted server: what is retried, what ends a call, and what the fence lets
 * through.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "lib/base/clock.h"
#include "lib/base/fs.h"
#include "lib/json/json.h"
#include "lib/kube/fence.h"
#include "lib/kube/status.h"
#include "tests/fakes/scripted.h"
#include "tests/fakes/virtual_time.h"

static struct scripted s;

static int open_script(void **state)
{
	scripted_open(&s);
	return 0;
}

static int close_script(void **state)
{
	scripted_close(&s);
	return 0;
}

static struct kube_call *get(struct ending *e, int64_t timeout_ms)
{
	return kube_call(s.client, &(struct kube_request){
					   .verb = "get",
					   .method = "GET",
					   .path = "/x",
					   .timeout_ms = timeout_ms,
					   .done = ending_of_call,
					   .arg = e,
				   });
}

static struct kube_call *write_fenced(struct ending *e)
{
	return kube_call(s.client, &(struct kube_request){
					   .verb = "update",
					   .method = "PUT",
					   .path = "/x",
					   .content_type = "application/json",
					   .body = str_dup("{}"),
					   .body_len = 2,
					   .fenced = true,
					   .done = ending_of_call,
					   .arg = e,
				   });
}

static void reply(const char *start, struct http_reply reply)
{
	http_script_add(s.http, start, &reply);
}

/* ---- answers --------------------------------------------------------------------------------- */

TEST_WITH(hands_over_the_answer, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.body = "{\"a\":1}"});
	get(&e, 0);
	assert_int_equal(e.calls, 0); /* never from inside kube_call */
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.err.class, ERR_NONE);
	assert_int_equal(e.status, 200);
	assert_string_equal(e.body, "{\"a\":1}");
}

static void add_lines(void *arg, const char *lines)
{
	strbuf_adds(arg, lines);
}

TEST_WITH(hands_over_what_the_server_warns_of, open_script, close_script)
{
	auto_strbuf struct strbuf told = {0};
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.headers = "Warning: 299 - \"old\"\r\n"
							"Warning: 299 - \"odd\"\r\n",
					     .body = "{}"});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	kube_client_set_warned(s.client, add_lines, &told);
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(strbuf_str(&told), "old\nodd\n");
	get(&e, 0);
	scripted_until(&s, &e.calls, 2);
	assert_string_equal(strbuf_str(&told), "old\nodd\n");
}

TEST_WITH(waits_as_long_as_the_server_says_after_429, open_script, close_script)
{
	struct ending e = {0};
	int64_t began = clock_ms();

	reply("GET /x ", (struct http_reply){.status = 429, .headers = "Retry-After: 1\r\n"});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.err.class, ERR_NONE);
	assert_in_range(clock_ms() - began, 1000, 1200); /* jitter */
}

TEST_WITH(does_not_wait_past_its_deadline, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.status = 429, .headers = "Retry-After: 60\r\n"});
	get(&e, 5000);
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "TooManyRequests");
	assert_int_equal(e.err.retry_after_ms, 60000); /* the queue waits that long */
	assert_int_equal(http_script_unexpected(s.http), 0);
}

TEST_WITH(tries_again_after_500, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.status = 500, .body = "oops"});
	reply("GET /x ", (struct http_reply){.status = 503});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.err.class, ERR_NONE);
	assert_int_equal(http_script_unused(s.http), 0);
}

TEST_WITH(takes_an_error_page_of_any_length_for_what_its_status_says, open_script, close_script)
{
	struct ending e = {0};
	char page[100001];

	memset(page, 'x', sizeof(page) - 1);
	page[sizeof(page) - 1] = '\0';
	reply("GET /x ", (struct http_reply){.status = 502, .body = page});
	reply("GET /x ", (struct http_reply){.status = 403, .body = page});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.status, 403);
	assert_string_equal(e.err.reason, "Forbidden");
}

TEST_WITH(tries_again_when_the_connection_was_cut, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.status = -1, .after = HTTP_CUT});
	reply("GET /x ", (struct http_reply){.body = "{\"half\":", .after = HTTP_CUT});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.err.class, ERR_NONE);
	assert_string_equal(e.body, "{}");
}

TEST_WITH(gives_a_conflict_to_the_caller, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){
				 .status = 409,
				 .body = "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\","
					 "\"message\":\"m\"}",
			 });
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.err.class, ERR_CONFLICT);
	assert_true(kube_err_is(&e.err, "AlreadyExists"));
}

TEST_WITH(says_so_when_nobody_listens, open_script, close_script)
{
	struct ending e = {0};

	http_script_free(s.http);
	s.http = http_script_new(s.loop);
	scripted_for(&s, 20);
	get(&e, 300);
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "ServerUnreachable");
	assert_non_null(strstr(e.err.text, s.config.server));
}

TEST_WITH(a_slow_answer_meets_the_deadline, open_script, close_script)
{
	struct ending e = {0};
	int64_t began = clock_ms();

	reply("GET /x ", (struct http_reply){.delay_ms = 3000});
	get(&e, 200);
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "DeadlineExceeded");
	assert_int_equal(clock_ms() - began, 200);
}

TEST_WITH(no_time_at_all_is_a_deadline_too, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.always = true, .delay_ms = 1000});
	get(&e, 1);
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "DeadlineExceeded");
}

TEST_WITH(a_server_that_hangs_gets_a_new_connection, open_script, close_script)
{
	struct ending slow = {0}, next = {0};

	reply("GET /x ", (struct http_reply){.status = -1, .after = HTTP_KEEP});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	get(&slow, 2200);
	scripted_until(&s, &slow.calls, 1);
	assert_string_equal(slow.err.reason, "DeadlineExceeded");
	get(&next, 0);
	scripted_until(&s, &next.calls, 1);
	assert_int_equal(next.err.class, ERR_NONE);
}

/* ---- credentials ----------------------------------------------------------------------------- */

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

struct rotation {
	const char *path;
};

static void rotate(void *arg)
{
	write_text(((struct rotation *)arg)->path, "second");
}

TEST_WITH(a_401_is_answered_with_the_rotated_token, open_script, close_script)
{
	char path[] = "/tmp/orbweaver-token-XXXXXX";
	struct rotation rotation = {path};
	struct ending e = {0};
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	write_text(path, "first");
	kube_client_free(s.client);
	s.config.auth.kind = KUBE_AUTH_TOKEN_FILE;
	s.config.auth.token_file = str_dup(path);
	s.client = kube_client_new(s.loop, &s.config, NULL);
	reply("GET /x ", (struct http_reply){.status = 401, .seen = rotate, .arg = &rotation});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	unlink(path);
	assert_int_equal(e.err.class, ERR_NONE);
	assert_non_null(strstr(http_script_request(s.http, 0), "Authorization: Bearer first\r\n"));
	assert_non_null(strstr(http_script_request(s.http, 1), "Authorization: Bearer second\r\n"));
}

TEST_WITH(a_second_401_is_an_error, open_script, close_script)
{
	struct ending e = {0};

	reply("GET /x ", (struct http_reply){.status = 401, .always = true});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "Unauthorized");
	assert_true(http_script_count(s.http, "GET") <= 2);
}

/* ---- streams --------------------------------------------------------------------------------- */

struct stream {
	struct ending end;
	int bytes;
	int opened;
	int refuse_at; /* return an error once that many bytes are there; 0: never */
};

static void stream_ended(void *arg, const struct kube_response *response, const struct err *err)
{
	ending_of_call(&((struct stream *)arg)->end, response, err);
}

static void stream_opened(void *arg)
{
	((struct stream *)arg)->opened++;
}

static int stream_bytes(void *arg, const char *bytes, size_t len, struct err *err)
{
	struct stream *stream = arg;

	assert_int_equal(stream->opened, 1);
	stream->bytes += (int)len;
	if (stream->refuse_at && stream->bytes >= stream->refuse_at)
		return err_set(err, ERR_TRANSIENT, "Enough", "enough");
	return 0;
}

static struct kube_call *watch(struct stream *stream, int64_t silence_ms)
{
	return kube_call(s.client, &(struct kube_request){
					   .verb = "watch",
					   .method = "GET",
					   .path = "/watch",
					   .timeout_ms = -1,
					   .silence_ms = silence_ms,
					   .on_bytes = stream_bytes,
					   .on_open = stream_opened,
					   .done = stream_ended,
					   .arg = stream,
				   });
}

TEST_WITH(a_stream_is_handed_over_as_it_comes, open_script, close_script)
{
	struct stream stream = {0};

	reply("GET /watch ", (struct http_reply){.body = "12345", .after = HTTP_OPEN});
	watch(&stream, 0);
	scripted_until(&s, &stream.bytes, 5);
	http_script_push(s.http, "67");
	scripted_until(&s, &stream.bytes, 7);
	assert_int_equal(stream.end.calls, 0);
	http_script_drop(s.http);
	scripted_until(&s, &stream.end.calls, 1);
	assert_string_equal(stream.end.err.reason, "ConnectionLost");
	assert_int_equal(stream.end.status, 200);
	/* Part of it was delivered: only the caller knows how to go on. */
	assert_int_equal(http_script_count(s.http, "GET /watch"), 1);
}

TEST_WITH(a_stream_that_falls_silent_is_stalled, open_script, close_script)
{
	struct stream stream = {0};

	reply("GET /watch ", (struct http_reply){.body = "1", .after = HTTP_OPEN});
	watch(&stream, 300);
	scripted_until(&s, &stream.bytes, 1);
	scripted_for(&s, 200);
	http_script_push(s.http, "2");
	scripted_for(&s, 200);
	assert_int_equal(stream.end.calls, 0); /* a byte starts the time anew */
	scripted_until(&s, &stream.end.calls, 1);
	assert_string_equal(stream.end.err.reason, "Stalled");
}

TEST_WITH(a_stream_that_never_begins_is_stalled, open_script, close_script)
{
	struct stream stream = {0};

	reply("GET /watch ", (struct http_reply){.status = -1});
	watch(&stream, 100);
	scripted_until(&s, &stream.end.calls, 1);
	assert_string_equal(stream.end.err.reason, "Stalled");
	assert_int_equal(stream.opened, 0);
}

TEST_WITH(the_reader_of_a_stream_can_refuse, open_script, close_script)
{
	struct stream stream = {.refuse_at = 3};

	reply("GET /watch ", (struct http_reply){.body = "12345", .after = HTTP_OPEN});
	watch(&stream, 0);
	scripted_until(&s, &stream.end.calls, 1);
	assert_string_equal(stream.end.err.reason, "Enough");
}

TEST_WITH(an_error_is_not_streamed, open_script, close_script)
{
	struct stream stream = {0};

	reply("GET /watch ", (struct http_reply){.status = 410, .body = "gone"});
	watch(&stream, 0);
	scripted_until(&s, &stream.end.calls, 1);
	assert_int_equal(stream.bytes, 0);
	assert_int_equal(stream.opened, 0);
	assert_true(kube_err_is_expired(&stream.end.err));
}

/* ---- counting -------------------------------------------------------------------------------- */

TEST_WITH(each_attempt_counts_under_the_names_of_client_go, open_script, close_script)
{
	struct metrics *metrics = metrics_new();
	struct ending e = {0}, late = {0};
	struct stream stream = {0};
	auto_free char *host = str_printf("127.0.0.1:%u", http_script_port(s.http));
	struct metric *requests, *retries, *seconds;

	kube_client_free(s.client);
	s.client = kube_client_new(s.loop, &s.config, metrics);
	requests = metric_counter(metrics, "rest_client_requests_total", "", "code,method,host");
	retries =
		metric_counter(metrics, "rest_client_request_retries_total", "", "code,verb,host");

	reply("GET /x ", (struct http_reply){.status = 500});
	reply("GET /x ", (struct http_reply){.body = "{}"});
	get(&e, 0);
	scripted_until(&s, &e.calls, 1);
	reply("GET /x ", (struct http_reply){.status = -1});
	get(&late, 100);
	scripted_until(&s, &late.calls, 1);
	/* A watch is a request as soon as its answer begins. */
	reply("GET /watch ", (struct http_reply){.body = "1", .after = HTTP_OPEN});
	watch(&stream, 0);
	scripted_until(&s, &stream.bytes, 1);

	assert_float_equal(metric_get(requests, "500", "GET", host), 1, 0);
	assert_float_equal(metric_get(requests, "<error>", "GET", host), 1, 0);
	assert_float_equal(metric_get(requests, "200", "GET", host), 2, 0);
	assert_float_equal(metric_get(retries, "200", "GET", host), 1, 0);
	assert_float_equal(metric_get(retries, "500", "GET", host), 0, 0);
	seconds = metric_histogram(metrics, "rest_client_request_duration_seconds", "", "verb,host",
				   (const double[12]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 12);
	assert_float_equal(metric_get(seconds, "GET", host), 3, 0);

	http_script_drop(s.http);
	scripted_until(&s, &stream.end.calls, 1);
	assert_float_equal(metric_get(requests, "200", "GET", host), 2, 0);
	kube_client_free(take_ptr(s.client));
	metrics_free(metrics);
}

/* ---- cancel ---------------------------------------------------------------------------------- */

static void count_free(void *arg)
{
	((struct ending *)arg)->status++;
}

static struct kube_call *call_with_free(struct ending *e)
{
	return kube_call(s.client, &(struct kube_request){
					   .verb = "get",
					   .method = "GET",
					   .path = "/x",
					   .done = ending_of_call,
					   .arg = e,
					   .free_arg = count_free,
				   });
}

TEST_WITH(a_cancelled_call_says_nothing_whenever_that_was, open_script, close_script)
{
	/* Queued, connecting, sent, waiting for a retry, and the times in between. */
	static const int64_t times[] = {-1, 0, 1, 2, 5, 20, 60, 150};

	reply("GET /x ", (struct http_reply){.status = 500, .always = true, .delay_ms = 10});
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		struct ending e = {0};
		struct kube_call *call = call_with_free(&e);

		if (times[i] >= 0)
			scripted_for(&s, times[i]);
		kube_call_cancel(call);
		assert_int_equal(e.status, 1);
		scripted_for(&s, 20);
		assert_int_equal(e.calls, 0);
	}
	kube_call_cancel(NULL);
}

struct pair {
	struct kube_call *calls[8];
	int ended;
};

/* The first that ends takes all others with it. */
static void cancel_the_others(void *arg, const struct kube_response *response,
			      const struct err *err)
{
	struct pair *pair = arg;

	pair->ended++;
	for (size_t i = 1; i < ARRAY_LEN(pair->calls); i++)
		kube_call_cancel(pair->calls[i]);
}

TEST_WITH(a_callback_may_cancel_calls_that_have_ended_at_the_same_time, open_script, close_script)
{
	struct pair pair = {0};

	virtual_time_end(); /* the first call's time is over, whatever else is to do */
	reply("GET /x ", (struct http_reply){.always = true, .body = "{}"});
	for (size_t i = 0; i < ARRAY_LEN(pair.calls); i++)
		pair.calls[i] = kube_call(s.client, &(struct kube_request){
							    .verb = "get",
							    .method = "GET",
							    .path = "/x",
							    .timeout_ms = i ? 0 : 1,
							    .done = cancel_the_others,
							    .arg = &pair,
						    });
	scripted_for(&s, 100);
	virtual_time_begin();
	assert_int_equal(pair.ended, 1);
}

TEST_WITH(a_client_goes_with_calls_in_every_state, open_script, close_script)
{
	struct ending e[4] = {0};
	struct stream stream = {0};

	reply("GET /watch ", (struct http_reply){.body = "1", .after = HTTP_OPEN});
	reply("GET /x ", (struct http_reply){.status = 500});
	reply("GET /x ", (struct http_reply){.delay_ms = 5000});
	watch(&stream, 60000);
	scripted_until(&s, &stream.bytes, 1);
	call_with_free(&e[0]);
	scripted_for(&s, 50); /* waits for its retry */
	call_with_free(&e[1]);
	scripted_for(&s, 20); /* sent */
	call_with_free(&e[2]);
	write_fenced(&e[3]); /* queued */
	kube_client_free(s.client);
	s.client = NULL;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(e[i].calls, 0);
		assert_int_equal(e[i].status, 1);
	}
	scripted_for(&s, 20);
	assert_int_equal(stream.end.calls, 0);
}

static void again_and_again(void *arg, const struct kube_response *response, const struct err *err)
{
	struct ending *e = arg;

	if (++e->calls < 50)
		kube_call(s.client, &(struct kube_request){.verb = "update",
							   .method = "PUT",
							   .path = "/x",
							   .fenced = true,
							   .done = again_and_again,
							   .arg = e});
}

/* ---- the fence ------------------------------------------------------------------------------- */

static bool open_fence;

static bool may_write(void *arg)
{
	return open_fence;
}

static int open_fenced(void **state)
{
	open_script(state);
	open_fence = true;
	kube_client_set_fence(s.client, may_write, NULL);
	return 0;
}

TEST_WITH(a_closed_fence_stops_a_write_before_it_is_sent, open_fenced, close_script)
{
	struct ending e = {0}, r = {0};

	reply("GET /x ", (struct http_reply){.body = "{}"});
	open_fence = false;
	write_fenced(&e);
	get(&r, 0); /* everybody may read */
	scripted_until(&s, &e.calls, 1);
	scripted_until(&s, &r.calls, 1);
	assert_string_equal(e.err.reason, "NotLeader");
	assert_int_equal(r.err.class, ERR_NONE);
	assert_int_equal(http_script_count(s.http, "PUT"), 0);
}

TEST_WITH(a_fence_that_closes_stops_the_retry, open_fenced, close_script)
{
	struct ending e = {0};

	reply("PUT /x ", (struct http_reply){.status = 500});
	write_fenced(&e);
	scripted_for(&s, 50);
	open_fence = false;
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "NotLeader");
	assert_int_equal(http_script_count(s.http, "PUT"), 1);
}

TEST_WITH(a_fence_that_closes_abandons_a_write_in_flight, open_fenced, close_script)
{
	struct ending e = {0}, r = {0};

	reply("PUT /x ", (struct http_reply){.status = -1});
	reply("GET /x ", (struct http_reply){.always = true, .body = "{}"});
	write_fenced(&e);
	scripted_for(&s, 50);
	open_fence = false;
	get(&r, 0); /* the connections are served again: time to notice */
	scripted_until(&s, &e.calls, 1);
	scripted_until(&s, &r.calls, 1);
	assert_string_equal(e.err.reason, "NotLeader");
	assert_int_equal(r.err.class, ERR_NONE);
}

TEST_WITH(who_tries_again_at_once_does_not_stop_the_loop, open_fenced, close_script)
{
	struct ending e = {0};
	int turns = 0;

	open_fence = false;
	again_and_again(&e, NULL, NULL);
	while (e.calls < 50 && turns < 1000) {
		loop_turn(s.loop, false);
		turns++;
	}
	assert_in_range(turns, 49, 999);
}

TEST_WITH(the_end_of_writes_cuts_connections_without_the_loop, open_fenced, close_script)
{
	struct ending e = {0};

	reply("PUT /x ", (struct http_reply){.status = -1});
	write_fenced(&e);
	scripted_for(&s, 50);
	open_fence = false;
	virtual_time_end();
	kube_client_writes_end_at(s.client, clock_ms() + 50);
	usleep(100000); /* nobody turns the loop; the kernel's timer cuts */
	virtual_time_begin();
	scripted_until(&s, &e.calls, 1);
	assert_string_equal(e.err.reason, "NotLeader");
}

/*
 * A child between question and write that stops itself, and goes on after stopped_ms. Return how
 * much the other side of its socket gets.
 */
static ssize_t bytes_of_a_stopped_child(int64_t lasts_ms, int64_t stopped_ms)
{
	char byte = 0;
	ssize_t got = 0;
	pid_t child = 0;
	int pair[2];
	int status = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	virtual_time_end();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct fence *fence = fence_new();

		(void)signal(SIGPIPE, SIG_IGN);
		fence_add(fence, pair[1]);
		fence_set(fence, clock_ms() + lasts_ms);
		/* "May I?" was asked. */
		(void)raise(SIGSTOP);
		(void)!send(pair[1], "w", 1, MSG_NOSIGNAL);
		_exit(0);
	}
	close(pair[1]);
	assert_int_equal(waitpid(child, &status, WUNTRACED), child);
	assert_true(WIFSTOPPED(status));
	usleep((useconds_t)stopped_ms * 1000);
	kill(child, SIGCONT);
	got = read(pair[0], &byte, 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	close(pair[0]);
	virtual_time_begin();
	return got;
}

TEST(a_process_that_is_stopped_before_its_write_does_not_write_afterwards)
{
	assert_int_equal(bytes_of_a_stopped_child(3600000, 0), 1);
	assert_int_equal(bytes_of_a_stopped_child(100, 200), 0);
}

TEST(an_alarm_leaves_errno_as_it_was)
{
	int pair[2];
	int unconnected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* cannot be shut down */
	struct fence *fence = fence_new();

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fence_add(fence, pair[1]);
	fence_add(fence, unconnected);
	virtual_time_end(); /* the kernel's timer rings */
	fence_set(fence, clock_ms() + 20);
	errno = EAGAIN;
	for (int64_t until = clock_ms() + 200; clock_ms() < until;)
		;
	assert_int_equal(errno, EAGAIN);
	virtual_time_begin();
	assert_int_equal(send(pair[1], "w", 1, MSG_NOSIGNAL), -1); /* the alarm came */
	fence_free(fence);
	close(pair[0]);
	close(pair[1]);
	close(unconnected);
}

/* ---- verbs ----------------------------------------------------------------------------------- */

TEST(paths_have_what_is_needed)
{
	static const struct kube_resource node = {"", "v1", "nodes", "Node", false};
	const struct {
		const struct kube_resource *resource;
		const char *ns, *name, *subresource, *query, *want;
	} cases[] = {
		{&node, NULL, NULL, NULL, NULL, "/api/v1/nodes"},
		{&node, "ignored", "w1", "status", "", "/api/v1/nodes/w1/status"},
		{&scripted_widgets, NULL, NULL, NULL, "limit=5",
		 "/apis/test.example/v1/widgets?limit=5"},
		{&scripted_widgets, "", NULL, NULL, NULL, "/apis/test.example/v1/widgets"},
		{&scripted_widgets, "a b", "x/y?z%", NULL, NULL,
		 "/apis/test.example/v1/namespaces/a%20b/widgets/x%2Fy%3Fz%25"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		auto_free char *path = kube_path(cases[i].resource, cases[i].ns, cases[i].name,
						 cases[i].subresource, cases[i].query);

		assert_string_equal(path, cases[i].want);
	}
}

TEST_WITH(verbs_say_what_they_mean, open_script, close_script)
{
	json_auto_t *widget =
		json_pack("{s:{s:s, s:s}}", "metadata", "name", "w", "namespace", "lab");
	const struct kube_write plain = {0};
	const struct kube_write how = {.field_manager = "m m", .force = true, .dry_run = true};
	const struct kube_write status = {.subresource = "status"};
	struct ending e = {0};
	static const char *const want[] = {
		"GET /apis/test.example/v1/namespaces/lab/widgets/w HTTP",
		"GET /apis/test.example/v1/widgets?limit=2 HTTP",
		"POST /apis/test.example/v1/namespaces/lab/widgets HTTP",
		"POST /apis/test.example/v1/namespaces/lab/widgets/w/status HTTP",
		"PUT /apis/test.example/v1/namespaces/lab/widgets/w/status HTTP",
		"PATCH "
		"/apis/test.example/v1/namespaces/lab/widgets/"
		"w?fieldManager=m%20m&force=true&dryRun=All HTTP",
		"DELETE /apis/test.example/v1/namespaces/lab/widgets/w HTTP",
	};
	static const char *const types[] = {
		"\r\nContent-Type: application/merge-patch+json\r\n",
		"\r\nContent-Type: application/strategic-merge-patch+json\r\n",
		"\r\nContent-Type: application/json-patch+json\r\n",
		"\r\nContent-Type: application/apply-patch+yaml\r\n",
	};

	reply("", (struct http_reply){.body = "{}", .always = true});
	kube_get(s.client, &scripted_widgets, "lab", "w", NULL, ending_of_object, &e);
	scripted_until(&s, &e.calls, 1);
	kube_list(s.client, &scripted_widgets, NULL, "limit=2", ending_of_object, &e);
	scripted_until(&s, &e.calls, 2);
	kube_create(s.client, &scripted_widgets, widget, &plain, ending_of_object, &e);
	scripted_until(&s, &e.calls, 3);
	kube_create(s.client, &scripted_widgets, widget, &status, ending_of_object, &e);
	scripted_until(&s, &e.calls, 4);
	kube_update(s.client, &scripted_widgets, widget, &status, ending_of_object, &e);
	scripted_until(&s, &e.calls, 5);
	kube_patch(s.client, &scripted_widgets, "lab", "w", KUBE_PATCH_APPLY, widget, &how,
		   ending_of_object, &e);
	scripted_until(&s, &e.calls, 6);
	kube_delete(s.client, &scripted_widgets, "lab", "w", "u-1", "7", &plain, ending_of_object,
		    &e);
	scripted_until(&s, &e.calls, 7);
	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_memory_equal(http_script_request(s.http, i), want[i], strlen(want[i]));
	assert_non_null(strstr(http_script_request(s.http, 6),
			       "\"preconditions\":{\"uid\":\"u-1\",\"resourceVersion\":\"7\"}"));
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		kube_patch(s.client, &scripted_widgets, "lab", "w", (enum kube_patch)i, widget,
			   &plain, ending_of_object, &e);
		scripted_until(&s, &e.calls, (int)(8 + i));
		assert_non_null(strstr(http_script_request(s.http, 7 + i), types[i]));
	}
	ending_done(&e);
}

TEST_WITH(an_answer_that_is_not_json_is_an_error, open_script, close_script)
{
	struct ending e = {0};

	reply("GET ", (struct http_reply){.body = "<html>"});
	kube_get_path(s.client, "/version", ending_of_object, &e);
	scripted_until(&s, &e.calls, 1);
	assert_int_equal(e.err.class, ERR_TRANSIENT);
	assert_string_equal(e.err.reason, "BadJson");
	assert_null(e.object);
}
