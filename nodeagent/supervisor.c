/*
 * See the header.
 */
#include "nodeagent/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/own.h"
#include "lib/base/packet.h"

struct supervisor {
	const struct supervisor_config *config;
	int signals;
	int control;         /* to the server; -1: it has ended, or is to */
	pid_t server, agent; /* 0: does not run */
	struct supervisor_past past;
	unsigned int quick_ends; /* of agents that did not last */
	int64_t started_ms;      /* the agent that runs, or ran last */
	int64_t start_ms;        /* of the next one; 0: none is due */
	int64_t give_up_ms;      /* on the server's orderly end; 0: not yet */
	bool offering;           /* the kubelet depends on us */
	bool ending;
	int status;
};

/* ---- a new process ---------------------------------------------------------------------------------------------------- */

static void settle(const char *name, pid_t parent)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)prctl(PR_SET_NAME, name, 0, 0, 0);
	/* The supervisor may have ended before this took effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
}

/* One that cannot be forked is tried again like one that ended. */
static pid_t fork_process(const char *name)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		log_error("cannot fork", F_STR("process", name), F_INT("errno", errno));
	if (pid == 0)
		settle(name, parent);
	return pid;
}

static bool make_pair(int type, int pair[2])
{
	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) == 0)
		return true;
	log_error("cannot make a socket pair", F_INT("errno", errno));
	return false;
}

static void drop_control(struct supervisor *s)
{
	if (s->control >= 0)
		(void)close(take_fd(&s->control));
}

static void start_server(struct supervisor *s)
{
	int pair[2];

	if (!make_pair(SOCK_SEQPACKET, pair))
		return;
	s->server = fork_process(SUPERVISOR_SERVER_NAME);
	if (s->server == 0) {
		/* Ctrl-C at a terminal is for the supervisor. */
		(void)setsid();
		(void)close(s->signals);
		(void)close(pair[0]);
		exit(s->config->serve(pair[1], s->config->arg));
	}
	(void)close(pair[1]);
	s->control = pair[0];
	if (s->server < 0) {
		s->server = 0;
		drop_control(s);
	}
	mem_drop_code();
}

static void start_agent(struct supervisor *s)
{
	int pair[2];

	s->start_ms = 0;
	if (!s->server)
		start_server(s);
	s->started_ms = clock_ms();
	if (s->config->down)
		s->config->down(s->config->arg);
	if (!s->server || !make_pair(SOCK_STREAM, pair))
		return;
	s->agent = fork_process(SUPERVISOR_AGENT_NAME);
	if (s->agent == 0) {
		(void)close(s->signals);
		drop_control(s);
		(void)close(pair[0]);
		exit(s->config->work(pair[1], &s->past, s->config->arg));
	}
	(void)close(pair[1]);
	/* A server that has just ended is found out by its signal. */
	if (s->agent > 0)
		(void)packet_send(s->control, "a", 1, pair[0], MSG_DONTWAIT);
	(void)close(pair[0]);
	if (s->agent < 0)
		s->agent = 0;
	mem_drop_code();
}

/* ---- ends ------------------------------------------------------------------------------------------------------------- */

/* The server's half closes its sockets when it sees ours closed. */
static void end_server(struct supervisor *s)
{
	s->start_ms = 0;
	drop_control(s);
	if (!s->give_up_ms)
		s->give_up_ms = clock_ms() + SUPERVISOR_CLOSING_MS;
}

static void end_all(struct supervisor *s)
{
	s->ending = true;
	if (s->agent)
		(void)kill(s->agent, SIGTERM);
	else
		end_server(s);
}

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int64_t delay_ms(unsigned int quick_ends)
{
	int64_t delay = quick_ends < 8 ? (500LL << quick_ends) : SUPERVISOR_DELAY_MAX_MS;

	if (quick_ends == 0)
		return 0;
	return delay < SUPERVISOR_DELAY_MAX_MS ? delay : SUPERVISOR_DELAY_MAX_MS;
}

static void start_again(struct supervisor *s, int64_t now)
{
	if (now - s->started_ms >= SUPERVISOR_STABLE_MS)
		s->quick_ends = 0;
	s->start_ms = now + delay_ms(s->quick_ends++);
	log_error("the agent has ended, and is started again",
		  F_BOOL("kubelet_served", s->past.served),
		  F_STR("how", WIFSIGNALED(s->past.status) ? "signal" : "status"),
		  F_INT("number", WIFSIGNALED(s->past.status) ? WTERMSIG(s->past.status)
							      : WEXITSTATUS(s->past.status)),
		  F_INT("in_ms", s->start_ms - now));
}

static void on_agent_ended(struct supervisor *s, int status)
{
	s->agent = 0;
	s->past = (struct supervisor_past){
		.ends = s->past.ends + 1, .status = status, .served = s->server != 0};
	if (s->config->down)
		s->config->down(s->config->arg);
	/* Somebody ended the agent itself in an orderly way. */
	if (status == 0)
		s->ending = true;
	if (s->ending || !s->offering) {
		s->ending = true;
		s->status = exit_status(status);
		end_server(s);
		return;
	}
	start_again(s, clock_ms());
}

/* Each moment counts: the agent, of no use without it, is not waited for. */
static void on_server_ended(struct supervisor *s, int status)
{
	s->server = 0;
	drop_control(s);
	if (s->ending)
		return;
	log_error("the process that serves the kubelet has ended", F_INT("status", status));
	if (s->agent)
		(void)kill(s->agent, SIGKILL);
}

static void reap(struct supervisor *s)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->agent)
			on_agent_ended(s, status);
		else if (pid == s->server)
			on_server_ended(s, status);
	}
}

/* ---- the loop --------------------------------------------------------------------------------------------------------- */

static void take_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			end_all(s);
	reap(s);
}

/* The end of it is told by a signal, too. */
static void hear_server(struct supervisor *s)
{
	char byte;
	int fd;
	ssize_t n = packet_receive(s->control, &byte, 1, &fd);

	if (fd >= 0)
		(void)close(fd);
	if (n > 0)
		s->offering = true;
	else if (n == 0 || errno != EAGAIN)
		drop_control(s);
}

static int next_ms(const struct supervisor *s)
{
	int64_t at = s->give_up_ms ? s->give_up_ms : s->start_ms, now = clock_ms();

	if (!at)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void on_time(struct supervisor *s)
{
	int64_t now = clock_ms();

	if (s->give_up_ms && now >= s->give_up_ms && s->server) {
		(void)kill(s->server, SIGKILL);
		s->give_up_ms = now + SUPERVISOR_CLOSING_MS;
	}
	if (s->start_ms && now >= s->start_ms)
		start_agent(s);
	/* That could not be forked, or not be connected. */
	if (!s->agent && !s->start_ms && !s->ending)
		s->start_ms = now + delay_ms(++s->quick_ends);
}

static void turn(struct supervisor *s)
{
	struct pollfd fds[] = {{.fd = s->signals, .events = POLLIN},
			       {.fd = s->control, .events = POLLIN}};

	if (poll(fds, 2, next_ms(s)) > 0) {
		if (fds[1].revents)
			hear_server(s);
		if (fds[0].revents)
			take_signals(s);
	}
	on_time(s);
}

int supervisor_run(const struct supervisor_config *config)
{
	struct supervisor s = {.config = config, .control = -1};
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
	    (s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0) {
		log_error("cannot wait for signals", F_INT("errno", errno));
		return 1;
	}
	s.start_ms = clock_ms();
	while (!s.ending || s.agent || s.server)
		turn(&s);
	(void)close(s.signals);
	return s.status;
}
