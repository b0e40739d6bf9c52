// SPDX-License-Identifier: Apache-2.0
/*
 * Definitions in the program come before those of shared libraries, so the loop's library sees
 * these.
 */
#include "tests/fakes/virtual_time.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* Of a signal mask, as the kernel counts it. */
#define SIGNALS_SIZE 8

/* Not zero, which some take for "never". */
static int64_t now_ns = 1000 * NS_PER_S;
static bool is_real;

void virtual_time_end(void)
{
	is_real = true;
}

void virtual_time_begin(void)
{
	is_real = false;
}

void virtual_time_leap_ms(int64_t ms)
{
	now_ns += ms * NS_PER_MS;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	bool runs = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE ||
		    id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME;

	if (is_real || !runs)
		return (int)syscall(SYS_clock_gettime, id, ret);
	ret->tv_sec = now_ns / NS_PER_S;
	ret->tv_nsec = now_ns % NS_PER_S;
	return 0;
}

/*
 * The kernel may take a moment to carry bytes from socket to socket, so a wait is not over at once:
 * after each moment of real time without anything, STRIDE_MS of it have passed.
 */
#define STRIDE_MS 50
static const struct timespec moment = {.tv_nsec = NS_PER_MS};

/* Let a stride of *left_ms pass; false when nothing is left. */
static bool stride(int *left_ms)
{
	int ms = *left_ms < STRIDE_MS ? *left_ms : STRIDE_MS;

	virtual_time_leap_ms(ms);
	*left_ms -= ms;
	return *left_ms > 0;
}

int poll(struct pollfd *fds, nfds_t n_fds, int timeout_ms)
{
	bool jumps = !is_real && timeout_ms > 0;
	struct timespec wait = {.tv_sec = timeout_ms / 1000,
				.tv_nsec = timeout_ms % 1000 * NS_PER_MS};
	int n = 0;

	if (jumps)
		wait = moment;
	do
		n = (int)syscall(SYS_ppoll, fds, n_fds, timeout_ms < 0 ? NULL : &wait, NULL,
				 SIGNALS_SIZE);
	while (n == 0 && jumps && stride(&timeout_ms));
	return n;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout_ms, const sigset_t *mask)
{
	bool jumps = !is_real && timeout_ms > 0;
	int n = 0;

	do
		n = (int)syscall(SYS_epoll_pwait, fd, events, max, jumps ? 1 : timeout_ms, mask,
				 SIGNALS_SIZE);
	while (n == 0 && jumps && stride(&timeout_ms));
	return n;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms)
{
	return epoll_pwait(fd, events, max, timeout_ms, NULL);
}

int nanosleep(const struct timespec *wait, struct timespec *ret_left)
{
	if (is_real)
		return (int)syscall(SYS_nanosleep, wait, ret_left);
	now_ns += wait->tv_sec * NS_PER_S + wait->tv_nsec;
	return 0;
}

int usleep(useconds_t us)
{
	struct timespec wait = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L};

	return nanosleep(&wait, NULL);
}
