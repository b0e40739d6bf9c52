// SPDX-License-Identifier: Apache-2.0
/* Random bytes from the kernel. */
#pragma once

#include <stddef.h>

/*
 * Fill buf; cannot fail on the kernels we run on (getrandom(2), Linux 3.17), ends the process if it
 * does.
 */
void random_bytes(void *buf, size_t len);
