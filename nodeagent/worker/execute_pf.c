// SPDX-License-Identifier: Apache-2.0
/* Steps for a PF: VFs, and the embedded switch (drivers/pci/iov.c, sriov_numvfs_store()). */
#include "nodeagent/host/devlink.h"
#include "nodeagent/host/observe.h"
#include "nodeagent/model/observed.h"
#include "nodeagent/worker/execute_internal.h"

/* ---- drivers of VFs by themselves ------------------------------------------------------------ */

int run_set_autoprobe(struct run *run, struct err *err)
{
	bool on = json_is_true(json_at(run->step, "on"));
	struct pci_path path;
	const char *pf;
	int64_t value;

	if (run_pf(run, "pf", &pf, err) < 0)
		return -1;
	path = pci_path(pf, "sriov_drivers_autoprobe");
	if (!sysfs_read_int(run->host, path.text, &value))
		return err_set(err, ERR_HOST, "NoSriov", "%s has no SR-IOV", pf);
	json_put_bool(run->result, "was", value != 0);
	if ((value != 0) == on)
		return 0;
	if (sysfs_write(run->host, path.text, on ? "1" : "0", err) < 0)
		return run_refused(err, "AutoprobeRefused", NULL, "%s", pf);
	if (!sysfs_read_int(run->host, path.text, &value) || (value != 0) != on)
		return run_not_as_asked(err, "%s: sriov_drivers_autoprobe stays %d", pf, !on);
	run->changed = true;
	json_put_bool(run->result, "now", on);
	return 0;
}

/* ---- number of VFs --------------------------------------------------------------------------- */

static const struct hint count_hints[] = {
	{ENOMEM, "there is no room for VFs in memory or bus numbers: enable SR-IOV and 64-bit BARs "
		 "(\"Above 4G Decoding\") in the firmware, or boot with pci=realloc"},
	{ENOENT, "no driver that can make VFs is bound to it"},
	{EBUSY, "VFs of another number are there, or the switch of the NIC is busy: look again"},
	{EPERM, "the driver refuses while VFs are assigned to virtual machines"},
	{ENOSPC, "the NIC's firmware has no resources left"},
	{EIO, "the NIC's firmware contradicts itself: see the kernel log"},
	{EOPNOTSUPP, "not in this mode of the NIC: see the kernel log"},
	{0, NULL},
};

static int read_count(const struct run *run, const char *pf, int64_t *ret, struct err *err)
{
	if (!pci_has_sriov(run->host, pf))
		return err_set(err, ERR_HOST, "NoSriov",
			       "%s has no SR-IOV: enable it in the NIC's and the machine's "
			       "firmware",
			       pf);
	/* Waits while someone else changes it (drivers/pci/iov.c, sriov_numvfs_store()). */
	if (!sysfs_read_int(run->host, pci_path(pf, "sriov_numvfs").text, ret))
		return err_set(err, ERR_HOST, "HostUnreadable", "%s: cannot read sriov_numvfs", pf);
	return 0;
}

/*
 * Would a pod, or a machine that has the PF, notice that the link drops? What the node itself does
 * on a NIC that is not protected bears it, as it bears a switch that restarts: else no such NIC
 * with an address could get VFs.
 */
static int check_link(const struct run *run, const char *pf, struct err *err)
{
	auto_free char *interface = NULL;
	struct sysfs_text driver;

	if (!pci_driver(run->host, pf, &driver))
		return 0;
	if (observed_is_userspace_driver(driver.text))
		return evidence_check_pf(run->host, pf, err);
	if (!observed_vfs_drop_link(driver.text) || run_is_forced(run))
		return 0;
	if (pci_is_away(run->host, pf, driver.text))
		return err_set(err, ERR_HOST, "PfInUse",
			       "PF %s is in another network namespace, where its link would drop: "
			       "wait until it is back",
			       pf);
	if (host_what_carried(run->host, pf, &interface, err) < 0)
		return err_in(err, "%s: do interfaces of pods lie on it?", pf);
	if (!interface)
		return 0;
	return err_set(err, ERR_HOST, "PfInUse",
		       "PF %s is used by %s, which lies on it: end that use", pf, interface);
}

static int check_count(const struct run *run, const char *pf, int64_t now, struct err *err)
{
	const json_t *from = json_at(run->step, "from");
	int count = run_int(run, "count");
	int64_t total;

	if (from && json_integer_value(from) != now)
		return err_set(err, ERR_CONFLICT, "VfCountChanged",
			       "%s has %d VFs by now, not %d: look again", pf, (int)now,
			       run_int(run, "from"));
	if (count > 0 && now > 0)
		return err_set(err, ERR_BUG, "VfCountNeedsZero",
			       "%s: from %d to %d VFs leads through 0", pf, (int)now, count);
	if (sysfs_read_int(run->host, pci_path(pf, "sriov_totalvfs").text, &total) && count > total)
		return err_set(err, ERR_INVALID, "VfCountOutOfRange",
			       "%s: %d VFs asked for, it can have %d at most", pf, count,
			       (int)total);
	if (run_refuse_protected(run, pf, err) < 0 || check_link(run, pf, err) < 0)
		return -1;
	return evidence_check_vfs(run->host, pf, err) < 0 ? -1
							  : evidence_check_lag(run->host, pf, err);
}

