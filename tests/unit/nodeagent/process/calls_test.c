// SPDX-License-Identifier: Apache-2.0
/*
 * System calls of agent, supervisor's half and worker that fail, one by one: the n-th, counted over
 * all three processes, for every n until there is none. Each run ends with answers, never with a
 * lie, a leak, a process or a descriptor left behind. The linker puts the functions below in front
 * of the C library's (tests.mk).
 */
#include "tests/support/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/json/json.h"
#include "nodeagent/process/client.h"
#include "nodeagent/worker/state.h"
#include "tests/support/workers_stand.h"

/* A run that takes longer hangs. */
#define RUN_SECONDS 60
/* More calls than a run ever makes. */
#define CALLS_MAX 2000

/* Shared by all processes of a run. */
static struct control {
	atomic_bool on;
	atomic_int calls, fail_at, number;
	atomic_bool only_interruptible;
	/* 'f' for each fsync, 'r' for each rename that was let through. */
	atomic_int n_trace;
	char trace[64];
} * control;

static bool fails(bool interruptible)
{
	if (!control || !control->on || (control->only_interruptible && !interruptible))
		return false;
	if (atomic_fetch_add(&control->calls, 1) + 1 != control->fail_at)
		return false;
	errno = control->number;
	return true;
}

static void trace(char what)
{
	int at = control && control->on ? atomic_fetch_add(&control->n_trace, 1) : -1;

	if (at >= 0 && at < (int)sizeof(control->trace) - 1)
		control->trace[at] = what;
}

#define WRAP(type, name, interruptible, parameters, arguments)                                     \
	type __real_##name parameters;                                                             \
	type __wrap_##name parameters;                                                             \
	type __wrap_##name parameters                                                              \
	{                                                                                          \
		return fails(interruptible) ? -1 : __real_##name arguments;                        \
	}

WRAP(int, socketpair, false, (int a, int b, int c, int *d), (a, b, c, d))
WRAP(pid_t, fork, false, (void), ())
WRAP(int, poll, true, (struct pollfd * a, nfds_t b, int c), (a, b, c))
WRAP(ssize_t, send, true, (int a, const void *b, size_t c, int d), (a, b, c, d))
WRAP(ssize_t, recv, true, (int a, void *b, size_t c, int d), (a, b, c, d))
WRAP(ssize_t, sendmsg, true, (int a, const struct msghdr *b, int c), (a, b, c))
WRAP(ssize_t, recvmsg, true, (int a, struct msghdr *b, int c), (a, b, c))
WRAP(ssize_t, read, true, (int a, void *b, size_t c), (a, b, c))
WRAP(ssize_t, write, true, (int a, const void *b, size_t c), (a, b, c))
WRAP(int, open, false, (const char *a, int b, mode_t c), (a, b, c))
WRAP(int, openat, false, (int a, const char *b, int c, mode_t d), (a, b, c, d))
WRAP(int, dup2, false, (int a, int b), (a, b))
WRAP(int, dup3, false, (int a, int b, int c), (a, b, c))
WRAP(int, fcntl, false, (int a, int b, long c), (a, b, c))
WRAP(int, signalfd, false, (int a, const sigset_t *b, int c), (a, b, c))
WRAP(int, prctl, false, (int a, long b, long c, long d, long e), (a, b, c, d, e))
WRAP(int, sigprocmask, false, (int a, const sigset_t *b, sigset_t *c), (a, b, c))
WRAP(pid_t, waitpid, false, (pid_t a, int *b, int c), (a, b, c))
WRAP(int, waitid, false, (idtype_t a, id_t b, siginfo_t *c, int d), (a, b, c, d))
WRAP(int, mkdirat, false, (int a, const char *b, mode_t c), (a, b, c))

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
	trace('f');
	return fails(false) ? -1 : __real_fsync(fd);
}

int __real_renameat(int a, const char *b, int c, const char *d);
int __wrap_renameat(int a, const char *b, int c, const char *d);
int __wrap_renameat(int a, const char *b, int c, const char *d)
{
	trace('r');
	return fails(false) ? -1 : __real_renameat(a, b, c, d);
}

/* ---- one run, in a process of its own -------------------------------------------------------- */

enum {
	RUN_ALL_WELL = 0,
	RUN_ERRORS = 10, /* clear ones */
	RUN_LIE,
	RUN_NO_REASON,
	RUN_FD_LEAK,
	RUN_SILENT, /* a request without an answer */
};

struct run {
	int answers, errors, lost;
	bool saved, loaded, reasonless;
	json_t *state;
};

static void note(struct run *run, const struct err *err)
{
	run->answers++;
	if (!err)
		return;
	run->errors++;
	if (err->class == ERR_NONE || !err->reason[0] || !err->text[0])
		run->reasonless = true;
}

static void on_saved(void *arg, const json_t *result, const struct err *err)
{
	struct run *run = arg;

	note(run, err);
	run->saved = result;
}

