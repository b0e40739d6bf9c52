/* The supervisor with real processes, which write down what they live through. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/packet.h"
#include "lib/base/str.h"
#include "nodeagent/supervisor.h"

#define PATIENCE_MS 20000

struct stand {
	/* Of the server's half. */
	bool offers, never_ends;
	/* How agents end, one letter each: 'k' by a signal, '3' with that status, 'w' when told to. */
	const char *ends;
	int log[2];
	pid_t supervisor;
	struct strbuf heard;
};

/* ---- the two halves --------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void note(const struct stand *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vdprintf(s->log[1], fmt, args);
	va_end(args);
}

static int serve(int control, void *arg)
{
	const struct stand *s = arg;
	struct pollfd poll_fd = {.fd = control, .events = POLLIN};
	char byte;

	note(s, "server %d\n", (int)getpid());
	for (;;) {
		int fd;
		ssize_t n;

		(void)poll(&poll_fd, 1, -1);
		n = packet_receive(control, &byte, 1, &fd);
		if (n <= 0)
			break;
		if (s->offers)
			(void)packet_send(control, "o", 1, -1, 0);
		/* The agent goes on when this is there. */
		(void)!write(fd, "hello", 5);
		(void)close(fd);
	}
	note(s, "server is told to end\n");
	while (s->never_ends)
		(void)pause();
	return 0;
}

static volatile sig_atomic_t told_to_end;

static void on_term(int signum)
{
	told_to_end = 1;
}

static void wait_to_be_told(void)
{
	sigset_t term, none;

	(void)sigemptyset(&none);
	(void)sigemptyset(&term);
	(void)sigaddset(&term, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &term, NULL);
	while (!told_to_end)
		(void)sigsuspend(&none);
}

static int work(int channel, const struct supervisor_past *past, void *arg)
{
	const struct stand *s = arg;
	char text[6] = "";
	char end = s->ends[past->ends];

	(void)signal(SIGTERM, on_term);
	(void)!read(channel, text, 5);
	note(s, "agent %d after %u, %d%s: %s\n", (int)getpid(), past->ends, past->status,
	     past->served || past->ends == 0 ? "" : " unserved", text);
	if (end == 'k')
		(void)raise(SIGKILL);
	if (end == 'w') {
		wait_to_be_told();
		note(s, "agent is told to end\n");
		return 7;
	}
	return end - '0';
}

static void down(void *arg)
{
	note(arg, "down\n");
}

/* ---- the stand -------------------------------------------------------------------------------------------------------- */

static void begin(struct stand *s)
{
	assert_int_equal(pipe(s->log), 0);
	s->supervisor = fork();
	assert_true(s->supervisor >= 0);
	if (s->supervisor == 0)
		_exit(supervisor_run(&(struct supervisor_config){
			.serve = serve, .work = work, .down = down, .arg = s}));
	(void)close(take_fd(&s->log[1]));
}

/* False at the end: nobody is left who could write. */
static bool hear(struct stand *s)
{
	struct pollfd poll_fd = {.fd = s->log[0], .events = POLLIN};
	char bytes[256];
	ssize_t n;

	if (poll(&poll_fd, 1, PATIENCE_MS) != 1)
		fail_msg("nothing more after: %s", strbuf_str(&s->heard));
	n = read(s->log[0], bytes, sizeof(bytes));
	if (n > 0)
		strbuf_add(&s->heard, bytes, (size_t)n);
	return n > 0;
}

static void wait_for(struct stand *s, const char *text)
{
	while (!strstr(strbuf_str(&s->heard), text))
		if (!hear(s))
			fail_msg("never \"%s\" in: %s", text, strbuf_str(&s->heard));
}

static size_t count(struct stand *s, const char *text)
{
	size_t n = 0;

	for (const char *p = strbuf_str(&s->heard); (p = strstr(p, text)); p++)
		n++;
	return n;
}

/* Number after the nth occurrence of the text. */
static pid_t pid_of(struct stand *s, const char *text, size_t nth)
{
	const char *p = strbuf_str(&s->heard);

	for (size_t i = 0; p && i <= nth; i++) {
		p = strstr(p, text);
		p = p ? p + strlen(text) : NULL;
	}
	assert_non_null(p);
	return (pid_t)strtol(p, NULL, 10);
}

