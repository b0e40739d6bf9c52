// SPDX-License-Identifier: Apache-2.0
/* Statuses of pods. pods.c of cli/simulate/nodes writes them. */
#include "cli/simulate/decide/pod_status.h"

#include <string.h>

#include "lib/base/own.h"
#include "lib/base/str.h"
#include "lib/json/condition.h"
#include "lib/json/json.h"

static json_t *statuses_of(const json_t *containers, json_t *state)
{
	json_auto_t *owned = state;
	json_t *list = json_array(), *container;
	bool runs = json_at(state, "running") != NULL;
	size_t i;

	json_array_foreach (containers, i, container) {
		const char *image = json_str_or(json_at(container, "image"), "");

		json_array_append_new(
			list,
			json_pack("{s:s, s:s, s:s, s:o, s:b, s:b, s:i, s:O}", "name",
				  json_str_or(json_at(container, "name"), ""), "image", image,
				  "imageID", "", "containerID",
				  json_fmt("simulated://%016llx",
					   (unsigned long long)str_hash(image, strlen(image)) + i),
				  "ready", 1, "started", runs, "restartCount", 0, "state", owned));
	}
	return list;
}

json_t *pod_status_running(const json_t *pod, const char *host_ip, const char *pod_ip,
			   const char *now)
{
	static const char *const types[] = {"PodScheduled", "Initialized", "ContainersReady",
					    "Ready"};
	json_t *status = json_pack("{s:s, s:s, s:s, s:[{s:s}], s:s, s:[]}", "phase", "Running",
				   "hostIP", host_ip, "podIP", pod_ip, "podIPs", "ip", pod_ip,
				   "startTime", now, "conditions");

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		json_array_append_new(json_at(status, "conditions"),
				      json_pack("{s:s, s:s, s:s}", "type", types[i], "status",
						"True", "lastTransitionTime", now));
	json_put(status, "containerStatuses",
		 statuses_of(json_at(pod, "spec", "containers"),
			     json_pack("{s:{s:s}}", "running", "startedAt", now)));
	if (json_at(pod, "spec", "initContainers"))
		json_put(status, "initContainerStatuses",
			 statuses_of(json_at(pod, "spec", "initContainers"),
				     json_pack("{s:{s:i, s:s, s:s}}", "terminated", "exitCode", 0,
					       "reason", "Completed", "finishedAt", now)));
	return status;
}

json_t *pod_status_unschedulable(const json_t *pod, const char *message, const char *now)
{
	const json_t *before = condition_find(json_at(pod, "status", "conditions"), "PodScheduled");
	const char *since = str_eq(json_str_at(before, "status"), "False")
				    ? json_str_at(before, "lastTransitionTime")
				    : NULL;

	return json_pack("{s:s, s:[{s:s, s:s, s:s, s:s, s:s}]}", "phase", "Pending", "conditions",
			 "type", "PodScheduled", "status", "False", "reason", "Unschedulable",
			 "message", message, "lastTransitionTime", since ? since : now);
}
