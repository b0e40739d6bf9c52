// SPDX-License-Identifier: Apache-2.0
/*
 * What one look cannot see, added to the observed document from the looks before: PFs that are gone
 * for a moment, PFs that have just come, and NICs that the node's own traffic went through. Pure.
 *
 * The operator decides from the PFs that we report. One that is away for some seconds (its driver
 * or its firmware restarts, its bus is scanned again) must not make it forget the PF, nor us put
 * the PF back to how it was found.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	/* How long a PF that is wanted and has vanished is reported as it was. */
	HISTORY_KEEP_MS = 300000,
	/*
	 * A PF that came is not put back to how it was found: the operator has to have seen it
	 * first.
	 */
	HISTORY_SETTLE_MS = 30000,
	/*
	 * How long another NIC has to carry the node's traffic, and this one none, until this one
	 * loses its protection.
	 */
	HISTORY_PROTECT_MS = 3600000,
	/* How long a NIC is unhealthy after its last fatal error of PCI Express. */
	HISTORY_BROKEN_MS = 600000,
	/*
	 * How long a port has to be without a link until it is reported, where it has just come,
	 * or we act on it or just did: links go down for seconds when drivers set an MTU. One that
	 * is lost else is reported at once.
	 */
	HISTORY_NO_LINK_MS = 20000,
};

struct history_input {
	const json_t *observed; /* of host_observe() */
	/*
	 * What this function returned last. Before the first look, what is left of earlier ones:
	 * "interfaces", "rails" and "linkHealth" as in NodeState.status, "node" of history_node();
	 * each absent when not known. NULL: nothing is.
	 */
	const json_t *before;
	const json_t *spec;  /* NodeState.spec whose PFs are kept, with its rails; NULL: none */
	const json_t *acted; /* of history_is_ours(); NULL: nothing was done */
	int64_t now_ms; /* of a clock that never goes back, the same for all looks of a process */
};

/*
 * The document with "missing", "interfaces[].host.arrivedMs", "brokenMs", "noLinkMs" and "noLink",
 * and what is kept in "node.protected[]" and "interfaces[].host.protected": docs/node-agent.md,
 * "The observed document". And with rails (nodeagent/model/rails.h). New; shares what is the same.
 */
json_t *history_merge(const struct history_input *input);

/*
 * What history_merge() returned, as a look that sees the link of a port so, which is set up: for
 * the next merge. carrier_changes: as the kernel counts them, -1: not said. An answer to a look
 * with fewer does not undo it. New; shares what is the same.
 */
json_t *history_with_link(const json_t *observed, const char *address, bool is_up,
			  int64_t carrier_changes);

/*
 * Does what happens to the port's link come of our own action, or may it? acted: {PCI address of a
 * PF, or "" for all: when the last step on it ended, as now_ms}, INT64_MAX while one runs.
 */
bool history_is_ours(const json_t *acted, const char *address, int64_t now_ms);

/* What of it has to survive this process, until the next boot: {"bootId", "protected"}, new. */
json_t *history_node(const json_t *observed);
