// SPDX-License-Identifier: Apache-2.0
/*
 * SR-IOV pools from the VF groups of NodeState.spec: groups with one resource name share a pool, on
 * one PF or many.
 */
#include <string.h>

#include "lib/base/str.h"
#include "lib/json/json.h"
#include "nodeagent/devices/pools_internal.h"

static const char SOURCE[] = "the SR-IOV policies";

/* One group of one PF, read. */
struct group {
	const json_t *entry; /* of spec.interfaces */
	const char *address; /* of the PF */
	int64_t first, last;
	struct pools_wants wants;
	const char *vdpa_type;
};

static int read_range(const json_t *group, int64_t num_vfs, struct group *ret, struct err *err)
{
	auto_free char *first = NULL;
	const char *range, *dash;

	if (json_get_str(group, "", "vfRange", "", &range, err) < 0)
		return -1;
	if (*range) {
		dash = strchr(range, '-');
		first = str_ndup(range, dash ? (size_t)(dash - range) : strlen(range));
		if (str_to_int(first, 0, POOLS_VFS_MAX, &ret->first) &&
		    str_to_int(dash ? dash + 1 : range, ret->first, POOLS_VFS_MAX, &ret->last))
			return 0;
		return err_set(err, ERR_INVALID, "BadField",
			       "vfRange: \"%.64s\" is no range of VFs, like \"0-7\"", range);
	}
	ret->first = 0;
	ret->last = num_vfs - 1;
	return 0;
}

static int read_group(const json_t *entry, const json_t *group, struct group *ret,
		      const char **ret_name, struct err *err)
{
	int64_t num_vfs;

	*ret = (struct group){.entry = entry};
	if (json_get_str(entry, "", "pciAddress", "", &ret->address, err) < 0 ||
	    json_get_int(entry, "", "numVfs", 0, POOLS_VFS_MAX, 0, &num_vfs, err) < 0 ||
	    json_get_str(group, "", "resourceName", "", ret_name, err) < 0 ||
	    json_get_str(group, "", "deviceType", "netdevice", &ret->wants.device_type, err) < 0 ||
	    json_get_str(group, "", "vdpaType", "", &ret->vdpa_type, err) < 0 ||
	    json_get_bool(group, "", "isRdma", false, &ret->wants.rdma, err) < 0 ||
	    json_get_bool(group, "", "needVhostNet", false, &ret->wants.vhost_net, err) < 0 ||
	    json_get_bool(group, "", "excludeTopology", false, &ret->wants.exclude_topology, err) <
		    0)
		return -1;
	if (*ret->wants.device_type == '\0')
		ret->wants.device_type = "netdevice";
	if (!str_eq(ret->wants.device_type, "netdevice") &&
	    !str_eq(ret->wants.device_type, "vfio-pci"))
		return err_set(err, ERR_INVALID, "BadField",
			       "deviceType: \"%.64s\" is unknown, must be netdevice or vfio-pci",
			       ret->wants.device_type);
	return read_range(group, num_vfs, ret, err);
}

static bool in_range(const struct group *group, const struct pools_function *function)
{
	return function->pf && function->number >= group->first &&
	       function->number <= group->last &&
	       str_eq(json_str_at(function->pf, "pciAddress"), group->address);
}

/* Returns how many VFs of the group are there. A PF's VFs follow it in the index. */
static int64_t offer_vfs(struct pools *pools, struct pool *pool, const struct group *group,
			 const struct pools_function *pf)
{
	const struct pools_function *end = pools->functions + pools->n_functions;
	int64_t present = 0;

	for (const struct pools_function *vf = pf + 1; vf < end && vf->pf == pf->seen; vf++) {
		const struct pool *other = map_get(&pools->claimed, vf->address);
		const char *protected = pools_protected(pools, vf);

		if (!in_range(group, vf))
			continue;
		present++;
		if (other)
			pool_cause(pool, "%s: it is offered as %s already", vf->address,
				   json_str_at(other->resource, "name"));
		else if (protected)
			pool_cause(pool, "%s: not offered, it %s", vf->address, protected);
		else
			pools_add_function(pools, pool, vf, &group->wants);
	}
	return present;
}

