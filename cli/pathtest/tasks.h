// SPDX-License-Identifier: Apache-2.0
/*
 * Tasks of a test's pod: commands that it runs, and what its log says of them. Pure.
 *
 * A pod is asked through the API server alone, without a connection to it: a task is written into
 * an annotation, the kubelet shows that to the pod as a file, and the pod's log has the answer.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/str.h"

#define TASK_ANNOTATION "orbweaver.io/test-task"
/* Where the pod sees the annotation, as a file of this name in this folder. */
#define TASK_FOLDER "/run/orbweaver-test"
#define TASK_FILE   "task"

/*
 * What the pod runs, for `sh -c`, with the folder as $0: each new task, beside those that run
 * still. Until it is ended.
 */
extern const char task_pod_script[];

/*
 * Add a task to a text: `sh -c script words…`, beside those that it has. words end with NULL.
 * number: another one than those before. The text replaces the one that the pod had; what of that
 * has not begun by then never does.
 */
void task_add(struct strbuf *text, int number, const char *script, const char *const *words);

struct task_report {
	bool has_begun;
	bool has_ended;
	int exit_code;
	char *output; /* until then what has come of it; new, free() */
};

/* What the log says of a task. Nothing in it is trusted. */
void task_read(const char *log, int number, struct task_report *ret);
