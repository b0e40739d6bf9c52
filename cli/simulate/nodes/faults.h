// SPDX-License-Identifier: Apache-2.0
/* Faults of NICs and their words. */
#pragma once

#include "cli/simulate/host/host_tree.h"
#include "lib/base/err.h"

/* "link-down", …, by enum tree_fault. */
extern const char *const fault_words[TREE_FAULTS];

/* ERR_INVALID "UnknownFault" with all words. */
int fault_read(const char *word, enum tree_fault *ret, struct err *err);
