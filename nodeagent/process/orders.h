// SPDX-License-Identifier: Apache-2.0
/*
 * A process's line to the supervisor (workers.h), shared by all in it that need workers: the user
 * that asked for a worker gets it, and the end of each is reported to its user.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "lib/loop/loop.h"

struct orders;

/* A user of workers; embedded in it. Functions are called from the loop. */
struct orders_user {
	/* fd is the user's. */
	void (*started)(void *arg, pid_t pid, int fd);
	void (*not_started)(void *arg, int number); /* number: errno */
	/* One of its workers has ended; false: it is none of its own. */
	bool (*ended)(void *arg, pid_t pid, int status);
	/* The supervisor is gone: nothing comes any more. */
	void (*lost)(void *arg);
	void *arg;
	bool is_asking;           /* a worker is still to come */
	struct orders_user *next; /* of all */
};

/*
 * Takes `socket`. lost: after all users were notified, once; it may free everything. A supervisor
 * that says what makes no sense is lost, too.
 */
struct orders *orders_new(struct loop *loop, int socket, void (*lost)(void *arg), void *arg);
/* Accepts NULL. After its users. */
void orders_free(struct orders *orders);

/* The user stays where it is until it leaves, or everything ends. */
void orders_join(struct orders *orders, struct orders_user *user);
/* At any time. A worker that is still to come to it is let go at once, which ends it. */
void orders_leave(struct orders *orders, struct orders_user *user);

/*
 * Ask for a worker, unless one is still to come; 0 or -1 with errno set. Answered in order; at
 * once, before this returns, where a spare worker has started.
 */
int orders_ask(struct orders *orders, struct orders_user *user);
/*
 * From now on have one worker more than are asked for started, which waits on its line for a user:
 * a user then waits neither for the supervisor nor for the worker's start.
 */
void orders_keep_spare(struct orders *orders);
/* The supervisor sees it at once, or is about to be lost, which ends the worker as well. */
void orders_kill(const struct orders *orders, pid_t pid);
