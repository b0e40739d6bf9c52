// SPDX-License-Identifier: Apache-2.0
/* The supervisor with real processes, which write down what they live through. */
#include "tests/support/test.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/own.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"
#include "lib/base/str.h"
#include "nodeagent/process/supervisor.h"

#define PATIENCE_MS 20000
#define ALIVE_MS    20
/* Longer than the server takes. */
#define CNID_ENDS_MS 100

struct stand {
	/* Of the server's half. */
	bool offers, never_ends, refuses;
	/* There is a process that serves CNI plugins. */
	bool has_cnid;
	struct allocation_epoch *giving; /* in the supervisor and its children */
	bool tells_sharing;
	/* The watchdog's time; 0: its own. */
	int64_t watchdog_ms;
	/*
	 * How agents end, one letter each: 'k' by a signal, '3' with that status, 'w' when told to.
	 */
	const char *ends;
	int log[2];
	pid_t supervisor;
	struct strbuf heard;
};

/* ---- the two halves -------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void note(const struct stand *s, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vdprintf(s->log[1], fmt, args);
	va_end(args);
}

/* Is the memory there that the supervisor shares? */
static void note_sharing(const struct stand *s, const char *process)
{
	unsigned char in_core;

	if (s->tells_sharing)
		note(s, "%s shares %d\n", process, mincore(s->giving, 1, &in_core) == 0);
}

static int serve(int control, void *arg)
{
	const struct stand *s = arg;
	struct pollfd poll_fd = {.fd = control, .events = POLLIN};
	char byte;

	note(s, "server %d\n", (int)getpid());
	note_sharing(s, "server");
	for (;;) {
		int fd;
		ssize_t n;

		if (poll(&poll_fd, 1, ALIVE_MS) == 0) {
			(void)packet_send(control, KUBELETD_ALIVE, 1, -1, 0);
			continue;
		}
		n = packet_receive(control, &byte, 1, &fd);
		if (n <= 0)
			break;
		if (s->offers)
			(void)packet_send(control, KUBELETD_OFFERING, 1, -1, 0);
		/* The agent goes on when this is there. */
		(void)!write(fd, "hello", 5);
		(void)close(fd);
	}
	note(s, "server is told to end\n");
	while (s->never_ends)
		(void)pause();
	return 0;
}

/* The line to it is never closed from here. */
static void order_cni_worker(const struct stand *s, int orders)
{
	struct pollfd poll_fd = {.fd = orders, .events = POLLIN};
	struct workers_event event = {0};
	int fd = -1;

	(void)workers_send(orders, WORKERS_START, 0);
	/* The end of a worker of the cnid before may come first. */
	do
		(void)poll(&poll_fd, 1, -1);
	while (workers_receive(orders, &event, &fd) == 1 && event.kind == WORKERS_ENDED);
	if (event.kind == WORKERS_STARTED && fd >= 0)
		note(s, "CNI worker %d\n", (int)event.pid);
}

/* Says hello on each line to an agent. */
static int serve_cni(int control, int orders, void *arg)
{
	const struct stand *s = arg;
	struct pollfd poll_fd = {.fd = control, .events = POLLIN};
	char byte;
	int fd;

	note(s, "cnid %d\n", (int)getpid());
	note_sharing(s, "cnid");
	order_cni_worker(s, orders);
	for (;;) {
		if (poll(&poll_fd, 1, ALIVE_MS) == 0) {
			(void)packet_send(control, CNID_ALIVE, 1, -1, 0);
			continue;
		}
		if (packet_receive(control, &byte, 1, &fd) <= 0)
			break;
		(void)!write(fd, "networks", 8);
		(void)close(fd);
	}
	note(s, "cnid is told to end\n");
	while (s->never_ends)
		(void)pause();
	(void)poll(NULL, 0, CNID_ENDS_MS);
	note(s, "cnid ends\n");
	return 0;
}

static volatile sig_atomic_t told_to_end;

