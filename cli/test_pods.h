// SPDX-License-Identifier: Apache-2.0
/*
 * The pods of `orbweaver test`: made, awaited, given tasks, removed. Calls return when they are
 * answered, or when the user interrupts.
 */
#pragma once

#include "cli/session.h"
#include "lib/base/err.h"

struct signal_watch;

struct test_pod {
	char *name;
	const char *node; /* borrowed */
	bool asked_for;   /* it may be there, and has to be removed */
	json_t *object;   /* as it was seen last; NULL: not yet */
	/*
	 * Tasks that are to be started, and why the last ones were not; class ERR_NONE: they were.
	 */
	struct strbuf tasks;
	struct err tasks_err;
};

struct test_pods {
	struct session session;
	const char *ns;
	const json_t *networks;
	struct test_pod *pods;
	size_t n;
	int tasks;        /* that were given so far */
	bool interrupted; /* SIGINT, SIGTERM or SIGHUP came */
	struct signal_watch *signals[3];
};

/*
 * Connect, and handle signals from now on. nodes and networks are those of pathtest/pods.h;
 * borrowed. Nothing is made yet. Errors: those of session.h.
 */
int test_pods_open(struct test_pods *t, const struct cli *cli, const json_t *networks,
		   const json_t *nodes, struct err *err);

/*
 * Make all of them, and wait until they can be asked. Errors name the pod and its node: what the
 * API server says, what the scheduler says, an image that cannot be had, timeout_ms; "Interrupted".
 */
int test_pods_start(struct test_pods *t, const char *image, int64_t timeout_ms, struct err *err);

/* A command that runs in a pod, as a task (pathtest/tasks.h). */
struct test_command {
	struct test_pods *pods;
	const struct test_pod *pod;
	int number;
	int64_t until_ms;
	bool has_begun;
	bool has_ended;
	int exit_code;
	char *output; /* NULL: its log was not read yet */
};

/* A command `sh -c script words…` for the pod; words end with NULL. It waits for the call below. */
void test_command_add(struct test_command *command, struct test_pods *t, struct test_pod *pod,
		      const char *script, const char *const *words, int64_t timeout_ms);
/* Start what was added, all of a pod at once. It replaces tasks that have not begun. */
void test_commands_start(struct test_pods *t);
/* Read the pod's log once. Errors: those of the API server, "Interrupted". */
int test_command_look(struct test_command *command, struct err *err);
/* Wait until the pod runs it. Errors: as above, "PodFailed", or why it was not started. */
int test_command_wait_begin(struct test_command *command, struct err *err);
/* Wait for its end. Errors: likewise. */
int test_command_wait(struct test_command *command, struct err *err);
/* Forget it; it ends by itself. An empty one is fine. */
void test_command_done(struct test_command *command);

/*
 * Remove what was made, whatever happened before, and disconnect. What cannot be removed is a line
 * on stderr.
 */
void test_pods_close(struct test_pods *t);
