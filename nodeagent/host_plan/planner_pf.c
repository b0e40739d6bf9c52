// SPDX-License-Identifier: Apache-2.0
/*
 * What is done to a PF itself: rules of udev, MTU, link, embedded switch and number of VFs. Of a PF
 * that others manage (externallyManaged) only the VFs are set up.
 */
#include "nodeagent/host_plan/planner_internal.h"

/* ---- rules of udev --------------------------------------------------------------------------- */

static void plan_rules(struct planning *p, const struct pf *pf)
{
	const struct {
		const char *name;
		bool is_needed;
		const char *why;
	} rules[] = {
		{"nm-unmanaged",
		 pf->wanted.num_vfs > 0 &&
			 !json_is_false(json_at(p->in->observed, "node", "networkManager")),
		 "NetworkManager is to leave the VFs alone"},
		{"pf-name", str_eq(pf->wanted.eswitch, "switchdev"),
		 "the PF is to keep its name in switchdev mode"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		json_t *step;

		if (!rules[i].is_needed ||
		    json_list_has(json_at(pf->now.entry, "host", "udevRules"), rules[i].name))
			continue;
		step = json_pack("{s:s, s:s, s:s}", "step", "write-udev-rule", "pf", pf->address,
				 "rule", rules[i].name);
		if (str_eq(rules[i].name, "pf-name"))
			json_put_str(step, "name", pf->now.name);
		(void)planner_add(p, pf, NULL, step, "%s", rules[i].why);
	}
}

/* ---- number of VFs, embedded switch ---------------------------------------------------------- */

/* Name the holder of each VF that is held; true when there is one. */
static bool is_blocked(struct planning *p, const struct pf *pf, const char *why)
{
	bool blocked = false;

	for (size_t i = 0; i < pf->n_vfs; i++) {
		if (!pf->vfs[i].holder)
			continue;
		planner_block(p, pf, &pf->vfs[i], "removes all VFs of the PF", why);
		blocked = true;
	}
	/* Numbered but not listed: we do not know whose they are. */
	if (pf->n_vfs < (size_t)pf->now.num_vfs) {
		planner_problem(p, pf, "VfUnknown",
				"%s, but not all of its VFs can be seen: look at the kernel log",
				why);
		blocked = true;
	}
	return blocked;
}

static json_t *count_step(const struct pf *pf, int from, int count)
{
	json_t *step = json_pack("{s:s, s:s, s:i, s:i}", "step", "set-num-vfs", "pf", pf->address,
				 "count", count, "from", from);

	if (pf->now.protected && pf->may_have_vfs)
		json_put_bool(step, "force", true);
	return step;
}

/*
 * When the switch gets its mode. ice takes one only while there are no VFs
 * (drivers/net/ethernet/intel/ice/ice_eswitch.c, ice_eswitch_mode_set()); mlx5 before Linux 6.0
 * only while there are some (mellanox/mlx5/core/eswitch_offloads.c,
 * eswitch_devlink_esw_mode_check()). Neither driver says so beforehand.
 */
enum eswitch_order { ESWITCH_BEFORE_VFS, ESWITCH_AFTER_VFS };

static json_t *eswitch_step(const struct pf *pf, const char *mode, enum eswitch_order order)
{
	json_t *step = json_pack("{s:s, s:s, s:s}", "step", "set-eswitch", "pf", pf->address,
				 "mode", mode);

	if (order == ESWITCH_AFTER_VFS)
		json_put_bool(step, "afterVfs", true);
	return step;
}

/* Each step only when the one before it can be. */
static void plan_new_vfs(struct planning *p, const struct pf *pf, int count, const char *eswitch,
			 enum eswitch_order order, const char *why)
{
	bool before = eswitch && order == ESWITCH_BEFORE_VFS;

	if (count > 0 && !pf->now.is_autoprobe_off &&
	    !planner_add(p, pf, NULL,
			 json_pack("{s:s, s:s, s:b}", "step", "set-autoprobe", "pf", pf->address,
				   "on", 0),
			 "VFs get their addresses before their drivers start"))
		return;
	if (pf->now.num_vfs > 0 &&
	    !planner_add(p, pf, NULL, count_step(pf, pf->now.num_vfs, 0), "%s", why))
		return;
	if (before && !planner_add(p, pf, NULL, eswitch_step(pf, eswitch, order), "%s", why))
		return;
	if (count == 0 || !planner_add(p, pf, NULL, count_step(pf, 0, count), "%s", why))
		return;
	if (planner_add(p, pf, NULL,
			json_pack("{s:s, s:s, s:i}", "step", "wait-vfs", "pf", pf->address, "count",
				  count),
			"%s", why) &&
	    eswitch && !before)
		(void)planner_add(p, pf, NULL, eswitch_step(pf, eswitch, order), "%s", why);
}

/*
 * The mode for VFs that are there already. mlx5 takes it while they have no drivers. VFs that are
 * made for this have none; those of others may.
 */
static void plan_eswitch_of_vfs(struct planning *p, const struct pf *pf, const char *eswitch,
				const char *why)
{
	for (size_t i = 0; i < pf->n_vfs; i++) {
		const struct vf *vf = &pf->vfs[i];

		if (vf->driver && !planner_add(p, pf, vf,
					       json_pack("{s:s, s:s}", "step", "unbind-driver",
							 "vf", vf->address),
					       "%s", why))
			return;
	}
	(void)planner_add(p, pf, NULL, eswitch_step(pf, eswitch, ESWITCH_AFTER_VFS), "%s", why);
}

static bool is_order_refused(const struct planning *p, const struct pf *pf, const char *eswitch,
			     enum eswitch_order order)
{
	json_auto_t *set = eswitch_step(pf, eswitch, order);

	return planner_is_refused(p, set);
}

/* Part of the way leads nowhere: better not to begin, and to keep what is there in order. */
static bool is_way_refused(const struct planning *p, const struct pf *pf, int count)
{
	json_auto_t *away = count_step(pf, pf->now.num_vfs, 0);
	json_auto_t *make = count_step(pf, 0, count);

	return (pf->now.num_vfs > 0 && planner_is_refused(p, away)) ||
	       (count > 0 && planner_is_refused(p, make));
}

bool plan_vf_count(struct planning *p, const struct pf *pf, int count, const char *eswitch)
{
	enum eswitch_order order = ESWITCH_BEFORE_VFS;
	auto_free char *why = NULL;

	assert(count >= 0);
	if (str_eq(eswitch, pf->now.eswitch) || !pf->now.can_set_eswitch)
		eswitch = NULL;
	if (count == pf->now.num_vfs && !eswitch)
		return true;
	why = eswitch ? str_printf("eSwitchMode is " QUOTE ", wanted %s", pf->now.eswitch, eswitch)
		      : str_printf("numVfs is %d, wanted %d", pf->now.num_vfs, count);
	/*
	 * Drivers make another interface of the PF for another mode, and those on it go; some drop
	 * its link for other VFs, which the policy wants in so many words where the node's own
	 * traffic is on it.
	 */
	if (pf->now.carries && (eswitch || (observed_vfs_drop_link(pf->now.driver) &&
					    !(pf->now.protected && pf->may_have_vfs)))) {
		planner_block(p, pf, NULL, NULL, why);
		return true;
	}
	if (is_blocked(p, pf, why))
		return true;
	/* Behind another switch than is wanted VFs are of no use: no drivers. */
	if (eswitch && is_order_refused(p, pf, eswitch, ESWITCH_BEFORE_VFS)) {
		if (count == 0 || str_eq(eswitch, "legacy") ||
		    is_order_refused(p, pf, eswitch, ESWITCH_AFTER_VFS))
			return false;
		order = ESWITCH_AFTER_VFS;
	}
	if (order == ESWITCH_AFTER_VFS && count == pf->now.num_vfs) {
		plan_eswitch_of_vfs(p, pf, eswitch, why);
		return false;
	}
	if (is_way_refused(p, pf, count))
		return !eswitch;
	plan_new_vfs(p, pf, count, eswitch, order, why);
	return false;
}

/* ---- RoCE LAG -------------------------------------------------------------------------------- */

/*
 * mlx5 joins the Ethernet ports of a bond into one RDMA device while no port has VFs in legacy
 * mode. The first VF ends that: the device goes and with it every connection on it
 * (drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c, mlx5_lag_check_prereq()).
 */
static bool is_lag_in_the_way(struct planning *p, const struct pf *pf, const char *eswitch)
{
	const char *bond = pf->now.bond, *device = NULL;
	const json_t *port;
	json_t *blocked;
	size_t i;

	if (!bond || pf->now.is_ib || pf->wanted.num_vfs == 0 || pf->now.num_vfs > 0 ||
	    pf->wanted.allows_lag_loss || str_eq(eswitch, "switchdev") ||
	    !str_eq(pf->now.driver, "mlx5_core"))
		return false;
	json_array_foreach (json_at(p->in->observed, "interfaces"), i, port) {
		const char *address = json_str_or(json_at(port, "pciAddress"), "");

		if (!str_eq(json_str_at(port, "host", "master"), bond))
			continue;
		if (json_integer_value(json_at(port, "numVfs")) > 0)
			return false;
		if (!device)
			device = json_str_at(rdma_hardware(p, address), "name");
	}
	if (!device)
		return false;
	blocked = json_object();
	json_put_str(blocked, "pf", pf->address);
	json_put_str(blocked, "reason", "LagInUse");
	json_put_str(blocked, "holder", bond);
	json_put(blocked, "message",
		 json_fmt("its first VFs would end the RoCE LAG of " QUOTE
			  " and every connection on " QUOTE
			  ": take the port out of the bond, set eSwitchMode to switchdev, or "
			  "annotate the policy with orbweaver.io/allow-lag-loss: \"true\"",
			  bond, device));
	(void)json_array_append_new(p->blocked, blocked);
	return true;
}

/* ---- MTU and link of the PF ------------------------------------------------------------------ */

/*
 * Only ever raised: others may have raised it for reasons of theirs. True when it will do for the
 * VFs.
 */
static bool plan_mtu(struct planning *p, const struct pf *pf)
{
	json_int_t most = json_integer_value(json_at(pf->now.entry, "host", "maxMtu"));

	if (pf->wanted.mtu == 0 || pf->wanted.mtu <= pf->now.mtu)
		return true;
	if (most > 0 && pf->wanted.mtu > most) {
		planner_problem(
			p, pf, "MtuOutOfRange",
			"mtu is %d, but its driver takes %lld at most: lower mtu in the policy",
			pf->wanted.mtu, (long long)most);
		return false;
	}
	return planner_add(p, pf, NULL,
			   json_pack("{s:s, s:s, s:i}", "step", "set-mtu", "device", pf->address,
				     "mtu", pf->wanted.mtu),
			   "MTU is %d, wanted at least %d", pf->now.mtu, pf->wanted.mtu);
}

/* ---- all of it ------------------------------------------------------------------------------- */

void plan_pf(struct planning *p, struct pf *pf)
{
	bool is_there = true, may_mtu = true;
	const char *eswitch = pf->wanted.eswitch;

	assert(pf->is_wanted && pf->now.entry);
	if (!pf->wanted.is_external) {
		plan_rules(p, pf);
		/* Spec says nothing: as it was found, if we have changed it, else as it is. */
		if (!eswitch)
			eswitch = json_str_at(pf->found, "eSwitchMode");
		may_mtu = plan_mtu(p, pf);
	}
	/* bnxt_en makes no VFs on a PF that is down, and says that it did; bnx2x refuses. */
	if (pf->wanted.num_vfs > 0 && pf->now.is_down && !pf->now.protected)
		(void)planner_add(p, pf, NULL,
				  json_pack("{s:s, s:s}", "step", "link-up", "device", pf->address),
				  "the PF is down, so its VFs have no link");
	if (!pf->wanted.is_external)
		is_there = !is_lag_in_the_way(p, pf, eswitch) &&
			   plan_vf_count(p, pf, pf->wanted.num_vfs, eswitch);
	if (is_there)
		plan_vfs(p, pf, may_mtu);
}
