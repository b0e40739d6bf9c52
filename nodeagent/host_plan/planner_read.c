// SPDX-License-Identifier: Apache-2.0
/*
 * The PFs of a plan, each built once: what NodeState.spec wants of it, what was observed, how it
 * was found, and its VFs. The operator has checked policies before; what it cannot know is found
 * here, and a wrong entry costs only its own PF or group.
 */
#include "nodeagent/host_plan/planner_internal.h"

#include <string.h>
#include <strings.h>

/* PCI has no such number of VFs; what the PF can have is less. */
#define NUM_VFS_MAX 65535

/* ---- what spec wants ------------------------------------------------------------------------- */

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
static int read_mtu(const json_t *object, int *ret, struct err *err)
{
	int64_t mtu;

	if (json_get_int(object, "", "mtu", 0, STEP_MTU_MAX, 0, &mtu, err) < 0)
		return -1;
	if (mtu > 0 && mtu < STEP_MTU_MIN)
		return err_set(err, ERR_INVALID, "BadField", "mtu: %d is less than %d", (int)mtu,
			       STEP_MTU_MIN);
	*ret = (int)mtu;
	return 0;
}

static int read_group(const json_t *spec, struct vf_group *ret, struct err *err)
{
	const char *range = json_str_at(spec, "vfRange"), *type, *guid;

	*ret = (struct vf_group){.first = 0, .last = -1, .spec = spec, .is_usable = true};
	if (!parse_range(range, &ret->first, &ret->last))
		return err_set(err, ERR_INVALID, "BadField",
			       "vfRange: \"%.40s\" is not FIRST-LAST, for example 0-7",
			       range ? range : "");
	if (json_get_str(spec, "", "deviceType", "netdevice", &type, err) < 0 ||
	    json_get_bool(spec, "", "isRdma", false, &ret->is_rdma, err) < 0 ||
	    read_mtu(spec, &ret->mtu, err) < 0)
		return -1;
	if (*type && !str_eq(type, "netdevice") && !str_eq(type, "vfio-pci"))
		return err_set(err, ERR_INVALID, "BadField",
			       "deviceType: \"%.40s\" is neither netdevice nor vfio-pci", type);
	ret->is_vfio = str_eq(type, "vfio-pci");
	if (json_get_str(spec, "", "guidStart", "", &guid, err) < 0)
		return -1;
	/* All of the range's have to be GUIDs. */
	if (*guid && (!text_to_guid(guid, &ret->guid_start) || ret->guid_start == 0 ||
		      ret->guid_start >= UINT64_MAX - (uint64_t)(ret->last - ret->first)))
		return err_set(err, ERR_INVALID, "BadField",
			       "guidStart: \"%.40s\" is not the first of a range of GUIDs, for "
			       "example 02:0c:42:a1:66:a1:b2:00",
			       guid);
	return 0;
}

static int read_groups(struct planning *p, const json_t *entry, struct pf *pf, struct err *err)
{
	const json_t *list;
	json_t *spec;
	size_t i;

	if (json_get_array(entry, "", "vfGroups", &list, err) < 0)
		return -1;
	if (json_array_size(list) > GROUPS_MAX)
		return err_set(err, ERR_INVALID, "BadField", "vfGroups: more than %d", GROUPS_MAX);
	pf->wanted.groups = mem_calloc(json_array_size(list) + 1, sizeof(*pf->wanted.groups));
	json_array_foreach ((json_t *)list, i, spec) {
		struct vf_group *group = &pf->wanted.groups[pf->wanted.n_groups++];
		struct err wrong = {0};

		if (read_group(spec, group, &wrong) < 0) {
			planner_problem(
				p, pf, "BadSpec",
				"vfGroups[%zu].%s: these VFs are left alone; correct the policy", i,
				wrong.text);
			/* Its VFs, as far as they are known, are not another group's. */
			group->is_usable = false;
			group->mtu = 0;
		}
		if (group->mtu > pf->wanted.mtu)
			pf->wanted.mtu = group->mtu;
	}
	return 0;
}

static int read_fields(const json_t *entry, struct pf *pf, struct err *err)
{
	struct pf_wanted *wanted = &pf->wanted;
	const char *link, *eswitch;
	int64_t count;

	if (json_get_int(entry, "", "numVfs", 0, NUM_VFS_MAX, 0, &count, err) < 0 ||
	    read_mtu(entry, &wanted->mtu, err) < 0 ||
	    json_get_str(entry, "", "linkType", "", &link, err) < 0 ||
	    json_get_str(entry, "", "eSwitchMode", "", &eswitch, err) < 0 ||
	    json_get_bool(entry, "", "externallyManaged", false, &wanted->is_external, err) < 0 ||
	    json_get_bool(entry, "", "allowLagLoss", false, &wanted->allows_lag_loss, err) < 0 ||
	    json_get_bool(entry, "", "allowPrimaryNic", false, &pf->may_have_vfs, err) < 0 ||
	    json_get_bool(entry, "", "allowFirmware", false, &wanted->allows_firmware, err) < 0)
		return -1;
	if (*link && strcasecmp(link, "eth") != 0 && strcasecmp(link, "ib") != 0)
		return err_set(err, ERR_INVALID, "BadField",
			       "linkType: \"%.40s\" is neither eth nor ib", link);
	if (*eswitch && !str_eq(eswitch, "legacy") && !str_eq(eswitch, "switchdev"))
		return err_set(err, ERR_INVALID, "BadField",
			       "eSwitchMode: \"%.40s\" is neither legacy nor switchdev", eswitch);
	wanted->num_vfs = (int)count;
	wanted->link = !*link ? NULL : strcasecmp(link, "ib") == 0 ? "IB" : "ETH";
	wanted->eswitch = *eswitch ? eswitch : NULL;
	return 0;
}

