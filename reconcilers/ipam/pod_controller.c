// SPDX-License-Identifier: Apache-2.0
/*
 * What the pod's own metadata and phase tell, so that no owner has to be read. Endpoints record
 * the controller, filters compare it, and whether a pod keeps its addresses depends on it.
 */
#include "reconcilers/ipam/pod_controller.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/names.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "reconcilers/core/owner.h"
#include "reconcilers/core/pod.h"
#include "reconcilers/ipam/endpoint.h"

#define VMI "VirtualMachineInstance"

struct pod_controller pod_controller(const json_t *pod)
{
	const json_t *owner = owner_controller(pod);
	const char *hash = json_str_at(pod, "metadata", "labels", "pod-template-hash");
	struct pod_controller top = {.api_version = "v1", .kind = "Pod"};
	const char *name = json_name(pod);

	if (owner) {
		top.api_version = json_str_or(json_at(owner, "apiVersion"), "");
		top.kind = json_str_or(json_at(owner, "kind"), "");
		name = json_str_or(json_at(owner, "name"), "");
	}
	(void)snprintf(top.name, sizeof(top.name), "%s", name);
	if (hash && str_eq(top.kind, "ReplicaSet") && str_eq(top.api_version, "apps/v1")) {
		size_t len = strlen(top.name), tail = strlen(hash);

		if (len > tail + 1 && top.name[len - tail - 1] == '-' && str_ends(top.name, hash)) {
			top.name[len - tail - 1] = '\0';
			top.kind = "Deployment";
		}
	}
	return top;
}

const char *pod_machine(const json_t *pod)
{
	const json_t *owner = owner_controller(pod);

	const char *name = json_str_or(json_at(owner, "name"), "");

	if (!str_eq(json_str_at(owner, "kind"), VMI) ||
	    !str_starts(json_str_or(json_at(owner, "apiVersion"), ""), "kubevirt.io/"))
		return NULL;
	/* The API server takes any text there; the SpiderEndpoint of this name could not be. */
	return name_is_dns_subdomain(name) ? name : NULL;
}

bool pod_is_successor(const json_t *pod, const json_t *endpoint)
{
	const char *machine = pod_machine(pod);
	const char *uid = json_str_or(json_at(endpoint, "status", "current", "uid"), "");

	return machine && str_eq(machine, json_name(endpoint)) && *uid &&
	       !str_eq(uid, json_uid(pod));
}

bool pod_is_of_instance(const json_t *pod, const json_t *instance)
{
	const char *uid = json_uid(instance);

	return !str_empty(uid) && str_eq(json_str_at(owner_controller(pod), "uid"), uid) &&
	       json_object_get(json_at(instance, "status", "activePods"), json_uid(pod));
}

bool pod_keeps_addresses(const json_t *pod, const struct ipam_settings *settings)
{
	struct pod_controller top = pod_controller(pod);

	if (settings->keeps_stateful_sets && str_eq(top.kind, "StatefulSet") &&
	    str_eq(top.api_version, "apps/v1"))
		return true;
	return settings->keeps_virtual_machines && pod_machine(pod);
}

const char *pod_endpoint_name(const json_t *pod, const struct ipam_settings *settings)
{
	const char *machine = settings->keeps_virtual_machines ? pod_machine(pod) : NULL;

	assert(pod && settings);
	return machine ? machine : json_name(pod);
}

bool pod_is_alive(const json_t *pod)
{
	return pod && !object_is_terminating(pod) && !pod_has_terminated(pod);
}

enum pod_sandbox pod_sandbox(const json_t *pod)
{
	const char *phase = json_str_or(json_at(pod, "status", "phase"), "Pending");

	if (str_eq(phase, "Running") || !str_empty(json_str_at(pod, "status", "podIP")))
		return POD_SANDBOX_MADE;
	return str_eq(phase, "Pending") ? POD_SANDBOX_NONE : POD_SANDBOX_UNKNOWN;
}

bool pod_is_down(const json_t *pod, const json_t *endpoint, const char *uid)
{
	return endpoint_is_down(endpoint, uid) &&
	       !(pod_is_alive(pod) && pod_sandbox(pod) == POD_SANDBOX_MADE);
}

int pod_need_alive(const json_t *pod, struct err *err)
{
	if (pod_is_alive(pod))
		return 0;
	return err_set(err, ERR_INVALID, "PodEnded",
		       "pod %s/%s has ended or is being deleted: it gets no addresses",
		       json_namespace(pod), json_name(pod));
}
