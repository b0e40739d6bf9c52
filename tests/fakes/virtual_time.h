// SPDX-License-Identifier: Apache-2.0
/*
 * Time that passes only where a test waits: a loop that has nothing to do until its next timer is
 * there at once. Link virtual_time.o to a test, and its clocks (CLOCK_MONOTONIC, CLOCK_BOOTTIME),
 * epoll_wait, epoll_pwait, poll, usleep and nanosleep are these, also inside of libraries such as
 * libuv and libcurl. Computing takes no time, so that durations are exact on a busy machine too.
 *
 * For peers in one process on local sockets, where a written byte can be read at once. Not for
 * children, threads and the kernel's own timers: those know nothing of it, see virtual_time_end.
 */
#pragma once

#include <stdint.h>

/* Real time from here on, for what comes after; begin goes on where end left off. */
void virtual_time_end(void);
void virtual_time_begin(void);

/* Let time pass while nobody runs, as when the process is stopped. */
void virtual_time_leap_ms(int64_t ms);
