// SPDX-License-Identifier: Apache-2.0
/*
 * The pods of `orbweaver test`: made, awaited, given tasks, removed. Calls return when they are
 * answered, or when the user interrupts.
 */
#ifndef ORBWEAVER_CLI_TEST_PODS_H
#define ORBWEAVER_CLI_TEST_PODS_H

#include "cli/session.h"
#include "lib/base/err.h"

struct signal_watch;

struct test_pod {
	char *name;
	const char *node; /* borrowed */
	bool asked_for;   /* it may be there, and has to be removed */
	json_t *object;   /* as it was seen last; NULL: not yet */
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
	char *output;   /* NULL: its log was not read yet */
	struct err err; /* why it was not started; class ERR_NONE: it was */
};

/* Start `sh -c script words…`; words end with NULL. It replaces a task that has not begun. */
void test_command_start(struct test_command *command, struct test_pods *t,
			const struct test_pod *pod, const char *script, const char *const *words,
			int64_t timeout_ms);
/* Read the pod's log once. Errors: those of the API server, "Interrupted". */
int test_command_look(struct test_command *command, struct err *err);
/* Wait until the pod runs it. Errors: as above, "PodFailed", or command->err. */
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

#endif
