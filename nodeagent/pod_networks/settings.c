// SPDX-License-Identifier: Apache-2.0
/*
 * One document from a SpiderCoordinator and a pod: settings_reader.c reads both and calls this, the
 * coordinator plugin obeys the answer. A coordinator that is not synchronized is an error, because
 * routes without the cluster's ranges would cut off the pod.
 */
#include "nodeagent/pod_networks/settings.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"

static const json_t *choose_coordinator(const json_t *coordinators)
{
	const json_t *chosen = NULL, *item;
	size_t i;

	json_array_foreach ((json_t *)coordinators, i, item) {
		if (str_eq(json_name(item), "default"))
			return item;
		if (!chosen || strcmp(json_name(item), json_name(chosen)) < 0)
			chosen = item;
	}
	return chosen;
}

static json_t *list_of(const json_t *list)
{
	return json_is_array(list) ? json_deep_copy(list) : json_array();
}

json_t *settings_of(const json_t *coordinators, const json_t *pod, struct err *err)
{
	static const char *const copied[] = {
		"hijackCIDR",         "policyRoutes",    "podMACPrefix",
		"podDefaultRouteNIC", "hostRuleTable",   "podRPFilter",
		"txQueueLen",         "vethLinkAddress", "vethMTU",
	};
	const json_t *coordinator = choose_coordinator(coordinators), *tune;
	const char *nic = json_str_at(pod, "metadata", "annotations", SETTINGS_DEFAULT_ROUTE_NIC);
	json_t *settings;

	if (!coordinator) {
		(void)err_set(
			err, ERR_TRANSIENT, "NoCoordinator",
			"the cluster has no SpiderCoordinator: the operator makes the one called "
			"default half a minute after its start; if it does not run, create it");
		return NULL;
	}
	if (!str_eq(json_str_at(coordinator, "status", "phase"), "Synced")) {
		(void)err_set(
			err, ERR_TRANSIENT, "CoordinatorNotReady",
			"SpiderCoordinator %s does not know the cluster's address ranges: %s; "
			"see its status",
			json_name(coordinator),
			json_str_or(json_at(coordinator, "status", "reason"),
				    "its status is empty"));
		return NULL;
	}
	settings = json_object();
	json_put_str(settings, "mode", json_str_or(json_at(coordinator, "spec", "mode"), "auto"));
	tune = json_at(coordinator, "spec", "tunePodRoutes");
	json_put_bool(settings, "tunePodRoutes", tune ? json_is_true(tune) : true);
	json_put(settings, "overlayPodCIDR",
		 list_of(json_at(coordinator, "status", "overlayPodCIDR")));
	json_put(settings, "serviceCIDR", list_of(json_at(coordinator, "status", "serviceCIDR")));
	for (size_t i = 0; i < ARRAY_LEN(copied); i++)
		json_put(settings, copied[i], json_incref(json_at(coordinator, "spec", copied[i])));
	if (!str_empty(nic))
		json_put_str(settings, "podDefaultRouteNIC", nic);
	if (!str_empty(json_str_at(pod, "metadata", "annotations", SETTINGS_MIGRATION)))
		json_put_bool(settings, "migrating", true);
	return settings;
}