static int read_back_count(const struct run *run, const char *pf, struct err *err)
{
	int links = pci_count_vfs(run->host, pf), count = run_int(run, "count");
	int64_t now = -1;

	if (read_count(run, pf, &now, err) < 0)
		return -1;
	if (now == count && links == count)
		return 0;
	return run_not_as_asked(err,
				"%s: asked for %d VFs, the driver made %d, of which %d are there: "
				"see the kernel log",
				pf, count, (int)now, links);
}

int run_set_num_vfs(struct run *run, struct err *err)
{
	int count = run_int(run, "count");
	char text[16];
	const char *pf;
	int64_t now;

	if (run_pf(run, "pf", &pf, err) < 0 || read_count(run, pf, &now, err) < 0)
		return -1;
	json_put_int(run->result, "was", now);
	json_put_int(run->result, "now", count);
	if (now == count)
		return read_back_count(run, pf, err);
	if (check_count(run, pf, now, err) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "%d", count);
	if (sysfs_write(run->host, pci_path(pf, "sriov_numvfs").text, text, err) < 0)
		return run_refused(err, "VfCountRefused", count_hints, "%s: set %d VFs", pf, count);
	run->changed = true;
	return read_back_count(run, pf, err);
}

static bool all_vfs_are_there(const struct run *run, const char *pf)
{
	int count = run_int(run, "count");

	for (int i = 0; i < count; i++) {
		struct sysfs_text vf;

		if (!pci_virtfn(run->host, pf, i, &vf) || !pci_is_vf(run->host, vf.text))
			return false;
	}
	return true;
}

int run_wait_vfs(struct run *run, struct err *err)
{
	const char *pf;

	if (run_pf(run, "pf", &pf, err) < 0)
		return -1;
	if (!run_wait(run, all_vfs_are_there, pf))
		return err_set(err, ERR_TRANSIENT, "NotYet", "%s: %d of %d VFs are there", pf,
			       pci_count_vfs(run->host, pf), run_int(run, "count"));
	json_put_int(run->result, "now", run_int(run, "count"));
	return 0;
}

/* ---- embedded switch ------------------------------------------------------------------------- */

static const struct hint eswitch_hints[] = {
	{EOPNOTSUPP, "this function has no switch that can be set: see the vendor's documentation"},
	{ENODEV, "its driver has no devlink: eSwitchMode cannot be set"},
	{EBUSY, "the switch is in use (offloads, vDPA) or the firmware is being reset"},
	{EPERM, "this function does not manage the switch"},
	{0, NULL},
};

static int set_eswitch(struct run *run, const char *pf, enum devlink_mode mode, struct err *err)
{
	const char *name = devlink_mode_name(mode);
	enum devlink_mode now = DEVLINK_MODE_UNKNOWN;

	if (run_refuse_protected(run, pf, err) < 0 || evidence_check_vfs(run->host, pf, err) < 0 ||
	    evidence_check_pf(run->host, pf, err) < 0)
		return -1;
	if (devlink_set_mode(run->host, pf, mode, err) < 0)
		return run_refused(err, "ESwitchRefused", eswitch_hints, "%s: set eSwitch mode %s",
				   pf, name);
	if (devlink_get_mode(run->host, pf, &now, err) < 0)
		return -1;
	if (now != mode)
		return run_not_as_asked(err, "%s: the eSwitch mode is not %s", pf, name);
	run->changed = true;
	return 0;
}

int run_set_eswitch(struct run *run, struct err *err)
{
	enum devlink_mode mode = devlink_mode_of(run_str(run, "mode")), now;
	const char *pf;

	if (run_pf(run, "pf", &pf, err) < 0)
		return -1;
	if (devlink_get_mode(run->host, pf, &now, err) < 0) {
		/* Without a switch there is only legacy. */
		if (mode == DEVLINK_MODE_LEGACY &&
		    (err->sys == EOPNOTSUPP || err->sys == ENODEV || err->sys == ENOENT))
			return 0;
		return run_refused(err, "ESwitchRefused", eswitch_hints, "%s", pf);
	}
	json_put_str(run->result, "was", devlink_mode_name(now));
	json_put_str(run->result, "now", devlink_mode_name(mode));
	return now == mode ? 0 : set_eswitch(run, pf, mode, err);
}
