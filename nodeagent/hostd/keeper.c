/*
 * The keeper. See the header.
 */
#include "nodeagent/hostd/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/mem.h"
#include "lib/base/packet.h"
#include "nodeagent/hostd/privileges.h"

/* How long the agent waits at its start. */
#define READY_MS 10000
/* Standard descriptors and one socket. */
#define SOCKET_FD 3
/*
 * Added to a worker's oom_score_adj: in a container that runs into its memory limit (what counts there is a share of that
 * limit) the worker goes first, which is replaced, then agent and keeper. Among all processes of a node it hardly moves.
 */
#define OOM_MORE 100
#define OOM_MAX  1000

struct keeper {
	int fd;
	int signals;
	keeper_work_fn *work;
	void *arg;
};

/* ---- packets ---------------------------------------------------------------------------------------------------------- */

/* May wait: the agent reads, or ends. */
static int tell(const struct keeper *keeper, enum keeper_event_kind kind, pid_t pid, int value,
		int fd)
{
	struct keeper_event event = {.kind = kind, .pid = pid, .value = value};

	return packet_send(keeper->fd, &event, sizeof(event), fd, 0);
}

int keeper_send(int keeper, enum keeper_order_kind kind, pid_t pid)
{
	struct keeper_order order = {.kind = kind, .pid = pid};

	return packet_send(keeper, &order, sizeof(order), -1, MSG_DONTWAIT);
}

int keeper_receive(int keeper, struct keeper_event *ret, int *ret_fd)
{
	ssize_t n = packet_receive(keeper, ret, sizeof(*ret), ret_fd);

	if (n < 0 && errno == EAGAIN)
		return 0;
	return n == (ssize_t)sizeof(*ret) ? 1 : -1;
}

/* ---- what a new process leaves behind --------------------------------------------------------------------------------- */

static void reset_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Nothing stays open but stderr and this socket, which becomes descriptor 3. -1 with errno set. */
static int keep_only(int fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -1;
	if (fcntl(STDERR_FILENO, F_GETFD) < 0 && dup2(null, STDERR_FILENO) < 0)
		return -1;
	if (fd != SOCKET_FD && dup3(fd, SOCKET_FD, O_CLOEXEC) < 0)
		return -1;
	closefrom(SOCKET_FD + 1);
	return 0;
}

/* ---- a worker --------------------------------------------------------------------------------------------------------- */

static void raise_oom_score(void)
{
	auto_strbuf struct strbuf text = {0};
	int64_t now;
	int fd;

	if (fs_read(AT_FDCWD, "/proc/self/oom_score_adj", 16, &text, NULL) < 0 || text.len < 2)
		return;
	strbuf_cut(&text, text.len - 1);
	if (!str_to_int(text.data, -OOM_MAX, OOM_MAX - OOM_MORE, &now))
		return;
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)dprintf(fd, "%d", (int)now + OOM_MORE);
	(void)close(fd);
}

