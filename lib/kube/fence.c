// SPDX-License-Identifier: Apache-2.0
/*
 * The handler runs on the thread that owns the fences, and finds them in a list that never changes
 * under it: SIGALRM is blocked while the list or an array of descriptors does.
 */
#include "lib/kube/fence.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/mem.h"

#ifndef sigev_notify_thread_id /* glibc leaves timer_create(2)'s name for it out */
#define sigev_notify_thread_id _sigev_un._tid
#endif

struct fence {
	LIST_ENTRY(fence) link;
	timer_t timer;
	int64_t at_ms; /* INT64_MAX: never */
	int *fds;
	size_t n_fds, cap;
};

static LIST_HEAD(, fence) fences = LIST_HEAD_INITIALIZER(fences);

/*
 * Only async-signal-safe calls (signal-safety(7)). Not clock_ms: a test's own clock may not be safe
 * here.
 */
static int64_t now_ms(void)
{
	struct timespec now = {0};

	(void)clock_gettime(CLOCK_BOOTTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void fence_cut(struct fence *fence)
{
	for (size_t i = 0; i < fence->n_fds; i++)
		(void)shutdown(fence->fds[i], SHUT_RDWR);
}

static void on_alarm(int signum)
{
	struct fence *fence = NULL;
	int before = errno; /* the interrupted code may be about to read it */

	LIST_FOREACH(fence, &fences, link)
	{
		if (fence->at_ms > now_ms())
			continue;
		fence->at_ms = INT64_MAX;
		fence_cut(fence);
	}
	errno = before;
}

static void block_alarm(sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	if (pthread_sigmask(SIG_BLOCK, &set, before) != 0)
		abort();
}

static void restore_signals(const sigset_t *before)
{
	if (pthread_sigmask(SIG_SETMASK, before, NULL) != 0)
		abort();
}

struct fence *fence_new(void)
{
	struct fence *fence = mem_new(struct fence);
	/* This thread and no other: a resolver's thread would run the handler beside us. */
	struct sigevent event = {
		.sigev_notify = SIGEV_THREAD_ID,
		.sigev_signo = SIGALRM,
		.sigev_notify_thread_id = gettid(),
	};
	sigset_t before;
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGALRM, &action, NULL) != 0)
		abort();
	fence->at_ms = INT64_MAX;
	if (timer_create(CLOCK_BOOTTIME, &event, &fence->timer) != 0)
		abort(); /* only without memory */
	block_alarm(&before);
	LIST_INSERT_HEAD(&fences, fence, link);
	restore_signals(&before);
	return fence;
}

void fence_free(struct fence *fence)
{
	sigset_t before;

	if (!fence)
		return;
	block_alarm(&before);
	LIST_REMOVE(fence, link);
	restore_signals(&before);
	(void)timer_delete(fence->timer);
	mem_free(fence->fds);
	mem_free(fence);
}

void fence_add(struct fence *fence, int fd)
{
	assert(fd >= 0);
	sigset_t before;

	block_alarm(&before);
	if (fence->n_fds == fence->cap) {
		fence->cap = fence->cap ? fence->cap * 2 : 4;
		fence->fds = mem_realloc(fence->fds, fence->cap * sizeof(*fence->fds));
	}
	fence->fds[fence->n_fds++] = fd;
	restore_signals(&before);
}

void fence_remove(struct fence *fence, int fd)
{
	assert(fd >= 0);
	sigset_t before;

	block_alarm(&before);
	for (size_t i = 0; i < fence->n_fds; i++) {
		if (fence->fds[i] != fd)
			continue;
		fence->fds[i] = fence->fds[--fence->n_fds];
		break;
	}
	restore_signals(&before);
}

void fence_set(struct fence *fence, int64_t at_ms)
{
	struct itimerspec when = {0};
	sigset_t before;

	if (at_ms != INT64_MAX && at_ms < 1)
		at_ms = 1; /* a time of zero would switch the timer off */
	if (at_ms != INT64_MAX) {
		when.it_value.tv_sec = at_ms / 1000;
		when.it_value.tv_nsec = at_ms % 1000 * 1000000;
	}
	/*
	 * Time and timer change together: an alarm of the old time in between finds nothing due, or
	 * both.
	 */
	block_alarm(&before);
	fence->at_ms = at_ms;
	if (timer_settime(fence->timer, TIMER_ABSTIME, &when, NULL) != 0)
		abort();
	restore_signals(&before);
}
