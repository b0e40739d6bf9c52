// SPDX-License-Identifier: Apache-2.0
/*
 * What NodeState.spec wants of one PF. The operator has checked policies before; what it cannot
 * know is found here, and a wrong entry costs only its own PF or group.
 */
#include "nodeagent/plan/planner_internal.h"

#include <string.h>
#include <strings.h>

/* PCI has no such number of VFs; what the PF can have is less. */
#define NUM_VFS_MAX 65535

void pf_wish_done(struct pf_wish *wish)
{
	free(wish->groups);
	*wish = (struct pf_wish){0};
}

const struct vf_group *pf_wish_group(const struct pf_wish *wish, int vf)
{
	for (size_t i = 0; i < wish->n_groups; i++)
		if (vf >= wish->groups[i].first && vf <= wish->groups[i].last)
			return &wish->groups[i];
	return NULL;
}

/* "0-7". */
static bool parse_range(const char *text, int *ret_first, int *ret_last)
{
	const char *dash = text ? strchr(text, '-') : NULL;
	auto_free char *first = dash ? str_ndup(text, (size_t)(dash - text)) : NULL;
	int64_t a, b;

	if (!dash || !str_to_int(first, 0, NUM_VFS_MAX, &a) ||
	    !str_to_int(dash + 1, a, NUM_VFS_MAX, &b))
		return false;
	*ret_first = (int)a;
	*ret_last = (int)b;
	return true;
}

/* 0 and absent: whatever it is. */
static bool read_mtu(const json_t *object, int *ret, struct err *err)
{
	int64_t mtu;

	if (json_get_int(object, "", "mtu", 0, STEP_MTU_MAX, 0, &mtu, err) < 0)
		return false;
	if (mtu > 0 && mtu < STEP_MTU_MIN) {
		(void)err_set(err, ERR_INVALID, "BadField", "mtu: %d is less than %d", (int)mtu,
			      STEP_MTU_MIN);
		return false;
	}
	*ret = (int)mtu;
	return true;
}

/* All of the range's have to be GUIDs. */
static bool read_guid(const json_t *spec, struct vf_group *ret, struct err *err)
{
	const char *text;
	uint64_t start;

	if (json_get_str(spec, "", "guidStart", "", &text, err) < 0)
		return false;
	if (!*text)
		return true;
	if (!text_to_guid(text, &start) || start == 0 ||
	    start >= UINT64_MAX - (uint64_t)(ret->last - ret->first)) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "guidStart: \"%.40s\" is not the first of a range of GUIDs, for "
			      "example 02:0c:42:a1:66:a1:b2:00",
			      text);
		return false;
	}
	ret->guid_start = start;
	return true;
}

static bool read_group(const json_t *spec, struct vf_group *ret, struct err *err)
{
	const char *range = json_str_at(spec, "vfRange"), *type;

	*ret = (struct vf_group){.first = 0, .last = -1, .spec = spec, .is_usable = true};
	if (!parse_range(range, &ret->first, &ret->last)) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "vfRange: \"%.40s\" is not FIRST-LAST, for example 0-7",
			      range ? range : "");
		return false;
	}
	if (json_get_str(spec, "", "deviceType", "netdevice", &type, err) < 0 ||
	    json_get_bool(spec, "", "isRdma", false, &ret->is_rdma, err) < 0 ||
	    !read_mtu(spec, &ret->mtu, err))
		return false;
	if (*type && !str_eq(type, "netdevice") && !str_eq(type, "vfio-pci")) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "deviceType: \"%.40s\" is neither netdevice nor vfio-pci", type);
		return false;
	}
	ret->is_vfio = str_eq(type, "vfio-pci");
	return read_guid(spec, ret, err);
}

static bool read_groups(struct planning *p, const json_t *entry, struct pf_wish *ret,
			struct err *err)
{
	const json_t *list;
	json_t *group;
	size_t i;

	if (json_get_array(entry, "", "vfGroups", &list, err) < 0)
		return false;
	if (json_array_size(list) > GROUPS_MAX) {
		(void)err_set(err, ERR_INVALID, "BadField", "vfGroups: more than %d", GROUPS_MAX);
		return false;
	}
	ret->groups = mem_calloc(json_array_size(list) + 1, sizeof(*ret->groups));
	json_array_foreach ((json_t *)list, i, group) {
		struct vf_group *g = &ret->groups[ret->n_groups];
		struct err wrong = {0};

		if (!read_group(group, g, &wrong)) {
			steps_problem(
				p, ret->address, "BadSpec",
				"vfGroups[%zu].%s: these VFs are left alone; correct the policy", i,
				wrong.text);
			/* Its VFs, as far as they are known, are not another group's. */
			g->is_usable = false;
			g->mtu = 0;
		}
		if (g->mtu > ret->mtu)
			ret->mtu = g->mtu;
		ret->n_groups++;
	}
	return true;
}

static bool read_words(const json_t *entry, struct pf_wish *ret, struct err *err)
{
	const char *link, *eswitch;

	if (json_get_str(entry, "", "linkType", "", &link, err) < 0 ||
	    json_get_str(entry, "", "eSwitchMode", "", &eswitch, err) < 0 ||
	    json_get_bool(entry, "", "externallyManaged", false, &ret->is_external, err) < 0 ||
	    json_get_bool(entry, "", "allowLagLoss", false, &ret->allows_lag_loss, err) < 0 ||
	    json_get_bool(entry, "", "allowPrimaryNic", false, &ret->allows_primary, err) < 0 ||
	    json_get_bool(entry, "", "allowFirmware", false, &ret->allows_firmware, err) < 0)
		return false;
	if (*link && strcasecmp(link, "eth") != 0 && strcasecmp(link, "ib") != 0) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "linkType: \"%.40s\" is neither eth nor ib", link);
		return false;
	}
	if (*eswitch && !str_eq(eswitch, "legacy") && !str_eq(eswitch, "switchdev")) {
		(void)err_set(err, ERR_INVALID, "BadField",
			      "eSwitchMode: \"%.40s\" is neither legacy nor switchdev", eswitch);
		return false;
	}
	ret->link = !*link ? NULL : strcasecmp(link, "ib") == 0 ? "IB" : "ETH";
	ret->eswitch = *eswitch ? eswitch : NULL;
	return true;
}

bool pf_wish_read(struct planning *p, const json_t *entry, struct pf_wish *ret)
{
	auto_wish struct pf_wish wish = {.address = json_str_at(entry, "pciAddress")};
	struct err err = {0};
	int64_t count;

	if (!wish.address) {
		steps_problem(p, NULL, "BadSpec",
			      "an entry of spec.interfaces has no pciAddress: correct the policy");
		return false;
	}
	if (json_get_int(entry, "", "numVfs", 0, NUM_VFS_MAX, 0, &count, &err) < 0 ||
	    !read_mtu(entry, &wish.mtu, &err) || !read_words(entry, &wish, &err) ||
	    !read_groups(p, entry, &wish, &err)) {
		steps_problem(p, wish.address, "BadSpec",
			      "%s: the PF is left alone; correct the policy", err.text);
		return false;
	}
	wish.num_vfs = (int)count;
	wish.entry = observed_pf(p, wish.address);
	*ret = wish;
	wish.groups = NULL;
	return true;
}
