// SPDX-License-Identifier: Apache-2.0
/*
 * One poll(2) over signals, processes' sockets and the time at which something is due; whatever it
 * finds is done at once. Between main.c, which says what each process does, and
 * nodeagent/process/workers.h.
 */
#include "nodeagent/process/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/own_fd.h"
#include "lib/base/packet.h"

/* What an agent asks for. */
enum { CONNECT_KUBELET = 'c', CONNECT_CNID = 'n' };

/* The supervisor never waits, so it answers at once. */
#define CONNECT_MS 1000

/* A process that has to say every now and then that it turns. */
struct process {
	const char *name;
	pid_t pid;         /* 0: does not run */
	int64_t heard_ms;  /* its last sign of life */
	bool is_suspected; /* the time is over; it was given half as long again */
	bool is_hung;      /* that is over too, and it was killed */
};

struct supervisor {
	const struct supervisor_config *config;
	int64_t watchdog_ms;
	int signals;
	int control; /* to kubeletd; -1: it has ended, or is to */
	int cni;     /* to cnid; -1: the same */
	struct process kubeletd, agent, cnid;
	struct workers workers, meters, cni_workers;
	int connections; /* from the agent: it wants one; -1: none */
	struct supervisor_past past;
	unsigned int quick_ends;  /* of agents that did not last */
	int64_t started_ms;       /* the agent that runs, or ran last */
	int64_t start_ms;         /* of the next one; 0: none is due */
	unsigned int quick_cnids; /* ends of cnids that did not last */
	int64_t cnid_started_ms, cnid_start_ms;
	int64_t give_up_ms; /* on the orderly end of kubeletd and cnid; 0: not yet */
	bool offering;      /* the kubelet depends on us */
	bool ending;
	int status;
};

/* ---- a new process --------------------------------------------------------------------------- */

/*
 * Returns 0 in the child. -1: tried again like one that ended. A process with its own session does
 * not get Ctrl-C at a terminal, which is for the supervisor.
 */
