/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Phases of pods, for all that gives a pod something or waits for its end: addresses, drains,
 * injection, the command line.
 */
#include "reconcilers/core/pod.h"

#include "lib/base/str.h"
#include "lib/json/json.h"

bool pod_has_terminated(const json_t *pod)
{
	const char *phase = json_str_at(pod, "status", "phase");

	return str_eq(phase, "Failed") || str_eq(phase, "Succeeded");
}
