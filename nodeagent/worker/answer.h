// SPDX-License-Identifier: Apache-2.0
/* One request of protocol.h, carried out on a host. */
#pragma once

#include "nodeagent/host/host.h"

/* The reply to one message, new. Blocks as long as the host does. */
json_t *answer_request(struct host *host, const json_t *message);
/* The same for a meter (workers.h), which refuses all but the two requests for counters. */
json_t *answer_meter(struct host *host, const json_t *message);
