// SPDX-License-Identifier: Apache-2.0
/*
 * What the operator and `orbweaver plan` say of a change beforehand is what the agent's planner
 * waits for: two decisions on the same host, one made of the NodeState alone, compared for many
 * hosts and changes made by chance.
 */
#include "tests/support/test.h"

#include <stdio.h>

#include "lib/base/err.h"
#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/host_plan/impact.h"
#include "nodeagent/host_plan/planner.h"
#include "nodeagent/model/observed.h"
#include "reconcilers/sriov/impact.h"

enum { CASES = 4000, PFS = 2, VFS_TOTAL = 4 };

/* Equal numbers in each run: a linear congruential generator (POSIX, rand()). */
static uint32_t state_of_chance = 1;

static int chance(int below)
{
	state_of_chance = state_of_chance * 1103515245u + 12345u;
	return (int)((state_of_chance >> 16) % (uint32_t)below);
}

/* ---- a host ---------------------------------------------------------------------------------- */

static json_t *vf_of(int pf, int number, json_t *held)
{
	static const char *const drivers[] = {"igbvf", "igbvf", "vfio-pci", NULL};
	auto_free char *address = str_printf("0000:%02x:10.%d", pf, number);
	json_t *vf = json_pack("{s:i, s:s, s:s, s:{s:b}}", "vfID", number, "pciAddress", address,
			       "mac", "02:00:00:00:00:01", "host", "inUse", 0);

	json_put_str(vf, "driver", drivers[chance(ARRAY_LEN(drivers))]);
	if (str_eq(json_str_at(vf, "driver"), "igbvf"))
		json_put_str(vf, "name", "v");
	if (chance(3) == 0)
		json_put(held, address, json_fmt("ml/p%d/c", chance(3)));
	return vf;
}

static json_t *pf_of(int pf, json_t *held)
{
	json_t *ret = json_object(), *vfs = json_array();
	int n = chance(VFS_TOTAL + 1);

	for (int i = 0; i < n; i++)
		json_array_append_new(vfs, vf_of(pf, i, held));
	json_put(ret, "pciAddress", json_fmt("0000:%02x:00.0", pf));
	json_put(ret, "name", json_fmt("enp%ds0", pf));
	json_put_str(ret, "driver", "igb");
	json_put_str(ret, "linkType", "ETH");
	json_put_str(ret, "linkAdminState", "up");
	json_put_str(ret, "eSwitchMode", chance(3) ? "legacy" : "switchdev");
	json_put_int(ret, "mtu", 1500 + 500 * chance(2));
	json_put_int(ret, "numVfs", n);
	json_put_int(ret, "totalvfs", VFS_TOTAL);
	json_put(ret, "Vfs", vfs);
	json_put(ret, "host", json_pack("{s:b, s:b}", "devlink", 1, "driversAutoprobe", chance(2)));
	return ret;
}

/* Who has what is told to the planner by the kubelet, `held`. */
static json_t *host_of(json_t *held)
{
	json_t *interfaces = json_array();

	for (int pf = 1; pf <= PFS; pf++)
		json_array_append_new(interfaces, pf_of(pf, held));
	return json_pack("{s:o, s:{s:b, s:[{s:s}]}}", "interfaces", interfaces, "node", "iommu", 1,
			 "modules", "name", "vfio_pci");
}

