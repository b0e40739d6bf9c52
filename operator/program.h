// SPDX-License-Identifier: Apache-2.0
/*
 * The operator as a function: the program orbweaver-operator is this, and `orbweaver simulate`
 * starts it in a process of its own.
 */
#pragma once

/* Run until SIGTERM or SIGINT; returns the exit status of the process. Once per process. */
int operator_program(int argc, char **argv);
