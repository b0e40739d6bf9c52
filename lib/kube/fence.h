// SPDX-License-Identifier: Apache-2.0
/*
 * Connections that end when time is over, even when the process does not run at that moment.
 *
 * "May I still write?" asked in front of a write leaves a gap: a process that is stopped (SIGSTOP,
 * a frozen container, a machine asleep) between the question and send(2) sends an hour later. The
 * kernel closes that gap. A timer_create(2) timer of CLOCK_BOOTTIME goes off while the process is
 * stopped; its signal is delivered before the process runs another instruction of its own; the
 * handler shuts the sockets down; the send(2) that comes next fails with EPIPE.
 *
 * SIGALRM belongs to this module. A paused virtual machine whose clock stands still is beyond what
 * a client can notice.
 */
#pragma once

#include <stdint.h>

/* All functions are for one thread, the one that called fence_new. */
struct fence;

struct fence *fence_new(void);
void fence_free(struct fence *fence);

/*
 * From its creation until just before it is closed, a socket is one of ours. It belongs to the
 * caller.
 */
void fence_add(struct fence *fence, int fd);
void fence_remove(struct fence *fence, int fd);

/*
 * Cut all sockets of then at this time of clock_ms; replaces the time set before. INT64_MAX: never.
 */
void fence_set(struct fence *fence, int64_t at_ms);

/* Cut them now: nothing more is sent or received, the next read sees the end. */
void fence_cut(struct fence *fence);
