// SPDX-License-Identifier: Apache-2.0
/*
 * That an Allocate was answered, and when: in memory that the process which answers shares with
 * those that ask the kubelet before they take a VF (worker/allocated_devices.h). Only an Allocate
 * makes the list of what pods have longer, so an answer of the kubelet's may be kept until the next
 * one; and for a while after one the kubelet is not to be asked.
 */
#pragma once

#include <stdint.h>

struct allocation_epoch;

/*
 * A kubelet that is asked for its list forgets devices of pods that have ended, and with them those
 * for which an Allocate is under way: it may give them to the next pod as well
 * (github.com/kubernetes/kubernetes/pull/137534, all versions up to 1.36 at least). The moment in
 * which its Allocate ends is the worst to ask: for so many milliseconds it is not.
 */
enum { ALLOCATION_EPOCH_QUIET_MS = 1000 };

/* Before the processes are forked, which all have it then. */
struct allocation_epoch *allocation_epoch_new(void);
/* In a process that is not to have it: its memory is not the process's any more. Accepts NULL. */
void allocation_epoch_leave(struct allocation_epoch *giving);

/* An Allocate is about to be answered: not later, so that no answer is kept beyond it. */
void allocation_epoch_note(struct allocation_epoch *giving);

/* How many there were. NULL: none. */
uint64_t allocation_epoch_count(const struct allocation_epoch *giving);
/* How long the kubelet is to be left in peace, in milliseconds. NULL: it may be asked. */
int64_t allocation_epoch_quiet_ms(const struct allocation_epoch *giving);
