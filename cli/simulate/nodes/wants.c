// SPDX-License-Identifier: Apache-2.0
/*
 * The one way up: whatever has changed somewhere becomes a key of the queue that nodes.c works off.
 */
#include "cli/simulate/nodes/nodes_internal.h"
#include "lib/base/str.h"

void nodes_want(struct nodes *nodes, const char *kind, const char *key, int64_t after_ms)
{
	auto_free char *text = str_printf("%s%s", kind, key);

	if (after_ms > 0)
		queue_add_after(nodes->queue, text, after_ms);
	else
		queue_add(nodes->queue, text, QUEUE_MAIN);
}