static void explain_missing(struct pool *pool, const struct group *group,
			    const struct pools_function *pf, int64_t present, int64_t wanted)
{
	const char *message = json_str_at(pf->seen, "message");
	bool external = json_is_true(json_at(group->entry, "externallyManaged"));

	if (present >= wanted)
		return;
	if (present == 0 && message) {
		pool_cause(pool, "%s: %s", pf->address, message);
		return;
	}
	pool_cause(pool, "%s (%s): %lld of %lld VFs are not there%s", pf->address,
		   json_str_or(json_at(pf->seen, "name"), "no interface"),
		   (long long)(wanted - present), (long long)wanted,
		   external ? "; whoever manages this PF has to make them" : " yet");
}

/* A PF that is gone for a moment comes back with its VFs, and pods that have them go on. */
static void keep_missing(struct pools *pools, struct pool *pool, const struct group *group,
			 const json_t *pf)
{
	json_t *vf;
	size_t i;

	json_array_foreach (json_at(pf, "Vfs"), i, vf) {
		const json_t *number = json_at(vf, "vfID");
		const struct pools_function function = {
			.address = json_str_at(vf, "pciAddress"),
			.seen = vf,
			.pf = pf,
			.number = json_is_integer(number) ? json_integer_value(number) : -1,
		};

		if (function.address && in_range(group, &function) &&
		    !map_get(&pools->by_address, function.address) &&
		    !map_get(&pools->claimed, function.address) &&
		    !pools_protected(pools, &function))
			pools_add_gone(pools, pool, function.address,
				       "its PF has vanished and is waited for");
	}
}

static void offer_group(struct pools *pools, struct pool *pool, const struct group *group)
{
	const struct pools_function *pf = map_get(&pools->by_address, group->address);
	const json_t *missing =
		json_find(json_at(pools->input->observed, "missing"), "pciAddress", group->address);
	int64_t wanted = group->last - group->first + 1;

	pool->wanted += wanted;
	if (missing && !*group->vdpa_type)
		keep_missing(pools, pool, group, missing);
	if (*group->vdpa_type)
		pool_cause(pool,
			   "%s: VFs %lld-%lld: vdpaType %.32s: vDPA devices are not offered; "
			   "leave vdpaType out of the policy",
			   group->address, (long long)group->first, (long long)group->last,
			   group->vdpa_type);
	else if (!pf || pf->pf)
		pool_cause(pool, "%s (%s): %s", group->address,
			   json_str_or(json_at(group->entry, "name"), "no name"),
			   missing ? "it has vanished and is waited for"
				   : "no such PF on this node");
	else
		explain_missing(pool, group, pf, offer_vfs(pools, pool, group, pf), wanted);
}

static void add_group(struct pools *pools, const json_t *entry, const json_t *json)
{
	const char *name = NULL;
	struct group group;
	struct err err = {0};
	struct pool *pool;

	if (read_group(entry, json, &group, &name, &err) < 0) {
		pools_problem(pools, NULL, "BadSpec", "interface %s: vfGroups: %s",
			      json_str_or(json_at(entry, "pciAddress"), "?"), err.text);
		return;
	}
	/* Configured, and not to be offered. */
	if (!*name)
		return;
	pool = pools_need(pools, pools->input->prefix, name, "sriov", SOURCE, true);
	if (!pool)
		return;
	pool_add_env(pool);
	offer_group(pools, pool, &group);
}

void pools_from_groups(struct pools *pools)
{
	json_t *entry, *group;
	size_t i, j;

	json_array_foreach (json_at(pools->input->spec, "interfaces"), i, entry)
		json_array_foreach (json_at(entry, "vfGroups"), j, group)
			add_group(pools, entry, group);
}