static void on_loaded(void *arg, const json_t *result, const struct err *err)
{
	struct run *run = arg;

	note(run, err);
	run->loaded = result;
	run->state = json_deep_copy(result);
}

static void on_lost(void *arg)
{
	((struct run *)arg)->lost++;
}

static size_t count_fds(void)
{
	auto_closedir DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	return n;
}

static void talk(struct run *run, int orders)
{
	const struct hostd_config config = {.orders = orders, .lost = on_lost, .arg = run};
	json_auto_t *state = json_pack("{s:i}", "n", 1);
	struct loop *loop = loop_new();
	struct hostd *hostd = hostd_new(loop, &config);

	hostd_load(hostd, on_loaded, run);
	while (run->answers < 1)
		loop_turn(loop, true);
	json_decref(take_ptr(run->state));
	hostd_save(hostd, state, on_saved, run);
	hostd_load(hostd, on_loaded, run);
	while (run->answers < 3)
		loop_turn(loop, true);
	hostd_free(hostd);
	loop_free(loop);
}

/* The kernel's word on what is there, beside the worker's. */
static bool file_has_state(const char *root)
{
	auto_free char *path = str_printf("%s/" STATE_FOLDER "/" STATE_FILE, root);
	auto_strbuf struct strbuf text = {0};

	return fs_read(AT_FDCWD, path, 4096, &text, NULL) == 0 &&
	       str_eq(strbuf_str(&text), "{\"n\":1}");
}

static int judge(const struct run *run, const char *root)
{
	if (run->reasonless)
		return RUN_NO_REASON;
	if (run->answers != 3 || run->lost > 1)
		return RUN_SILENT;
	if (run->saved && !file_has_state(root))
		return RUN_LIE;
	if (run->saved && run->loaded && json_integer_value(json_at(run->state, "n")) != 1)
		return RUN_LIE;
	return run->errors ? RUN_ERRORS : RUN_ALL_WELL;
}

static int run_once(const char *root)
{
	struct run run = {0};
	int orders, verdict;

	(void)alarm(RUN_SECONDS);
	control->on = true;
	orders = workers_stand_fork(root, &(pid_t){0});
	if (orders >= 0)
		talk(&run, orders);
	control->on = false;
	if (orders < 0)
		return RUN_ERRORS;
	verdict = judge(&run, root);
	json_decref(run.state);
	return verdict;
}

/*
 * libuv keeps some for all loops: what counts is that a run with a failure has no more than one
 * without.
 */
static _Noreturn void be_run(const char *root, size_t fds_max)
{
	int verdict;

	/* Workers of a supervisor that is gone become ours. */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	verdict = run_once(root);
	/* Nothing may go on running; the alarm ends a wait in vain. */
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	if (verdict <= RUN_ERRORS && count_fds() > fds_max)
		verdict = RUN_FD_LEAK;
	/* Not _exit: the leak detector looks now. */
	exit(verdict);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static int run_with(int fail_at, int number, bool only_interruptible)
{
	char root[] = "/tmp/hostd-calls-XXXXXX";
	size_t fds = count_fds();
	int status = -1;
	pid_t pid;

	assert_non_null(mkdtemp(root));
	memset(control, 0, sizeof(*control));
	control->fail_at = fail_at;
	control->number = number;
	control->only_interruptible = only_interruptible;
	pid = fork();
	/* An epoll, an eventfd and a signal pipe of libuv, with both ends. */
	if (pid == 0)
		be_run(root, fds + 4);
	/* This one does not count among the run's calls. */
	assert_int_equal(__real_waitpid(pid, &status, 0), pid);
	(void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (!WIFEXITED(status))
		fail_msg("call %d: ended by signal %d", fail_at, WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST(a_state_is_on_disk_before_it_has_its_name_and_the_name_before_the_answer)
{
	assert_int_equal(run_with(0, 0, false), RUN_ALL_WELL);
	/* The folder's own name; the file; the name; that name on disk. */
	assert_string_equal(control->trace, "ffrf");
}

static void try_each(int number, bool only_interruptible, bool may_fail)
{
	int ill = 0, n = 1;

	for (; n < CALLS_MAX; n++) {
		int verdict = run_with(n, number, only_interruptible);

		if (verdict != RUN_ALL_WELL && (verdict != RUN_ERRORS || !may_fail))
			fail_msg("call %d with errno %d: verdict %d", n, number, verdict);
		ill += verdict == RUN_ERRORS;
		if (control->calls < n)
			break;
	}
	print_message("%d calls, %d runs with errors\n", n - 1, ill);
	assert_true(n > 20 && n < CALLS_MAX);
	assert_true(may_fail ? ill > n / 3 : ill == 0);
}

TEST(every_call_may_fail)
{
	try_each(EIO, false, true);
}

TEST(interrupted_calls_are_made_again)
{
	try_each(EINTR, true, false);
}

static int share_control(void **state)
{
	json_init();
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	return control == MAP_FAILED ? -1 : 0;
}

TEST_GROUP(share_control, NULL)
