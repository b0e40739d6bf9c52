/*
 * NodeState.status from what is known: pure, and the only place where its conditions are worded.
 *
 * syncStatus is what users of the SR-IOV network operator know. "Failed" once something failed or is wrong, blocked or
 * waiting for a reboot, with the first trouble in lastSyncError; it stays so while that is tried again. "InProgress" while
 * steps are left. "Succeeded" when the plan that followed a fresh look is empty and there is no trouble. Conditions Ready,
 * Progressing, Degraded, Blocked, RebootRequired carry observedGeneration.
 */
#ifndef ORBWEAVER_NODEAGENT_STATUS_H
#define ORBWEAVER_NODEAGENT_STATUS_H

#include <jansson.h>
#include <stdint.h>

struct status_input {
	int64_t generation;     /* of the NodeState that the plan was made for; 0: none yet */
	const json_t *observed; /* the observed document; NULL before the first look */
	const json_t *plan;     /* the plan made from it; NULL when there is none */
	/* What this process does: the name of a step when it runs one. NULL: idle. */
	const char *activity;
	/*
	 * What failed last and was not made good since: [{"pf", "reason", "message"}]; execution errors, hung steps, a host
	 * that cannot be read. Empty or NULL when nothing did.
	 */
	const json_t *failures;
	const json_t *resources; /* status of device plugins: device_plugins.h; NULL: not serving */
	const json_t
		*before; /* the status on the server; conditions keep their lastTransitionTime */
	const char *now; /* RFC 3339, for transitions */
};

/*
 * The whole status as it should be, new. Unknown members of `before` are kept; so are the NICs while nothing is observed.
 * Equal inputs give equal values, and nothing in it counts or names the step that runs: it changes only when the state of
 * the node, the plan or the troubles do.
 */
json_t *status_compose(const struct status_input *input);

#endif
