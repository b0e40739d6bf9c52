// SPDX-License-Identifier: Apache-2.0
/* What every fuzz target has: its entry points, and a check whose failure is a finding. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Optional. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

static inline void fuzz_check(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}
