// SPDX-License-Identifier: Apache-2.0
/*
 * What is there: one JSON document about the host's NICs, their VFs, RDMA devices and settings.
 *
 * Facts only, no judgement about what should be. A fact that cannot be had is absent, never made
 * up; what failed on the way is named in "problems". All fields: docs/node-agent.md, "The observed
 * document".
 */
#pragma once

#include "nodeagent/host/host.h"
#include "nodeagent/model/observed.h"

enum {
	/*
	 * Name who holds VFs: look into other network namespaces for VFs that are missing from
	 * ours, and ask who has VFs open. Costs a walk over all processes; for the moment before
	 * something is changed.
	 */
	HOST_OBSERVE_HOLDERS = 1 << 0,
	/* Summarise GID tables: reads every slot (mlx5: 256 files per port); for the slow scan. */
	HOST_OBSERVE_GIDS = 1 << 1,
	/*
	 * Read settings of PFs (pf_settings.h): some ten questions for each, of which drivers ask
	 * the firmware a part.
	 */
	HOST_OBSERVE_SETTINGS = 1 << 2,
};

/*
 * Look at everything. Returns the document, new, or NULL with err set when not even the list of PCI
 * devices or of network interfaces can be read (ERR_HOST "HostUnreadable").
 *
 * Sorted by PCI address, VFs by number: nothing changed on the host, same bytes by json_text().
 */
json_t *host_observe(struct host *host, unsigned int flags, struct err *err);

/*
 * Why nothing may be done to this PF, new, or NULL when it may. For the last look before a step;
 * fails when it cannot be known.
 */
int host_why_protected(struct host *host, const char *pf, char **ret_reason, struct err *err);

/*
 * Which interface of a pod lies on this PF, "macvlan net1 in /run/netns/pod", new, or NULL: none.
 * Likewise.
 */
int host_what_carried(struct host *host, const char *pf, char **ret_interface, struct err *err);
