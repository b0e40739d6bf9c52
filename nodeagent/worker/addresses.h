// SPDX-License-Identifier: Apache-2.0
/*
 * The node's own addresses, remembered on the privileged side until the next boot: an agent may add
 * to them, and can take none away. So the NIC that carries one stays protected, whatever an agent
 * says later.
 */
#pragma once

#include "nodeagent/host/host.h"

/* Below the host's root, on a file system in memory. */
#define ADDRESSES_FOLDER "run"
#define ADDRESSES_FILE   "orbweaver-addresses.json"

/* A node has a few; after so many nothing is forgotten, and steps are refused. */
enum { ADDRESSES_MAX = 256 };

/*
 * Those of `given` (an array of strings; NULL: none) and all that were given since the boot, new.
 * What is not an IP address is passed over. NULL with err: ERR_HOST "StateUnreadable",
 * "StateNotWritten" with errno; ERR_BUG "BadRequest" when there are more than ADDRESSES_MAX.
 */
json_t *addresses_remember(const struct host *host, const json_t *given, struct err *err);