/* An entry of spec.interfaces. False when it cannot be read; a problem says why. */
static bool read_wanted(struct planning *p, const json_t *entry, struct pf *pf)
{
	struct err err = {0};

	pf->address = json_str_at(entry, "pciAddress");
	pf->is_wanted = true;
	if (!pf->address) {
		planner_problem(
			p, NULL, "BadSpec",
			"an entry of spec.interfaces has no pciAddress: correct the policy");
		return false;
	}
	if (read_fields(entry, pf, &err) < 0 || read_groups(p, entry, pf, &err) < 0) {
		planner_problem(p, pf, "BadSpec", "%s: the PF is left alone; correct the policy",
				err.text);
		return false;
	}
	return true;
}

/* ---- what is there --------------------------------------------------------------------------- */

static const char *holder_of(const struct planning *p, const json_t *vf)
{
	const char *address = json_str_or(json_at(vf, "pciAddress"), "");
	const char *pod = json_str_at(p->in->held, address);
	const char *name = json_str_at(vf, "host", "holder", "name");

	if (pod)
		return pod;
	if (p->in->is_held_awaited && !p->in->held)
		return "a pod perhaps (the kubelet has not said yet which devices pods have)";
	/* Also below a bond, a bridge or a VLAN that carries its default route or address. */
	if (json_find(json_at(p->in->observed, "node", "protected"), "pciAddress", address))
		return "the node itself";
	if (json_is_false(json_at(vf, "host", "inUse")))
		return NULL;
	return name ? name : json_str_or(json_at(vf, "host", "holder", "kind"), "someone");
}

static void read_vf(const struct planning *p, const struct pf *pf, const json_t *entry,
		    struct vf *ret)
{
	*ret = (struct vf){
		.entry = entry,
		.number = (int)json_integer_value(json_at(entry, "vfID")),
		.address = json_str_at(entry, "pciAddress"),
		.driver = json_str_at(entry, "driver"),
		.driver_override = json_str_at(entry, "host", "driverOverride"),
		.mac = json_str_at(entry, "mac"),
		.guid = json_str_at(entry, "guid"),
		.holder = holder_of(p, entry),
		.is_empty =
			!json_at(entry, "driver") && json_is_false(json_at(entry, "host", "inUse")),
	};
	for (size_t i = 0; i < pf->wanted.n_groups && !ret->group; i++) {
		struct vf_group *group = &pf->wanted.groups[i];

		if (ret->number >= group->first && ret->number <= group->last)
			ret->group = group;
	}
}

/* Is it the same card in the slot? What one of both does not tell is not evidence. */
static bool is_same_card(const json_t *found, const json_t *entry)
{
	const struct {
		const json_t *then, *now;
	} marks[] = {
		{json_at(found, "vendor"), json_at(entry, "vendor")},
		{json_at(found, "deviceID"), json_at(entry, "deviceID")},
		{json_at(found, "permanentMac"), json_at(entry, "host", "permanentMac")},
	};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (marks[i].then && marks[i].now && !json_same(marks[i].then, marks[i].now))
			return false;
	return true;
}

