// SPDX-License-Identifier: Apache-2.0
/* Programs of the host: run in its root, without a shell. */
#pragma once

#include <stddef.h>

#include "nodeagent/host/host.h"

/* An exit status that says that there is no such program. */
enum { PROGRAM_ABSENT = 127 };

/*
 * Run arguments[0], searched for in the usual folders of the host, and wait for its end. What it
 * says, output and errors, goes to `said`, up to size - 1 bytes. Returns its exit status; -1: it
 * could not be started or was killed.
 */
int program_run(const struct host *host, char *const arguments[], char *said, size_t size);
