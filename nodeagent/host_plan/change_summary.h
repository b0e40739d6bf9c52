// SPDX-License-Identifier: Apache-2.0
/*
 * What a round has made of the host, for people: one line from the steps that changed something.
 * Pure.
 */
#pragma once

#include <jansson.h>

enum {
	/* Changes that are named; the rest is counted. */
	CHANGE_SUMMARY_NAMED_MAX = 8,
};

/*
 * entries: of the "steps" of one plan or several (planner.h), in the order of their execution, each
 * of which has changed something. observed: the document whose names of interfaces are said; a PF
 * that is not in it is called by its address.
 *
 * Returns new: "enp1s0: 4 VFs made, MTU 9000; enp2s0: 2 VFs removed; and 3 more changes". Numbers
 * of VFs first, then eSwitch and RDMA mode, MTU, drivers, addresses, links, rules, modules. What is
 * only on the way to something is not said. Without any change: "nothing changed".
 */
char *change_summary_text(const json_t *entries, const json_t *observed);
