// SPDX-License-Identifier: Apache-2.0
/*
 * The processes of a simulated cluster beside the API server: this program once more
 * (/proc/self/exe), under another name. So one file is enough, wherever it lies, each process has
 * an address space of its own, and ps(1) says which is which.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "lib/base/err.h"

#define CHILD_OPERATOR "orbweaver-operator"
#define CHILD_NODES    "orbweaver-nodes"

/*
 * Is the program called by the name of a child? Then it is that child, and nothing else:
 * *ret_status is the exit status after its end.
 */
bool child_is_asked_for(int argc, char **argv, int *ret_status);

/*
 * Start a child. argv[0] is its name, NULL ends it. Its output goes to the file `log`, which is
 * truncated. It gets SIGTERM when this process ends in any way. Returns its pid, or -1 with err
 * ERR_HOST "ChildFailed".
 */
pid_t child_start(const char *const *argv, const char *log, struct err *err);