static pid_t fork_process(struct process *process, bool leads_session)
{
	pid_t pid = child_fork(&(struct child_config){
		.name = process->name,
		.dies_by = SIGKILL,
		.leads_session = leads_session,
	});

	if (pid < 0)
		log_error("cannot fork", F_STR("process", process->name), F_INT("errno", errno));
	if (pid > 0)
		*process =
			(struct process){.name = process->name, .pid = pid, .heard_ms = clock_ms()};
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

/* Its workers go with it: the next one takes away what they leave. */
static void drop_cni(struct supervisor *s)
{
	workers_drop(&s->cni_workers);
	if (s->cni >= 0)
		(void)close(take_fd(&s->cni));
}

/* No agent and no kubelet waits for it; only the supervisor does, at its own end. */
static void start_cnid(struct supervisor *s)
{
	int pair[2], orders;
	pid_t pid;

	s->cnid_start_ms = 0;
	s->cnid_started_ms = clock_ms();
	if (!s->config->serve_cni || !make_pair(SOCK_SEQPACKET, pair))
		return;
	orders = workers_attach(&s->cni_workers);
	pid = orders < 0 ? -1 : fork_process(&s->cnid, true);
	if (pid == 0) {
		(void)close(s->signals);
		(void)close(s->control);
		(void)close(s->workers.fd);
		(void)close(s->meters.fd);
		(void)close(s->cni_workers.fd);
		(void)close(s->connections);
		(void)close(pair[0]);
		allocation_epoch_leave(s->config->giving);
		exit(s->config->serve_cni(pair[1], orders, s->config->arg));
	}
	(void)close(pair[1]);
	if (orders >= 0)
		(void)close(orders);
	s->cni = pair[0];
	if (pid < 0)
		drop_cni(s);
}

static void start_kubeletd(struct supervisor *s)
{
	int pair[2];
	pid_t pid;

	if (!make_pair(SOCK_SEQPACKET, pair))
		return;
	pid = fork_process(&s->kubeletd, true);
	if (pid == 0) {
		(void)close(s->signals);
		(void)close(s->cni);
		(void)close(s->cni_workers.fd);
		(void)close(pair[0]);
		exit(s->config->serve(pair[1], s->config->arg));
	}
	(void)close(pair[1]);
	s->control = pair[0];
	if (pid < 0)
		drop_control(s);
}

static void say_ready(const struct supervisor *s, bool is_ready)
{
	if (s->config->ready)
		s->config->ready(s->config->arg, is_ready);
}

static void drop_agent(struct supervisor *s)
{
	workers_drop(&s->workers);
	workers_drop(&s->meters);
	if (s->connections >= 0)
		(void)close(take_fd(&s->connections));
}

/* Of those that there are. */
static void close_sockets(const struct supervisor_agent *sockets)
{
	const int fds[] = {sockets->kubeletd, sockets->orders, sockets->meters,
			   sockets->connections};

	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static void start_agent(struct supervisor *s)
{
	int pair[2], connections[2] = {-1, -1};
	struct supervisor_agent sockets;
	pid_t pid;

	s->start_ms = 0;
	if (!s->kubeletd.pid)
		start_kubeletd(s);
	s->started_ms = clock_ms();
	say_ready(s, false);
	if (!s->kubeletd.pid || !make_pair(SOCK_STREAM, pair))
		return;
	if (make_pair(SOCK_SEQPACKET, connections))
		s->connections = connections[0];
	sockets = (struct supervisor_agent){
		.kubeletd = pair[1],
		.orders = workers_attach(&s->workers),
		.meters = workers_attach(&s->meters),
		.connections = connections[1],
	};
	pid = sockets.orders < 0 || sockets.meters < 0 || s->connections < 0
		      ? -1
		      : fork_process(&s->agent, false);
	if (pid == 0) {
		(void)close(pair[0]);
		allocation_epoch_leave(s->config->giving);
		(void)close(s->signals);
		(void)close(s->control);
		(void)close(s->cni);
		(void)close(s->workers.fd);
		(void)close(s->meters.fd);
		(void)close(s->cni_workers.fd);
		(void)close(s->connections);
		exit(s->config->work(&sockets, &s->past, s->config->arg));
	}
	close_sockets(&sockets);
	/* A kubeletd that has just ended is found out by its signal. */
	if (pid > 0)
		(void)packet_send(s->control, "a", 1, pair[0], MSG_DONTWAIT);
	else
		drop_agent(s);
	(void)close(pair[0]);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Both close their sockets when they see ours closed. */
static void end_servers(struct supervisor *s)
{
	s->start_ms = s->cnid_start_ms = 0;
	drop_control(s);
	drop_cni(s);
	if (!s->give_up_ms)
		s->give_up_ms = clock_ms() + SUPERVISOR_CLOSING_MS;
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
	log_error("agent ended, starting it again", F_BOOL("kubelet_served", s->past.served),
		  F_STR("how", WIFSIGNALED(s->past.status) ? "signal" : "status"),
		  F_INT("number", WIFSIGNALED(s->past.status) ? WTERMSIG(s->past.status)
							      : WEXITSTATUS(s->past.status)),
		  F_INT("in_ms", s->start_ms - now));
}

static void on_agent_ended(struct supervisor *s, int status)
{
	s->agent.pid = 0;
	drop_agent(s);
	s->past.ends++;
	s->past.status = status;
	s->past.served = s->kubeletd.pid != 0;
	s->past.hung = s->agent.is_hung;
	say_ready(s, false);
	/* A user ended the agent itself in an orderly way. */
	if (status == 0)
		s->ending = true;
	if (s->ending || !s->offering) {
		s->ending = true;
		s->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		end_servers(s);
		return;
	}
	start_again(s, clock_ms());
}

/* Each moment counts: the agent, of no use without it, is not waited for. */
static void on_kubeletd_ended(struct supervisor *s, int status)
{
	s->kubeletd.pid = 0;
	drop_control(s);
	if (s->ending)
		return;
	log_error("kubeletd ended, starting it again", F_INT("status", status));
	if (s->agent.pid)
		(void)kill(s->agent.pid, SIGKILL);
}

/*
 * Its connections close, so that plugins ask again or leave a note; pods that run notice nothing.
 */
static void on_cnid_ended(struct supervisor *s, int status)
{
	int64_t now = clock_ms();

	s->cnid.pid = 0;
	drop_cni(s);
	if (s->ending)
		return;
	if (now - s->cnid_started_ms >= SUPERVISOR_STABLE_MS)
		s->quick_cnids = 0;
	s->cnid_start_ms = now + delay_ms(s->quick_cnids++);
	log_error("cnid ended, starting it again", F_INT("status", status),
		  F_INT("in_ms", s->cnid_start_ms - now));
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static void is_alive(struct process *process)
{
	process->heard_ms = clock_ms();
	process->is_suspected = false;
}

/* When to look at it next; 0: never. */
static int64_t due_ms(const struct supervisor *s, const struct process *process)
{
	if (!process->pid || process->is_hung)
		return 0;
	return process->heard_ms + (process->is_suspected ? s->watchdog_ms / 2 : s->watchdog_ms);
}

/*
 * The second chance is for a machine, or a container, that was stopped as a whole: what the
 * process has to say comes a moment after us.
 */
static void watch(struct supervisor *s, struct process *process, unsigned int *hung, int64_t now)
{
	int64_t due = due_ms(s, process);

	if (!due || now < due)
		return;
	if (!process->is_suspected) {
		process->is_suspected = true;
		process->heard_ms = now;
		return;
	}
	process->is_hung = true;
	(*hung)++;
	log_error("process no longer turns, killing it", F_STR("process", process->name),
		  F_INT("silent_ms", now - process->heard_ms + s->watchdog_ms));
	(void)kill(process->pid, SIGKILL);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void take_signals(struct supervisor *s)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(s->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD) {
			s->ending = true;
			s->cnid_start_ms = 0;
			if (s->agent.pid)
				(void)kill(s->agent.pid, SIGTERM);
			else
				end_servers(s);
		}
	/* Also of what a killed worker has left behind, such as a modprobe. */
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == s->agent.pid)
			on_agent_ended(s, status);
		else if (pid == s->kubeletd.pid)
			on_kubeletd_ended(s, status);
		else if (pid == s->cnid.pid)
			on_cnid_ended(s, status);
		else if (!workers_ended(&s->workers, pid, status) &&
			 !workers_ended(&s->meters, pid, status))
			(void)workers_ended(&s->cni_workers, pid, status);
	}
}

/* Its end also comes as a signal. */
static void hear_kubeletd(struct supervisor *s)
{
	char byte;
	int fd;
	ssize_t n = packet_receive(s->control, &byte, 1, &fd);

	if (fd >= 0)
		(void)close(fd);
	if (n > 0 && byte == KUBELETD_OFFERING[0])
		s->offering = true;
	if (n > 0)
		is_alive(&s->kubeletd);
	else if (n == 0 || errno != EAGAIN)
		drop_control(s);
}

static void hear_cnid(struct supervisor *s)
{
	char byte;
	ssize_t n = recv(s->cni, &byte, 1, MSG_DONTWAIT);

	if (n > 0)
		is_alive(&s->cnid);
	else if (n == 0 || errno != EAGAIN)
		drop_cni(s);
}

/* A line between agent and cnid: one end goes there, the other is returned. -1 with errno set. */
static int connect_to_cnid(const struct supervisor *s)
{
	int pair[2], failed;

	errno = ENOTCONN;
	if (s->cni < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	failed = packet_send(s->cni, "a", 1, pair[0], MSG_DONTWAIT) < 0 ? errno : 0;
	(void)close(pair[0]);
	if (!failed)
		return pair[1];
	(void)close(pair[1]);
	errno = failed;
	return -1;
}

/*
 * One that closes its socket, sends no order or does not read has no worker any more, and cannot go
 * on.
 */
static void hear_agent(struct supervisor *s)
{
	int kind = workers_take_order(&s->workers);

	if (kind == WORKERS_READY || kind == WORKERS_NOT_READY)
		say_ready(s, kind == WORKERS_READY);
	if (kind > 0)
		is_alive(&s->agent);
	else if (kind < 0)
		workers_drop(&s->workers);
}

static void take_order(struct workers *workers)
{
	if (workers_take_order(workers) < 0)
		workers_drop(workers);
}

static void connect_agent(struct supervisor *s)
{
	int32_t failed;
	auto_close int fd = -1;
	char byte;
	ssize_t n = recv(s->connections, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && byte == CONNECT_CNID)
		fd = connect_to_cnid(s);
	else if (n > 0 && s->config->connect)
		fd = s->config->connect(s->config->arg);
	else
		errno = ENOENT;
	failed = fd < 0 ? errno : 0;
	/* An agent that asks and does not read is none. */
	if (n <= 0 || packet_send(s->connections, &failed, sizeof(failed), fd, MSG_DONTWAIT) < 0)
		(void)close(take_fd(&s->connections));
}

static int ask_for(int connections, char what)
{
	struct pollfd poll_fd = {.fd = connections, .events = POLLIN};
	int32_t failed = ENOENT;
	int fd = -1, n;

	if (packet_send(connections, &what, 1, -1, MSG_DONTWAIT) < 0)
		return -1;
	do
		n = poll(&poll_fd, 1, CONNECT_MS);
	while (n < 0 && errno == EINTR);
	errno = ETIMEDOUT;
	if (n <= 0)
		return -1;
	if (packet_receive(connections, &failed, sizeof(failed), &fd) != sizeof(failed))
		failed = ECONNRESET;
	if (fd < 0 && failed == 0)
		failed = EMFILE;
	errno = failed;
	return fd;
}

int supervisor_connect(int connections)
{
	return ask_for(connections, CONNECT_KUBELET);
}

int supervisor_connect_cni(int connections)
{
	return ask_for(connections, CONNECT_CNID);
}

static int next_ms(const struct supervisor *s)
{
	const int64_t times[] = {s->give_up_ms ? s->give_up_ms : s->start_ms, due_ms(s, &s->agent),
				 due_ms(s, &s->kubeletd), due_ms(s, &s->cnid), s->cnid_start_ms};
	int64_t at = INT64_MAX, now = clock_ms();

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] && times[i] < at)
			at = times[i];
	if (at == INT64_MAX)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void on_time(struct supervisor *s)
{
	int64_t now = clock_ms();

	watch(s, &s->agent, &s->past.hung_agents, now);
	watch(s, &s->kubeletd, &s->past.hung_kubeletds, now);
	watch(s, &s->cnid, &s->past.hung_cnids, now);
	if (s->give_up_ms && now >= s->give_up_ms) {
		if (s->kubeletd.pid)
			(void)kill(s->kubeletd.pid, SIGKILL);
		if (s->cnid.pid)
			(void)kill(s->cnid.pid, SIGKILL);
		s->give_up_ms = now + SUPERVISOR_CLOSING_MS;
	}
	if (s->cnid_start_ms && now >= s->cnid_start_ms)
		start_cnid(s);
	/* That could not be forked. */
	if (s->config->serve_cni && !s->cnid.pid && !s->cnid_start_ms && !s->ending)
		s->cnid_start_ms = now + delay_ms(++s->quick_cnids);
	if (s->start_ms && now >= s->start_ms)
		start_agent(s);
	/* That could not be forked, or not be connected. */
	if (!s->agent.pid && !s->start_ms && !s->ending)
		s->start_ms = now + delay_ms(++s->quick_ends);
}

static void turn(struct supervisor *s)
{
	struct pollfd fds[] = {{.fd = s->signals, .events = POLLIN},
			       {.fd = s->control, .events = POLLIN},
			       {.fd = s->workers.fd, .events = POLLIN},
			       {.fd = s->connections, .events = POLLIN},
			       {.fd = s->cni, .events = POLLIN},
			       {.fd = s->meters.fd, .events = POLLIN},
			       {.fd = s->cni_workers.fd, .events = POLLIN}};

	if (poll(fds, ARRAY_LEN(fds), next_ms(s)) > 0) {
		if (fds[6].revents)
			take_order(&s->cni_workers);
		if (fds[5].revents)
			take_order(&s->meters);
		if (fds[4].revents)
			hear_cnid(s);
		if (fds[3].revents)
			connect_agent(s);
		if (fds[2].revents)
			hear_agent(s);
		if (fds[1].revents)
			hear_kubeletd(s);
		if (fds[0].revents)
			take_signals(s);
	}
	on_time(s);
}

int supervisor_run(const struct supervisor_config *config)
{
	struct supervisor s = {
		.config = config,
		.watchdog_ms = config->watchdog_ms ? config->watchdog_ms : SUPERVISOR_WATCHDOG_MS,
		.control = -1,
		.connections = -1,
		.cni = -1,
		.cnid = {.name = CNID_NAME},
		.kubeletd = {.name = KUBELETD_NAME},
		.agent = {.name = AGENT_NAME},
		.workers = {.work = config->worker, .arg = config->arg, .fd = -1},
		.meters = {.kind = WORKERS_METER,
			   .work = config->meter,
			   .arg = config->arg,
			   .fd = -1},
		.cni_workers = {.kind = WORKERS_CNI,
				.work = config->cni_worker,
				.arg = config->arg,
				.fd = -1},
	};
	sigset_t set;

	(void)prctl(PR_SET_NAME, SUPERVISOR_NAME, 0, 0, 0);
	/* What a killed worker leaves behind is ours to wait for. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 ||
	    (s.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0) {
		log_error("cannot wait for signals", F_INT("errno", errno));
		return 1;
	}
	s.start_ms = s.cnid_start_ms = clock_ms();
	while (!s.ending || s.agent.pid || s.kubeletd.pid || s.cnid.pid)
		turn(&s);
	(void)close(s.signals);
	return s.status;
}
