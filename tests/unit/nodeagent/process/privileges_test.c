// SPDX-License-Identifier: Apache-2.0
/*
 * What is left of capabilities, as the kernel tells it. As root only: without any to begin with
 * there is nothing to see.
 */
#include "tests/support/test.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/fs.h"
#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "nodeagent/process/privileges.h"

static bool has_privileges(void)
{
	return geteuid() == 0 && prctl(PR_CAPBSET_READ, CAP_SETPCAP, 0, 0, 0) == 1;
}

/* A hexadecimal field of /proc/self/status; all ones when there is none. */
static uint64_t field(const char *name)
{
	auto_strbuf struct strbuf text = {0};
	auto_free char *start = str_printf("\n%s:\t", name);
	const char *at;

	(void)fs_read(AT_FDCWD, "/proc/self/status", 65536, &text, NULL);
	at = strstr(strbuf_str(&text), start);
	return at ? strtoull(at + strlen(start), NULL, 16) : UINT64_MAX;
}

static bool all_are(uint64_t inheritable, uint64_t others)
{
	return field("CapInh") == inheritable && field("CapAmb") == 0 &&
	       field("CapPrm") == others && field("CapEff") == others &&
	       field("CapBnd") == others && field("NoNewPrivs") == 1;
}

/* In a process of its own: there is no way back. Its exit status: the number of what is wrong. */
static int in_child(int (*check)(void))
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(check());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static int listens_in(const char *folder)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -1;
	return unlink(address.sun_path);
}

static int check_parent(void)
{
	char folder[] = "/tmp/hostd-privileges-XXXXXX";
	int listens;

	if (!mkdtemp(folder))
		return 1;
	if (privileges_drop_all(NULL) < 0)
		return 2;
	if (!all_are(0, 0))
		return 3;
	listens = listens_in(folder);
	(void)rmdir(folder);
	if (geteuid() != 0 || listens < 0)
		return 4;
	/* What needs a capability is refused, also to a program that root runs. */
	if (sethostname("x", 1) == 0)
		return 5;
	return system("unshare --mount true 2>/dev/null") == 0 ? 6 : 0;
}

static int check_hostd(void)
{
	uint64_t had = field("CapPrm");
	uint64_t keeps = UINT64_C(1) << CAP_NET_ADMIN | UINT64_C(1) << CAP_SYS_ADMIN |
			 UINT64_C(1) << CAP_SYS_CHROOT | UINT64_C(1) << CAP_SYS_MODULE |
			 UINT64_C(1) << CAP_SYS_PTRACE | UINT64_C(1) << CAP_DAC_READ_SEARCH;

	if (privileges_limit_hostd(NULL) < 0)
		return 1;
	if (!all_are(0, keeps & had))
		return 2;
	/* Nothing comes back, and asking again changes nothing. */
	return privileges_limit_hostd(NULL) == 0 && all_are(0, keeps & had) ? 0 : 3;
}

static int check_meter(void)
{
	uint64_t had = field("CapPrm");
	uint64_t keeps = UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_SYS_PTRACE |
			 UINT64_C(1) << CAP_DAC_READ_SEARCH;

	return privileges_limit_meter(NULL) == 0 && all_are(0, keeps & had) ? 0 : 1;
}

static int check_twice(void)
{
	return privileges_drop_all(NULL) == 0 && privileges_drop_all(NULL) == 0 && all_are(0, 0)
		       ? 0
		       : 1;
}

TEST(the_agent_keeps_no_capability_and_can_use_what_is_roots)
{
	if (!has_privileges())
		skip();
	assert_int_equal(in_child(check_parent), 0);
}

TEST(hostd_keeps_what_steps_need_and_no_more)
{
	if (!has_privileges())
		skip();
	assert_int_equal(in_child(check_hostd), 0);
}

TEST(a_meter_keeps_what_reading_needs)
{
	if (!has_privileges())
		skip();
	assert_int_equal(in_child(check_meter), 0);
}

TEST(dropping_twice_is_dropping_once)
{
	if (!has_privileges())
		skip();
	assert_int_equal(in_child(check_twice), 0);
}
