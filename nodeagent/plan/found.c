// SPDX-License-Identifier: Apache-2.0
/*
 * How PFs were before their first step: kept in the plan, on the disk before that step.
 */
#include "nodeagent/plan/planner_internal.h"

/* Is it the same card in the slot? What one of both does not tell is no evidence. */
static bool is_same_card(const json_t *found, const struct pf_now *now)
{
	const struct {
		const json_t *then, *now;
	} marks[] = {
		{json_at(found, "vendor"), json_at(now->entry, "vendor")},
		{json_at(found, "deviceID"), json_at(now->entry, "deviceID")},
		{json_at(found, "permanentMac"), json_at(now->entry, "host", "permanentMac")},
	};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (marks[i].then && marks[i].now && !json_same(marks[i].then, marks[i].now))
			return false;
	return true;
}

const json_t *found_pf(const struct planning *p, const struct pf_now *now)
{
	const json_t *found = json_at(p->found, "pfs", now->address);

	return found && is_same_card(found, now) ? found : NULL;
}

static void keep(json_t *found, const char *key, json_t *value)
{
	if (value)
		json_put(found, key, json_deep_copy(value));
}

/* Only VFs that were there before us can have one. */
static json_t *overrides_of(const struct pf_now *now)
{
	json_t *ret = json_object(), *vf;
	size_t i;

	json_array_foreach (json_at(now->entry, "Vfs"), i, vf) {
		const char *address = json_str_at(vf, "pciAddress");

		if (address)
			keep(ret, address, json_at(vf, "host", "driverOverride"));
	}
	return ret;
}

void found_remember(struct planning *p, const struct pf_now *now)
{
	static const char *const of_pf[] = {"numVfs",         "mtu",    "eSwitchMode",
					    "linkAdminState", "vendor", "deviceID"};
	static const char *const of_host[] = {"driversAutoprobe", "udevRules", "permanentMac"};
	json_t *found;

	if (found_pf(p, now))
		return;
	found = json_object();
	for (size_t i = 0; i < ARRAY_LEN(of_pf); i++)
		keep(found, of_pf[i], json_at(now->entry, of_pf[i]));
	for (size_t i = 0; i < ARRAY_LEN(of_host); i++)
		keep(found, of_host[i], json_at(now->entry, "host", of_host[i]));
	json_put(found, "overrides", overrides_of(now));
	if (now->may_have_vfs)
		json_put_bool(found, "allowPrimaryNic", true);
	json_put(json_need_object(p->found, "pfs"), now->address, found);
}
