// SPDX-License-Identifier: Apache-2.0
/*
 * The firmware of a card: SR-IOV and the number of VFs, where its driver offers them as parameters
 * of devlink (Documentation/networking/devlink: enable_sriov of bnxt_en and mlx5_core, total_vfs of
 * mlx5_core).
 *
 * A setting is written into the card's memory, and counts from its next reset on. The reset takes
 * every port of the card down for a moment, so it is done when none of them is in use, and only by
 * the step that has just changed a setting: what a reset did not bring, another one would not.
 * Otherwise the next boot of the node brings it.
 */
#include <string.h>

#include "nodeagent/host/devlink.h"
#include "nodeagent/worker/execute_internal.h"

static int total_vfs(const struct run *run, const char *pf)
{
	int64_t total = 0;

	(void)sysfs_read_int(run->host, pci_path(pf, "sriov_totalvfs").text, &total);
	return (int)total;
}

/* 1: it was changed, 0: it is so, or not offered (then *offered stays), -1 with err. */
static int set_one(struct run *run, const char *pf, const char *name, uint32_t least, bool *offered,
		   struct err *err)
{
	struct devlink_setting setting = {0}, now = {0};

	if (devlink_get_setting(run->host, pf, name, &setting, err) < 0) {
		if (err->sys != EINVAL && err->sys != EOPNOTSUPP && err->sys != ENODEV &&
		    err->sys != ENOENT)
			return -1;
		*err = (struct err){0};
		return 0;
	}
	*offered = true;
	if (setting.value >= least)
		return 0;
	setting.value = least;
	if (devlink_set_setting(run->host, pf, name, &setting, err) < 0)
		return run_refused(err, "FirmwareRefused", NULL, "%s", pf);
	if (devlink_get_setting(run->host, pf, name, &now, err) < 0)
		return -1;
	if (now.value < least)
		return run_not_as_asked(err, "%s: %s is %u in its firmware, not %u", pf, name,
					now.value, least);
	return 1;
}

/* As set_one(), of all settings. */
static int set_all(struct run *run, const char *pf, struct err *err)
{
	bool switches = false, counts = false;
	int on = set_one(run, pf, "enable_sriov", 1, &switches, err), number;

	number = on < 0 ? -1
			: set_one(run, pf, "total_vfs", (uint32_t)run_int(run, "count"), &counts,
				  err);
	if (number < 0)
		return -1;
	/* With SR-IOV on, nothing but the number helps. */
	if (!counts && (!switches || total_vfs(run, pf) > 0))
		return err_set(err, ERR_HOST, "FirmwareUnsupported",
			       "%s: its driver offers no setting of the firmware through devlink "
			       "that would give it %d VFs",
			       pf, run_int(run, "count"));
	return on || number;
}

static bool is_port_of(const char *card, const char *address)
{
	size_t len = strcspn(card, ".");

	return strncmp(card, address, len + 1) == 0;
}

/*
 * May the card be away for a moment unnoticed? Functions that are not ports, with a driver, count
 * as used: a DPU's disks are such.
 */
static int check_card(const struct run *run, const char *pf, struct err *err)
{
	json_auto_t *functions = sysfs_list(run->host, "sys/bus/pci/devices");
	struct sysfs_text driver;
	json_t *function;
	size_t i;

	json_array_foreach (functions, i, function) {
		const char *address = json_string_value(function);

		if (!is_port_of(pf, address) || pci_is_vf(run->host, address))
			continue;
		if (!pci_is_network(run->host, address)) {
			if (!pci_driver(run->host, address, &driver))
				continue;
			return err_set(err, ERR_HOST, "PfInUse",
				       "function %s of the card may be in use (driver %s)", address,
				       driver.text);
		}
		if (run_refuse_protected(run, address, err) < 0 ||
		    evidence_check_vfs(run->host, address, err) < 0 ||
		    evidence_check_pf(run->host, address, err) < 0)
			return -1;
	}
	return 0;
}

static int wait_for_boot(const char *pf, int count, const char *why, struct err *err)
{
	return err_set(err, ERR_HOST, "FirmwareNeedsBoot",
		       "%s: its firmware is set for %d VFs, and that counts from the next reset of "
		       "the card on: reboot the node (%.300s)",
		       pf, count, why);
}

int run_set_firmware(struct run *run, struct err *err)
{
	int count = run_int(run, "count"), changed;
	const char *pf;

	if (run_pf(run, "pf", &pf, err) < 0)
		return -1;
	json_put_int(run->result, "was", total_vfs(run, pf));
	json_put_int(run->result, "now", count);
	if (total_vfs(run, pf) >= count)
		return 0;
	if (!run->host->may_set_firmware)
		return err_set(err, ERR_INVALID, "FirmwareRefused",
			       "%s: its firmware is not touched, though the policy asks for it; "
			       "start the agent with --allow-firmware",
			       pf);
	if (run_refuse_protected(run, pf, err) < 0)
		return -1;
	changed = set_all(run, pf, err);
	if (changed < 0)
		return -1;
	if (!changed)
		return wait_for_boot(pf, count, "it was set before", err);
	if (check_card(run, pf, err) < 0 || devlink_activate(run->host, pf, err) < 0) {
		struct err why = *err;

		return wait_for_boot(pf, count, why.text, err);
	}
	/* TotalVFs is read when the function is found (drivers/pci/iov.c, sriov_init()). */
	if (total_vfs(run, pf) < count)
		return wait_for_boot(pf, count,
				     "the card was reset, but the kernel reads the number when it "
				     "finds a function",
				     err);
	run->changed = true;
	return 0;
}
