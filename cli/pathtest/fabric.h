// SPDX-License-Identifier: Apache-2.0
/*
 * Is a path lossless? What the NICs at its ends are set to, by their NodeStates, and what RDMA
 * devices have counted while there was load. Pure.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

enum fabric_verdict { FABRIC_UNKNOWN, FABRIC_OK, FABRIC_FAILED };

/*
 * Do the two NICs (pathtest_pf(); NULL: not known) agree on what both ends and the switches between
 * them have to agree on, and has the priority of RoCE packets PFC? Unknown where a NodeState shows
 * no settings. The text says what is seen; empty: of both nothing is known.
 */
enum fabric_verdict fabric_compare(const json_t *client, const json_t *server, char *text,
				   size_t size);

/* For `sh -c` with RDMA device, port and a command: runs it, and counts before and after. */
extern const char fabric_count_script[];

/*
 * What has grown, of what the script printed: {"ecnMarked", "cnpSent", "cnpHandled", "lost"}, new.
 * A counter that its driver has not is absent. NULL: nothing was counted. What follows the last
 * line of the first count is the command's own.
 */
json_t *fabric_counted(const char *output);

/*
 * What both ends have counted (NULL: not known) on a path between two NICs. It fails where packets
 * were lost between NICs that both have priority flow control.
 */
enum fabric_verdict fabric_judge(const json_t *client, const json_t *server, const json_t *sent,
				 const json_t *received, char *text, size_t size);
