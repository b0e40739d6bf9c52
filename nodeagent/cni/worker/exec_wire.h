// SPDX-License-Identifier: Apache-2.0
/*
 * A program on the host, as requests of workers have it (worker_channel.h) and as the plugin is
 * asked to run it (nodeagent/cni/plugin/wire.h). Pure.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "nodeagent/cni/plugin/wire.h"

/*
 * Append a WIRE_EXEC of {"path", "env": ["K=V"], "stdin"}. -1: that is too large for a message, and
 * nothing is appended.
 */
int exec_wire_write(struct wire_buffer *out, uint32_t id, const json_t *exec);

/* The end of a program: {"status", "stdout", "stderr"} of a WIRE_RESULT, new. */
json_t *exec_wire_read(const struct wire_message *result, uint32_t *ret_id);
