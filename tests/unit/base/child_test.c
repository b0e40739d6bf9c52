// SPDX-License-Identifier: Apache-2.0
/* Children: what they have of their parent, and what ends them. */
#include "tests/support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/child.h"
#include "lib/base/str.h"

static int status_of(pid_t pid)
{
	int status = -1;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool is_null(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3);
}

static int n_handled;

static void on_child(void)
{
	n_handled++;
}

TEST(a_child_has_what_its_parent_has_but_handlers_that_are_skipped)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	pid_t parent = getpid();

	assert_int_equal(pthread_atfork(NULL, NULL, on_child), 0);
	for (int skips = 0; skips < 2; skips++) {
		pid_t pid = child_fork(&(struct child_config){.skips_handlers = skips});

		if (pid == 0)
			_exit(n_handled != !skips || !is_open(fd) || getppid() != parent ||
			      getsid(0) != getsid(parent));
		assert_int_equal(status_of(pid), 0);
	}
	(void)close(fd);
}

static int oom_score(void)
{
	char text[16] = "";
	int fd = open("/proc/self/oom_score_adj", O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	(void)close(fd);
	return (int)strtol(text, NULL, 10);
}

TEST(memory_that_is_short_ends_it_earlier)
{
	const int own = oom_score(), more[] = {0, 1, 2000};

	for (size_t i = 0; i < ARRAY_LEN(more); i++) {
		int want = own + more[i] < 1000 ? own + more[i] : 1000;
		pid_t pid = child_fork(&(struct child_config){.oom_more = more[i]});

		if (pid == 0)
			_exit(oom_score() != want);
		assert_int_equal(status_of(pid), 0);
	}
}

TEST(descriptors_that_it_may_keep_have_their_numbers_and_no_other_is_open)
{
	int fds[4];
	pid_t pid;

	for (size_t i = 0; i < 4; i++)
		fds[i] = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	/* In any order, with some that are none. */
	pid = child_fork(
		&(struct child_config){.keep = (int[]){fds[3], -1, 0, fds[1]}, .n_keep = 4});
	if (pid == 0) {
		for (int fd = STDERR_FILENO + 1; fd < 256; fd++)
			if (is_open(fd) != (fd == fds[1] || fd == fds[3]))
				_exit(1);
		_exit(!is_null(STDIN_FILENO) || !is_null(STDOUT_FILENO) || is_null(fds[1]) ||
		      is_null(fds[3]));
	}
	assert_int_equal(status_of(pid), 0);
	for (size_t i = 0; i < 4; i++)
		(void)close(fds[i]);
}

TEST(a_stderr_that_was_closed_is_not_the_next_file)
{
	int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 64), kept = open("/dev/zero", O_RDONLY);
	pid_t pid;

	(void)close(STDERR_FILENO);
	pid = child_fork(&(struct child_config){.keep = &kept, .n_keep = 1});
	if (pid == 0)
		_exit(!is_null(STDERR_FILENO));
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	assert_int_equal(status_of(pid), 0);
	(void)close(fd);
	(void)close(kept);
}

static void on_signal(int number)
{
}

static bool is_default(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_DFL;
}

TEST(no_signal_is_blocked_and_handlers_go_when_asked)
{
	sigset_t usr1, before, now;

	(void)signal(SIGUSR2, on_signal);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&usr1);
	(void)sigaddset(&usr1, SIGUSR1);
	(void)sigprocmask(SIG_BLOCK, &usr1, &before);
	for (int resets = 0; resets < 2; resets++) {
		pid_t pid = child_fork(&(struct child_config){.resets_handlers = resets});

		if (pid == 0) {
			(void)sigprocmask(SIG_BLOCK, NULL, &now);
			_exit(sigismember(&now, SIGUSR1) || sigismember(&now, SIGTERM) ||
			      is_default(SIGUSR2) != resets || is_default(SIGPIPE) != resets);
		}
		assert_int_equal(status_of(pid), 0);
	}
	(void)sigprocmask(SIG_BLOCK, NULL, &now);
	assert_true(sigismember(&now, SIGUSR1));
	assert_false(sigismember(&now, SIGTERM));
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)signal(SIGUSR2, SIG_DFL);
	(void)signal(SIGPIPE, SIG_DFL);
}

TEST(it_has_a_name_and_a_session_of_its_own)
{
	char name[16] = "";
	pid_t pid =
		child_fork(&(struct child_config){.name = "ow-child-test", .leads_session = true});

	if (pid == 0) {
		(void)prctl(PR_GET_NAME, name, 0, 0, 0);
		_exit(strcmp(name, "ow-child-test") != 0 || getsid(0) != getpid());
	}
	assert_int_equal(status_of(pid), 0);
}

/* The end of a pipe that all of them have says when the last has gone. */
TEST(it_dies_with_its_parent)
{
	int fds[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = child_fork(&(struct child_config){0});
	if (pid == 0) {
		if (child_fork(&(struct child_config){.dies_by = SIGKILL}) == 0)
			for (;;)
				(void)pause();
		_exit(0);
	}
	(void)close(fds[1]);
	assert_int_equal(status_of(pid), 0);
	assert_int_equal(read(fds[0], &byte, 1), 0);
	(void)close(fds[0]);
}