static void on_term(int signum)
{
	told_to_end = 1;
}

static void wait_to_be_told(int orders)
{
	while (!told_to_end) {
		(void)workers_send(orders, WORKERS_ALIVE, 0);
		(void)poll(NULL, 0, ALIVE_MS);
	}
}

static void do_work(int fd, void *arg)
{
	char byte;

	(void)!read(fd, &byte, 1);
}

/* Ask for more workers than there may be; note how many there are, and one of them. */
static void order_workers(const struct stand *s, int orders)
{
	struct pollfd poll_fd = {.fd = orders, .events = POLLIN};
	struct workers_event event;
	int fd, started = 0, refused = 0, number = 0;
	pid_t pid = 0;

	for (int i = 0; i < WORKERS_MAX + 3; i++) {
		(void)workers_send(orders, WORKERS_START, 0);
		(void)poll(&poll_fd, 1, -1);
		if (workers_receive(orders, &event, &fd) != 1)
			break;
		started += event.kind == WORKERS_STARTED;
		refused += event.kind == WORKERS_NOT_STARTED;
		if (event.kind == WORKERS_STARTED)
			pid = event.pid;
		else
			number = event.value;
	}
	note(s, "workers %d, refused %d with %d, one is %d\n", started, refused, number, (int)pid);
}

static int work(const struct supervisor_agent *sockets, const struct supervisor_past *past,
		void *arg)
{
	const struct stand *s = arg;
	char text[6] = "";
	char end = s->ends[past->ends];

	(void)signal(SIGTERM, on_term);
	(void)!read(sockets->kubeletd, text, 5);
	note(s, "agent %d after %u, %d%s: %s\n", (int)getpid(), past->ends, past->status,
	     past->served || past->ends == 0 ? "" : " unserved", text);
	note_sharing(s, "agent");
	if (end == 'k')
		(void)raise(SIGKILL);
	if (past->hung)
		note(s, "hung agents %u, kubeletds %u\n", past->hung_agents, past->hung_kubeletds);
	if (end == 'c') {
		char kubelet[8] = "";
		int fd = supervisor_connect(sockets->connections), failed = fd < 0 ? errno : 0;

		(void)!read(fd, kubelet, sizeof(kubelet) - 1);
		note(s, "connected to %s: %d\n", kubelet, failed);
		(void)workers_send(sockets->orders, WORKERS_READY, 0);
	}
	/* Until there is one. */
	while (end == 'n') {
		char said[16] = "";
		int fd = supervisor_connect_cni(sockets->connections);

		if (fd < 0 && errno != ENOTCONN)
			note(s, "no line: %d\n", errno);
		(void)poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, ALIVE_MS);
		if (fd >= 0 && read(fd, said, sizeof(said) - 1) > 0) {
			note(s, "a line to %s\n", said);
			end = 'w';
		}
		if (fd >= 0)
			(void)close(fd);
	}
	if (end == 'o' || end == 'm')
		order_workers(s, end == 'o' ? sockets->orders : sockets->meters);
	if (end == 'x')
		(void)send(sockets->orders, "x", 1, 0);
	/* Turns no more, and hears no signal. */
	while (end == 'l')
		(void)sleep(1);
	if (end == 'w' || end == 'o' || end == 'm' || end == 'c' || end == 'x') {
		wait_to_be_told(sockets->orders);
		note(s, "agent is told to end\n");
		return 7;
	}
	return end - '0';
}

static void on_ready(void *arg, bool is_ready)
{
	note(arg, is_ready ? "ready\n" : "down\n");
}

static int on_connect(void *arg)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	(void)!write(pair[1], "kubelet", 7);
	(void)close(pair[1]);
	return pair[0];
}

static int refuse_to_connect(void *arg)
{
	errno = ECONNREFUSED;
	return -1;
}

/* ---- the stand ------------------------------------------------------------------------------- */

