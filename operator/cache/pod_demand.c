// SPDX-License-Identifier: Apache-2.0
/*
 * The manager reports each change and lets the mirror watch what is in demand. Numbers are kept
 * while objects come and go, so that no change looks at all configs or pools.
 */
#include "operator/cache/pod_demand.h"

#include <assert.h>

#include "lib/base/str.h"
#include "operator/cache/kinds.h"
#include "reconcilers/admission/pod_inject.h"
#include "reconcilers/ipam/allocate/assign.h"
#include "reconcilers/ipam/allocate/release.h"

static void note_group(void *arg, const char *group)
{
	*(bool *)arg = true;
}

static bool is_grouped(const json_t *config)
{
	bool grouped = false;

	pod_inject_groups(config, note_group, &grouped);
	return grouped;
}

void pod_demand_changed(struct pod_demand *demand, const char *kind, const json_t *old,
			const json_t *now)
{
	auto_inject_settings struct inject_settings settings = {0};

	if (str_eq(kind, KIND_MULTUS_CONFIG)) {
		assert(!is_grouped(old) || demand->grouped > 0);
		demand->grouped -= is_grouped(old);
		demand->grouped += is_grouped(now);
	} else if (str_eq(kind, KIND_IP_POOL)) {
		assert(!old || demand->pools > 0);
		demand->pools -= old != NULL;
		demand->pools += now != NULL;
	} else if (str_eq(kind, MIRROR_SPIDERPOOL_CONF) &&
		   inject_settings_read(now, &settings, NULL) == 0) {
		/* Settings that cannot be read change nothing, as for the webhook. */
		demand->injecting = settings.enabled;
	}
}

bool pod_demand_is_there(const struct pod_demand *demand)
{
	return demand->grouped > 0 || (demand->listening && demand->injecting);
}

void pod_demand_tell(const struct pod_demand *demand, struct mirror *mirror)
{
	mirror_want(mirror, KIND_POD, pod_demand_is_there(demand));
	mirror_want(mirror, KIND_BOUND_POD, demand->pools > 0);
	mirror_want(mirror, KIND_RESOURCE_QUOTA, demand->pools > 0);
}
