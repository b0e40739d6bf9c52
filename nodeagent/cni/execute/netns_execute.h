// SPDX-License-Identifier: Apache-2.0
/* Carry out steps (nodeagent/cni/plan/steps.h) in the pod's namespace and the node's. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "nodeagent/netlink/netns.h"

struct netns_pair {
	struct netns *pod, *host; /* pod may be NULL: its steps count as done */
};

/*
 * Steps that follow each other in one namespace go to the kernel together. What is there already,
 * and what is gone already, is no error. ret_done (an array, or NULL): steps that changed something
 * are appended. Stops behind the messages sent together with the first that fails; settings of a
 * VF ("vf") are sent before what follows them.
 *
 * ERR_HOST "StepRefused"  the kernel refused; the text has the step and the kernel's words
 */
int netns_execute(const struct netns_pair *pair, const json_t *steps, json_t *ret_done,
		  struct err *err);

/*
 * All of them, whatever fails: for the way back. Returns how many failed; err is the first failure.
 */
int netns_execute_all(const struct netns_pair *pair, const json_t *steps, struct err *err);
