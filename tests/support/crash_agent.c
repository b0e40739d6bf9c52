// SPDX-License-Identifier: Apache-2.0
/*
 * The agent as it ships, which stops at a step of a test's choice: linked with --wrap, the calls by
 * which CNI changes the disk or the kernel count, those of the server of plugins and of its workers
 * together. Nothing is counted where CRASH_FILE is not.
 *
 * Before the step at which it is to stop, or the next if that is over, the process meets the test
 * at two FIFOs: it opens CRASH_REACHED, and goes on when CRASH_GO_ON is opened. Meanwhile the test
 * may kill whom it likes, this process too; itself it could not: the agent and kubeletd are other
 * users'. It may also choose another step.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"
#include "nodeagent/process/supervisor.h"
#include "nodeagent/process/workers.h"
#include "tests/support/steps.h"

#define CRASH_FILE    "/run/orbweaver-crash"
#define CRASH_REACHED CRASH_FILE ".reached"
#define CRASH_GO_ON   CRASH_FILE ".go-on"

/* Four bytes each: what a shell can read and write. */
struct crash {
	atomic_uint at;    /* from this step on, once; 0: none */
	atomic_uint steps; /* so far */
};

static struct crash *map(void)
{
	auto_close int fd = open(CRASH_FILE, O_RDWR | O_CLOEXEC);
	struct crash *crash;

	if (fd < 0)
		return NULL;
	crash = mmap(NULL, sizeof(*crash), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (crash == MAP_FAILED)
		abort();
	return crash;
}

/* Until the other end is opened, too. */
static void open_and_close(const char *fifo, int flags)
{
	int fd = open(fifo, flags | O_CLOEXEC);

	if (fd >= 0)
		(void)close(fd);
}

void test_step(void)
{
	static struct crash *crash;
	char name[16] = "";
	unsigned step, at;

	(void)prctl(PR_GET_NAME, name);
	if (!str_eq(name, CNID_NAME) && !str_eq(name, CNI_WORKER_NAME))
		return;
	if (!crash)
		crash = map();
	if (!crash)
		return;
	step = atomic_fetch_add(&crash->steps, 1) + 1;
	at = atomic_load(&crash->at);
	/* One process alone, of those that are past it. */
	if (!at || step < at || !atomic_compare_exchange_strong(&crash->at, &at, 0))
		return;
	open_and_close(CRASH_REACHED, O_WRONLY);
	open_and_close(CRASH_GO_ON, O_RDONLY);
}

ssize_t __real_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);
ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len);

ssize_t __wrap_sendto(int fd, const void *data, size_t len, int flags, const struct sockaddr *to,
		      socklen_t to_len)
{
	test_step();
	return __real_sendto(fd, data, len, flags, to, to_len);
}
