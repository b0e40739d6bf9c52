// SPDX-License-Identifier: Apache-2.0
/*
 * Completion in shells: a script for each that asks the program itself, which knows commands, flags
 * and, from the cluster, names.
 */
#pragma once

#include "cli/command.h"

/* The word that scripts put before the words of the command line. */
#define COMPLETION_COMMAND "__complete"

/* The command `orbweaver completion bash|zsh|fish`. */
cli_run_fn completion_run;

/*
 * Print what may stand for the last of these words, a line each: "WORD<tab>ABOUT"; then ":4", or
 * ":0" where files may stand, too: what kubectl takes from its plugins
 * (kubernetes/enhancements 3461 follows cobra's protocol). A cluster that cannot be asked has no
 * names. Returns an exit status.
 */
int completion_answer(char *const *words, size_t n);