static void begin(struct stand *s)
{
	assert_int_equal(pipe(s->log), 0);
	s->supervisor = fork();
	assert_true(s->supervisor >= 0);
	if (s->supervisor == 0)
		_exit(supervisor_run(&(struct supervisor_config){
			.serve = serve,
			.serve_cni = s->has_cnid ? serve_cni : NULL,
			.work = work,
			.worker = do_work,
			.meter = do_work,
			.cni_worker = do_work,
			.ready = on_ready,
			.connect = s->refuses ? refuse_to_connect : on_connect,
			.giving = s->giving = allocation_epoch_new(),
			.arg = s,
			.watchdog_ms = s->watchdog_ms,
		}));
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

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(an_agent_that_never_offered_anything_ends_it_all)
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

TEST(an_agent_that_dies_is_started_again_and_the_server_lives_on)
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

TEST(sigterm_ends_the_agent_then_the_server)
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

TEST(a_supervisor_that_ends_waits_for_cnid)
{
	struct stand s = {.offers = true, .ends = "w", .has_cnid = true};

	begin(&s);
	wait_for(&s, "hello\n");
	wait_for(&s, "CNI worker ");
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	assert_int_equal(count(&s, "cnid ends\n"), 1);
	strbuf_done(&s.heard);
}

TEST(sigterm_between_two_agents_ends_the_server)
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

TEST(an_agent_that_was_ended_in_order_is_not_started_again)
{
	struct stand s = {.offers = true, .ends = "0w"};

	begin(&s);
	assert_exit(end(&s), 0);
	assert_int_equal(count(&s, "agent "), 1);
	strbuf_done(&s.heard);
}

TEST(a_server_that_dies_is_there_again_with_the_next_agent)
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

TEST(servers_that_do_not_end_are_killed)
{
	struct stand s = {.offers = true, .ends = "w", .never_ends = true, .has_cnid = true};

	begin(&s);
	wait_for(&s, "hello\n");
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

TEST(whoever_kills_the_supervisor_kills_all)
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

TEST(a_process_that_no_longer_turns_is_replaced)
{
	struct stand s = {.offers = true, .ends = "lww", .watchdog_ms = 2000};

	begin(&s);
	wait_for(&s, "after 0, 0: hello\n");
	wait_for(&s, "after 1, 9: hello\nhung agents 1, kubeletds 0\n");
	assert_int_equal(kill(pid_of(&s, "server ", 0), SIGSTOP), 0);
	wait_for(&s, "after 2, 9 unserved: hello\n");
	assert_int_equal(count(&s, "server "), 2);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

TEST(an_agent_has_a_line_to_the_process_that_serves_cni)
{
	struct stand s = {.offers = true, .ends = "n", .has_cnid = true};

	begin(&s);
	wait_for(&s, "a line to networks\n");
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

/* Who has been taken over cannot say that nothing was given to pods. */
TEST(agent_and_cnid_do_not_share_what_kubeletd_writes)
{
	struct stand s = {.offers = true, .ends = "o", .has_cnid = true, .tells_sharing = true};

	begin(&s);
	wait_for(&s, "workers 16,");
	wait_for(&s, "cnid shares 0\n");
	assert_int_equal(count(&s, "agent shares 0\n"), 1);
	assert_int_equal(count(&s, "server shares 1\n"), 1);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

TEST(cnid_is_started_again_and_nobody_else_is)
{
	struct stand s = {.offers = true, .ends = "w", .has_cnid = true, .watchdog_ms = 2000};

	begin(&s);
	wait_for(&s, "hello\n");
	wait_for(&s, "cnid ");
	assert_int_equal(kill(pid_of(&s, "cnid ", 0), SIGKILL), 0);
	while (count(&s, "cnid ") < 2)
		assert_true(hear(&s));
	/* Nor is one waited for that hangs. */
	assert_int_equal(kill(pid_of(&s, "cnid ", 1), SIGSTOP), 0);
	while (count(&s, "cnid ") < 3)
		assert_true(hear(&s));
	assert_int_equal(count(&s, "agent "), 1);
	assert_int_equal(count(&s, "server "), 1);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

TEST(workers_of_cnid_end_with_it)
{
	struct stand s = {.offers = true, .ends = "w", .has_cnid = true};
	int64_t until = clock_ms() + PATIENCE_MS;
	pid_t worker;

	begin(&s);
	wait_for(&s, "hello\n");
	while (count(&s, "CNI worker ") < 1)
		assert_true(hear(&s));
	worker = pid_of(&s, "CNI worker ", 0);
	assert_int_equal(kill(worker, 0), 0);
	assert_int_equal(kill(pid_of(&s, "cnid ", 0), SIGKILL), 0);
	while (count(&s, "CNI worker ") < 2)
		assert_true(hear(&s));
	/* Its supervisor waits for it, so its number is free then. */
	while (kill(worker, 0) == 0 && clock_ms() < until)
		(void)usleep(1000);
	assert_int_equal(kill(worker, 0), -1);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

TEST(a_stopped_agent_is_replaced)
{
	struct stand s = {.offers = true, .ends = "ww", .watchdog_ms = 2000};

	begin(&s);
	wait_for(&s, "after 0, 0: hello\n");
	assert_int_equal(kill(pid_of(&s, "agent ", 0), SIGSTOP), 0);
	wait_for(&s, "hung agents 1, kubeletds 0\n");
	assert_int_equal(count(&s, "server "), 1);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

TEST(there_are_so_many_workers_and_no_more)
{
	struct stand s = {.offers = true, .ends = "o"};
	auto_free char *want =
		str_printf("workers %d, refused 3 with %d, one is ", WORKERS_MAX, EAGAIN);

	begin(&s);
	wait_for(&s, want);
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}

/* The log's pipe is open in workers' stderr only: they are looked for by number. */
TEST(workers_and_meters_end_with_their_agent)
{
	static const char *const cases[] = {"ow", "mw"};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stand s = {.offers = true, .ends = cases[i]};
		pid_t worker;

		begin(&s);
		wait_for(&s, "one is ");
		while (!strchr(strstr(strbuf_str(&s.heard), "one is "), '\n'))
			(void)hear(&s);
		worker = pid_of(&s, "one is ", 0);
		assert_int_equal(kill(worker, 0), 0);
		assert_int_equal(kill(pid_of(&s, "agent ", 0), SIGKILL), 0);
		wait_for(&s, "after 1, 9: hello\n");
		while (kill(worker, 0) == 0)
			(void)poll(NULL, 0, ALIVE_MS);
		assert_int_equal(kill(s.supervisor, SIGTERM), 0);
		assert_exit(end(&s), 7);
		strbuf_done(&s.heard);
	}
}

TEST(an_agent_is_connected_to_the_kubelet_and_says_that_it_is_ready)
{
	static const struct {
		bool refuses;
		const char *want;
	} cases[] = {{false, "connected to kubelet: 0\n"}, {true, "connected to : 111\n"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stand s = {.offers = true, .ends = "c", .refuses = cases[i].refuses};

		begin(&s);
		wait_for(&s, cases[i].want);
		wait_for(&s, "ready\n");
		assert_int_equal(kill(s.supervisor, SIGTERM), 0);
		assert_exit(end(&s), 7);
		/* Before it was started, and after its end. */
		assert_int_equal(count(&s, "down\n"), 2);
		strbuf_done(&s.heard);
	}
}

TEST(an_agent_that_sends_no_order_gets_no_worker_any_more)
{
	struct stand s = {.offers = true, .ends = "xw", .watchdog_ms = 2000};

	begin(&s);
	wait_for(&s, "hung agents 1, kubeletds 0\n");
	assert_int_equal(kill(s.supervisor, SIGTERM), 0);
	assert_exit(end(&s), 7);
	strbuf_done(&s.heard);
}