/* Everybody is gone; returns how the supervisor ended. */
static int end(struct stand *s)
{
	int status;

	while (hear(s))
		;
	assert_int_equal(waitpid(s->supervisor, &status, 0), s->supervisor);
	(void)close(s->log[0]);
	return status;
}

static void assert_exit(int status, int want)
{
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want);
}

/* ---- tests ------------------------------------------------------------------------------------------------------------ */

static void an_agent_that_never_offered_anything_ends_it_all(void **state)
{
	static const struct {
		const char *ends;
		int status;
	} cases[] = {{"3", 3}, {"k", 1}, {"0", 0}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stand s = {.ends = cases[i].ends};

		begin(&s);
		assert_exit(end(&s), cases[i].status);
		assert_int_equal(count(&s, "agent "), 1);
		assert_int_equal(count(&s, "after 0, 0: hello\n"), 1);
		assert_int_equal(count(&s, "server is told to end\n"), 1);
		strbuf_done(&s.heard);
	}
}

static void an_agent_that_dies_is_started_again_and_the_server_lives_on(void **state)
{
	struct stand s = {.offers = true, .ends = "k3w"};

	begin(&s);
	wait_for(&s, "after 1, 9: hello\n");
	wait_for(&s, "after 2, 768: hello\n");
	assert_int_equal(count(&s, "server "), 1);
	assert_int_equal(count(&s, "down\n"), 5);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

static void sigterm_ends_the_agent_then_the_server(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT};

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		struct stand s = {.offers = true, .ends = "w"};

		begin(&s);
		wait_for(&s, "hello\n");
		assert_int_equal(kill(s.supervisor, signals[i]), 0);
		assert_exit(end(&s), 7);
		assert_non_null(strstr(strbuf_str(&s.heard),
				       "agent is told to end\ndown\nserver is told to end\n"));
		strbuf_done(&s.heard);
	}
}

static void sigterm_between_two_agents_ends_the_server(void **state)
{
	/* The fourth one is two seconds away. */
	struct stand s = {.offers = true, .ends = "333w"};

	begin(&s);
	wait_for(&s, "after 2, 768: hello\ndown\n");
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 0);
	assert_int_equal(count(&s, "agent "), 3);
	assert_int_equal(count(&s, "server is told to end\n"), 1);
	strbuf_done(&s.heard);
}

static void an_agent_that_was_ended_in_order_is_not_started_again(void **state)
{
	struct stand s = {.offers = true, .ends = "0w"};

	begin(&s);
	assert_exit(end(&s), 0);
	assert_int_equal(count(&s, "agent "), 1);
	strbuf_done(&s.heard);
}

static void a_server_that_dies_is_there_again_with_the_next_agent(void **state)
{
	struct stand s = {.offers = true, .ends = "ww"};

	begin(&s);
	wait_for(&s, "hello\n");
	assert_int_equal(kill(pid_of(&s, "server ", 0), SIGKILL), 0);
	wait_for(&s, "after 1, 9 unserved: hello\n");
	assert_int_equal(count(&s, "agent is told to end\n"), 0);
	assert_int_equal(count(&s, "server "), 2);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

static void a_server_that_does_not_end_is_killed(void **state)
{
	struct stand s = {.offers = true, .ends = "w", .never_ends = true};

	begin(&s);
	wait_for(&s, "hello\n");
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

static void whoever_kills_the_supervisor_kills_all(void **state)
{
	struct stand s = {.offers = true, .ends = "w", .never_ends = true};
	int status;

	begin(&s);
	wait_for(&s, "hello\n");
	assert_int_equal(kill(s.supervisor, SIGKILL), 0);
	status = end(&s);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(count(&s, "agent is told to end\n"), 0);
	strbuf_done(&s.heard);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agent_that_never_offered_anything_ends_it_all),
		cmocka_unit_test(an_agent_that_dies_is_started_again_and_the_server_lives_on),
		cmocka_unit_test(sigterm_ends_the_agent_then_the_server),
		cmocka_unit_test(sigterm_between_two_agents_ends_the_server),
		cmocka_unit_test(an_agent_that_was_ended_in_order_is_not_started_again),
		cmocka_unit_test(a_server_that_dies_is_there_again_with_the_next_agent),
		cmocka_unit_test(a_server_that_does_not_end_is_killed),
		cmocka_unit_test(whoever_kills_the_supervisor_kills_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