static _Noreturn void be_worker(const struct keeper *keeper, int fd, pid_t parent)
{
	reset_signals();
	if (keep_only(fd) < 0)
		_exit(1);
	(void)prctl(PR_SET_NAME, WORKER_NAME, 0, 0, 0);
	/* The keeper may have ended before this took effect. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
		_exit(1);
	raise_oom_score();
	keeper->work(SOCKET_FD, keeper->arg);
	_exit(0);
}

/* 0 or errno. `ret_fd` is the agent's end. */
static int fork_worker(const struct keeper *keeper, pid_t *ret_pid, int *ret_fd)
{
	pid_t self = getpid(), pid;
	int pair[2], failed;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errno;
	pid = fork();
	failed = pid < 0 ? errno : 0;
	if (pid == 0)
		be_worker(keeper, pair[1], self);
	(void)close(pair[1]);
	if (failed) {
		(void)close(pair[0]);
		return failed;
	}
	*ret_pid = pid;
	*ret_fd = pair[0];
	return 0;
}

static int start(const struct keeper *keeper)
{
	pid_t pid = 0;
	int fd = -1, failed = fork_worker(keeper, &pid, &fd);

	if (failed)
		return tell(keeper, KEEPER_NOT_STARTED, 0, failed, -1);
	/* If it cannot be passed on, closing it here is what ends the worker. */
	failed = tell(keeper, KEEPER_STARTED, pid, 0, fd) < 0 ? errno : 0;
	(void)close(fd);
	mem_drop_code();
	return failed ? tell(keeper, KEEPER_NOT_STARTED, 0, failed, -1) : 0;
}

/* A child that was not waited for keeps its number, so this cannot hit anyone else. */
static void end(pid_t pid)
{
	siginfo_t info;

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		(void)kill(pid, SIGKILL);
}

/* ---- the loop --------------------------------------------------------------------------------------------------------- */

/* Each returns -1 when the agent is gone. */
static int take_order(const struct keeper *keeper)
{
	struct keeper_order order;
	ssize_t n = recv(keeper->fd, &order, sizeof(order), 0);

	if (n < 0 && errno == EINTR)
		return 0;
	if (n != (ssize_t)sizeof(order))
		return -1;
	if (order.kind == KEEPER_START)
		return start(keeper);
	if (order.kind == KEEPER_KILL && order.pid > 0)
		end(order.pid);
	return 0;
}

static int reap(const struct keeper *keeper)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	/* One signal may stand for several ends; a failed read leaves it for the next turn. */
	(void)!read(keeper->signals, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (tell(keeper, KEEPER_ENDED, pid, status, -1) < 0)
			return -1;
	return 0;
}

static _Noreturn void serve(const struct keeper *keeper)
{
	for (;;) {
		struct pollfd fds[] = {{.fd = keeper->fd, .events = POLLIN},
				       {.fd = keeper->signals, .events = POLLIN}};

		if (poll(fds, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			_exit(1);
		}
		if (fds[1].revents && reap(keeper) < 0)
			_exit(0);
		if (fds[0].revents && take_order(keeper) < 0)
			_exit(0);
	}
}

/* 0 or errno. */
static int settle(struct keeper *keeper)
{
	struct err err = {0};
	sigset_t set;

	reset_signals();
	/* Ctrl-C at a terminal is for the agent, which lets a step finish. */
	(void)setsid();
	if (keep_only(keeper->fd) < 0)
		return errno;
	keeper->fd = SOCKET_FD;
	(void)prctl(PR_SET_NAME, KEEPER_NAME, 0, 0, 0);
	/* What a killed worker leaves behind, such as a modprobe, is ours to wait for. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return errno;
	keeper->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (keeper->signals < 0)
		return errno;
	return privileges_limit_hostd(&err) < 0 ? (err.sys ? err.sys : EPERM) : 0;
}

static _Noreturn void be_keeper(int fd, keeper_work_fn *work, void *arg)
{
	struct keeper keeper = {.fd = fd, .work = work, .arg = arg};
	int failed = settle(&keeper);

	if (tell(&keeper, KEEPER_READY, 0, failed, -1) < 0 || failed)
		_exit(1);
	/* From here on it mostly sleeps. */
	mem_drop_code();
	serve(&keeper);
}

/* ---- the agent's side of the fork ------------------------------------------------------------------------------------- */

static int wait_ready(int fd, struct err *err)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	struct keeper_event event = {0};
	int unexpected = -1, n;

	do
		n = poll(&poll_fd, 1, READY_MS);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(err, "HostdNotStarted", "wait for hostd");
	if (n == 0 || keeper_receive(fd, &event, &unexpected) != 1 || event.kind != KEEPER_READY)
		return err_set(err, ERR_HOST, "HostdNotStarted", "hostd %s",
			       n == 0 ? "does not answer" : "ended as soon as it was started");
	errno = event.value;
	return errno ? err_sys(err, "HostdNotStarted", "prepare hostd") : 0;
}

/* Never one of the standard descriptors, which the keeper replaces. */
static int above_standard(int fd)
{
	int higher = fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, SOCKET_FD);

	if (higher != fd)
		(void)close(fd);
	return higher;
}

int keeper_fork(keeper_work_fn *work, void *arg, struct err *err)
{
	auto_close int ours = -1, theirs = -1;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, "HostdNotStarted", "make a socket pair for hostd");
	ours = above_standard(pair[0]);
	theirs = above_standard(pair[1]);
	if (ours < 0 || theirs < 0)
		return err_sys(err, "HostdNotStarted", "make a socket pair for hostd");
	pid = fork();
	if (pid < 0)
		return err_sys(err, "HostdNotStarted", "fork hostd");
	if (pid == 0)
		be_keeper(theirs, work, arg);
	(void)close(take_fd(&theirs));
	return wait_ready(ours, err) < 0 ? -1 : take_fd(&ours);
}
