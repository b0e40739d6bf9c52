// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin loopback, as containernetworking-plugins 1.x have it. Runtimes call it for each pod,
 * those without a network of ours among them: it needs no server.
 */
#ifndef ORBWEAVER_NODEAGENT_CNI_PLUGIN_LOOPBACK_H
#define ORBWEAVER_NODEAGENT_CNI_PLUGIN_LOOPBACK_H

#include <stdbool.h>

#include "nodeagent/cni/plugin/wire.h"

/*
 * Enter the namespace; with is_add, lo is set up. 0: it is up. -1: it is down, or the namespace
 * cannot be entered.
 */
int loopback_run(int netns, bool is_add);

/* Is ::1 there? In the namespace of the caller. */
bool loopback_has_v6(void);

/*
 * Append the result of ADD to ret: as containernetworking-plugins have it the prevResult of the
 * configuration that `call` (WIRE_CALL) has, else lo with its addresses, in the form of its
 * cniVersion.
 * netns_path: CNI_NETNS; a path that JSON would have to escape is left out. Pure.
 */
void loopback_result(const struct wire_buffer *call, const char *netns_path, bool has_v6,
		     struct wire_buffer *ret);

#endif
