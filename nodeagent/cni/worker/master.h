// SPDX-License-Identifier: Apache-2.0
/* The addresses of the NIC that an attachment lies on. */
#pragma once

#include <jansson.h>

/*
 * Of the configuration's `master`, else of the PF of its device: ["10.1.0.5/24", …], new; empty
 * where there is none, and at most LIMIT_MASTER_ADDRESSES. root: descriptor of the host's root.
 * Asks the kernel, in the node's network namespace.
 */
json_t *master_addresses(const json_t *config, int root);