/* The same as the NodeState tells it. */
static json_t *status_of(const json_t *observed, const json_t *held)
{
	json_t *pods = json_array(), *pod;
	const char *device;

	json_each ((json_t *)held, device, pod)
		json_array_append_new(pods, json_pack("{s:s, s:O}", "device", device, "pod", pod));
	return json_pack("{s:o, s:[{s:s, s:s, s:i, s:o}]}", "interfaces",
			 observed_status_interfaces(observed), "resources", "name",
			 "spidernet.io/rail", "kind", "sriov", "allocated",
			 (int)json_object_size(held), "pods", pods);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static json_t *group_of(int first, int last)
{
	json_t *group = json_object();

	json_put(group, "vfRange", json_fmt("%d-%d", first, last));
	json_put_str(group, "deviceType", chance(3) ? "netdevice" : "vfio-pci");
	json_put_str(group, "resourceName", chance(2) ? "rail" : "other");
	if (chance(2))
		json_put_int(group, "mtu", 1500 + 500 * chance(2));
	return group;
}

static json_t *wish_of(int pf)
{
	static const char *const modes[] = {NULL, "legacy", "switchdev"};
	static const char *const types[] = {NULL, NULL, "eth", "ib"};
	int n = chance(VFS_TOTAL + 2), split = n > 1 ? chance(n) : 0;
	json_t *wish = json_object(), *groups = json_array();

	json_put(wish, "pciAddress", json_fmt("0000:%02x:00.0", pf));
	json_put_int(wish, "numVfs", n);
	json_put_str(wish, "eSwitchMode", modes[chance(ARRAY_LEN(modes))]);
	json_put_str(wish, "linkType", types[chance(ARRAY_LEN(types))]);
	if (chance(8) == 0)
		json_put_bool(wish, "externallyManaged", true);
	if (split > 0)
		json_array_append_new(groups, group_of(0, split - 1));
	if (n > 0 && chance(4))
		json_array_append_new(groups, group_of(split, n - 1));
	json_put(wish, "vfGroups", groups);
	return wish;
}

static json_t *spec_of(void)
{
	json_t *interfaces = json_array();

	for (int pf = 1; pf <= PFS; pf++)
		if (chance(4))
			json_array_append_new(interfaces, wish_of(pf));
	return json_pack("{s:o}", "interfaces", interfaces);
}

/*
 * PFs of the spec before have its mode; they had no VFs before it, and mode legacy if it says one:
 * what the NodeState does not tell is as with all NICs after a boot.
 */
static json_t *found_of(const json_t *before, json_t *observed)
{
	json_t *pfs = json_object(), *wish;
	size_t i;

	json_array_foreach (json_at(before, "interfaces"), i, wish) {
		const char *address = json_str_at(wish, "pciAddress");
		const char *mode = json_str_at(wish, "eSwitchMode");
		json_t *pf = json_find(json_at(observed, "interfaces"), "pciAddress", address);

		if (json_is_true(json_at(wish, "externallyManaged")))
			continue;
		json_put(pfs, address,
			 json_pack("{s:i, s:i, s:s, s:b}", "numVfs", 0, "mtu", 1500, "eSwitchMode",
				   mode ? "legacy" : json_str_at(pf, "eSwitchMode"),
				   "driversAutoprobe", 1));
		if (mode)
			json_put_str(pf, "eSwitchMode", mode);
	}
	return json_pack("{s:o}", "pfs", pfs);
}

/* ---- both of it ------------------------------------------------------------------------------ */

/* {"class", "pods": {"ml/p0 0000:01:10.2": true}}; takes impact. */
static json_t *gist(json_t *impact)
{
	json_t *pods = json_object(), *pod, *ret;
	size_t i;

	json_array_foreach (json_at(impact, "pods"), i, pod) {
		auto_free char *key =
			str_printf("%s %s", json_str_at(pod, "pod"), json_str_at(pod, "device"));

		json_put_bool(pods, key, true);
	}
	ret = json_pack("{s:s, s:o}", "class", json_str_at(impact, "class"), "pods", pods);
	json_decref(impact);
	return ret;
}

TEST(they_say_the_same)
{
	size_t evicting = 0;

	for (int i = 0; i < CASES; i++) {
		json_auto_t *held = json_object(), *observed = host_of(held);
		json_auto_t *before = spec_of(), *found = found_of(before, observed);
		json_auto_t *status = status_of(observed, held), *spec = spec_of();
		json_auto_t *said = gist(node_impact(before, spec, status)), *is = NULL;
		json_auto_t *plan = NULL;
		struct err err = {0};

		plan = planner_plan(
			&(struct planner_input){
				.spec = spec, .observed = observed, .found = found, .held = held},
			&err);
		assert_non_null(plan);
		is = gist(plan_impact(plan, false));
		if (!json_same(said, is)) {
			json_auto_t *all =
				json_pack("{s:O, s:O, s:O, s:O, s:O, s:O, s:O}", "before", before,
					  "spec", spec, "observed", observed, "held", held, "said",
					  said, "is", is, "plan", plan);
			auto_free char *text = json_text(all);

			(void)fprintf(stderr, "case %d: %s\n", i, text);
			fail();
		}
		evicting += str_eq(json_str_at(said, "class"), "evict");
	}
	assert_in_range(evicting, CASES / 10, CASES - CASES / 10);
}