/* All but what spec says. Of a PF that is not there, nothing. */
static void read_pf(const struct planning *p, struct pf *pf)
{
	const json_t *interfaces = json_at(p->in->observed, "interfaces"), *found;
	const json_t *entry = json_find(interfaces, "pciAddress", pf->address);
	const char *dot = strrchr(pf->address, '.');
	struct pf_now *now = &pf->now;

	if (!entry)
		return;
	*now = (struct pf_now){
		.entry = entry,
		.name = json_str_at(entry, "name"),
		.driver = json_str_at(entry, "driver"),
		.link = json_str_at(entry, "linkType"),
		.eswitch = json_str_at(entry, "eSwitchMode"),
		.protected = json_str_at(entry, "host", "protected"),
		.carries = json_str_at(entry, "host", "carries"),
		.bond = json_str_at(entry, "host", "master"),
		.num_vfs = (int)json_integer_value(json_at(entry, "numVfs")),
		.mtu = (int)json_integer_value(json_at(entry, "mtu")),
		.port = dot && dot[1] >= '0' && dot[1] <= '7' ? dot[1] - '0' + 1 : 1,
		.is_ib = str_eq(json_str_at(entry, "linkType"), "IB"),
		.is_switch_elsewhere = json_is_true(json_at(entry, "host", "switchElsewhere")),
		.has_devlink = json_is_true(json_at(entry, "host", "devlink")),
		.is_down = str_eq(json_str_at(entry, "linkAdminState"), "down"),
		.is_autoprobe_off = json_is_false(json_at(entry, "host", "driversAutoprobe")),
	};
	now->can_set_eswitch =
		now->eswitch && now->has_devlink && !now->is_switch_elsewhere && !now->is_ib;
	found = json_at(p->in->found, "pfs", pf->address);
	if (found && is_same_card(found, entry))
		pf->found = found;
	found = json_at(p->in->found, "settings", pf->address);
	if (found && is_same_card(found, entry))
		pf->nic_found = found;
	if (!pf->is_wanted)
		pf->may_have_vfs = json_is_true(json_at(pf->found, "allowPrimaryNic"));
	pf->n_vfs = json_array_size(json_at(entry, "Vfs"));
	pf->vfs = mem_calloc(pf->n_vfs + 1, sizeof(*pf->vfs));
	for (size_t i = 0; i < pf->n_vfs; i++)
		read_vf(p, pf, json_array_get(json_at(entry, "Vfs"), i), &pf->vfs[i]);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* What spec says about it may be wrong, but it says something. */
static bool is_named(const json_t *interfaces, const char *address)
{
	json_t *entry;
	size_t i;

	json_array_foreach ((json_t *)interfaces, i, entry) {
		const char *name = json_str_at(entry, "pciAddress");

		/* It may be meant. */
		if (!name || str_eq(name, address))
			return true;
	}
	return false;
}

static int compare_pfs(const void *a, const void *b)
{
	const struct pf *x = a, *y = b;
	int order = strcmp(x->address, y->address);

	if (x->is_wanted != y->is_wanted)
		return x->is_wanted ? -1 : 1;
	return order != 0 ? order : x->index < y->index ? -1 : 1;
}

/* p->pfs has room for it. */
static struct pf *need_pf(struct planning *p, const char *address)
{
	for (size_t i = 0; i < p->n_pfs; i++)
		if (str_eq(p->pfs[i].address, address))
			return &p->pfs[i];
	p->pfs[p->n_pfs] = (struct pf){.address = address, .has_settings_only = true};
	return &p->pfs[p->n_pfs++];
}

/* An entry of spec.nicSettings. False: which PF it means is not known. */
static bool read_nic(struct planning *p, const json_t *entry)
{
	const char *address = json_str_at(entry, "pciAddress");
	struct pf *pf;

	if (!address) {
		planner_problem(p, NULL, "BadSpec",
				"an entry of spec.nicSettings has no pciAddress: correct the pool");
		return false;
	}
	pf = need_pf(p, address);
	pf->is_nic_unclear = pf->nic;
	pf->nic = entry;
	if (pf->is_nic_unclear)
		planner_problem(p, pf, "BadSpec",
				"spec.nicSettings has it more than once: its settings stay as they "
				"are");
	return true;
}

void planner_read(struct planning *p, const json_t *interfaces)
{
	const json_t *found = json_at(p->in->found, "pfs");
	const json_t *nics = json_at(p->in->spec, "nicSettings");
	const json_t *nics_found = json_at(p->in->found, "settings");
	bool are_all_known = true;
	size_t i, n = 0, most = json_array_size(interfaces) + json_object_size(found);
	const char *address;
	json_t *entry;

	assert(!p->pfs);
	p->pfs = mem_calloc(most + json_array_size(nics) + json_object_size(nics_found) + 1,
			    sizeof(*p->pfs));
	json_array_foreach ((json_t *)interfaces, i, entry) {
		p->pfs[n] = (struct pf){.index = i};
		if (read_wanted(p, entry, &p->pfs[n]))
			n++;
	}
	json_each (found, address, entry)
		if (!is_named(interfaces, address))
			p->pfs[n++] = (struct pf){.address = address};
	assert(n <= most);
	if (n > 1)
		qsort(p->pfs, n, sizeof(*p->pfs), compare_pfs);
	for (i = 0; i < n; i++) {
		struct pf *pf = &p->pfs[p->n_pfs];

		if (p->n_pfs > 0 && str_eq(pf[-1].address, p->pfs[i].address)) {
			planner_problem(p, &p->pfs[i], "BadSpec",
					"spec.interfaces has it more than once: the first one "
					"counts");
			free(p->pfs[i].wanted.groups);
			continue;
		}
		*pf = p->pfs[i];
		p->n_pfs++;
	}
	json_array_foreach ((json_t *)nics, i, entry)
		are_all_known &= read_nic(p, entry);
	json_each (nics_found, address, entry)
		(void)need_pf(p, address);
	for (i = 0; i < p->n_pfs; i++) {
		read_pf(p, &p->pfs[i]);
		/* It may be meant. */
		p->pfs[i].is_nic_unclear |= !p->pfs[i].nic && !are_all_known;
	}
}
