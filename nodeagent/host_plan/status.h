// SPDX-License-Identifier: Apache-2.0
/*
 * NodeState.status from what is known: pure, and the only place where its conditions are worded.
 *
 * syncStatus is what users of the SR-IOV network operator know. "Failed" once something failed or
 * is wrong, with the first trouble in lastSyncError; it stays so while that is tried again.
 * "InProgress" while steps are left, and while a pod or a reboot is waited for: nothing is broken
 * then. "Succeeded" when the plan that followed a fresh look is empty and there is no trouble.
 * Conditions Ready, Progressing, Degraded, Blocked, RebootRequired, PodNetworks, LinksHealthy carry
 * observedGeneration.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct status_input {
	int64_t generation;     /* of the NodeState that the plan was made for; 0: none yet */
	const json_t *observed; /* the observed document; NULL before the first look */
	const json_t *plan;     /* the plan made from it; NULL when there is none */
	/* What this process does: the name of a step when it runs one. NULL: idle. */
	const char *activity;
	/* The kubelet gives none of the devices away that the plan waits for. */
	bool withdrawn;
	/*
	 * What failed last and was not made good since: [{"pf", "reason", "message"}]; execution
	 * errors, hung steps, a host that cannot be read. Empty or NULL when nothing did.
	 */
	const json_t *failures;
	const json_t *resources; /* status of device plugins: device_plugins.h; NULL: not serving */
	/*
	 * What CNI plugins attached: [{"pod": {"namespace", "name"}, "ifname", "network", "plugin",
	 * "phase", "device", "mac", "addresses"}]. NULL: not known, so what `before` says stays.
	 */
	const json_t *attachments;
	/* GIDs of addresses, of gids_find() (nodeagent/host/gids.h); NULL: not read. */
	const json_t *gids;
	/* What is wrong with users' configurations of devices: [{"reason", "message"}]; or NULL. */
	const json_t *offers;
	/*
	 * {"serves", "fault", "reason", "message"} (nodeagent/cni/plan/profile.h); NULL: not known,
	 * so that the condition PodNetworks stays as it was.
	 */
	const json_t *networks;
	/* link_history_status(); NULL: no port is judged. */
	const json_t *links;
	/* Of host_checks_settle(); NULL: not read, so that those of `before` stay. */
	const json_t *host_findings;
	/* What is missing in the agent's container: [{"reason", "message"}]; or NULL. */
	const json_t *container;
	/* The status on the server; conditions keep their lastTransitionTime. */
	const json_t *before;
	const char *now;     /* RFC 3339, for transitions */
	const char *version; /* of this program; NULL: not said */
	const char *pod;     /* in which it runs; NULL: in none */
};

/*
 * The whole status as it should be, new. Unknown members of `before` are kept; so are the NICs
 * while nothing is observed. Equal inputs give equal values, and nothing in it counts or names the
 * step that runs: it changes only when the state of the node, the plan or the troubles do.
 */
json_t *status_compose(const struct status_input *input);

/*
 * Does the plan answer this failure with what a boot brings, or why none comes? (That the kernel
 * does not change the RDMA mode now is none then.)
 */
bool status_is_answered(const json_t *plan, const json_t *failure);
