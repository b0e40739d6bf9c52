// SPDX-License-Identifier: Apache-2.0
/*
 * Steps for the drivers of VFs (Documentation/ABI/testing/sysfs-bus-pci, driver_override). Only
 * VFs: run_vf refuses everything else.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nodeagent/host/module.h"
#include "nodeagent/host/program.h"
#include "nodeagent/worker/execute_internal.h"

/* ---- driver_override ------------------------------------------------------------------------- */

static bool read_override(const struct run *run, const char *vf, struct sysfs_text *ret)
{
	return sysfs_read(run->host, pci_path(vf, "driver_override").text, ret) &&
	       !str_eq(ret->text, "(null)");
}

static bool is_override(const struct run *run, const char *vf, const char *driver)
{
	struct sysfs_text now;

	return read_override(run, vf, &now) ? str_eq(now.text, driver) : driver == NULL;
}

/*
 * The kernel takes any name (Documentation/ABI/testing/sysfs-bus-pci, driver_override), so we look
 * whether there is such a driver.
 */
static int check_driver(const struct run *run, const char *driver, struct err *err)
{
	char path[96];

	if (!driver)
		return 0;
	(void)snprintf(path, sizeof(path), "sys/bus/pci/drivers/%s", driver);
	if (sysfs_exists(run->host, path))
		return 0;
	return err_set(err, ERR_HOST, "DriverMissing",
		       "there is no driver %s: load its module on the host", driver);
}

int run_set_driver_override(struct run *run, struct err *err)
{
	const char *driver = run_str(run, "driver"), *vf;
	auto_free char *text = NULL;
	struct sysfs_text was;

	if (run_vf(run, &vf, err) < 0)
		return -1;
	if (read_override(run, vf, &was))
		json_put_str(run->result, "was", was.text);
	json_put_str(run->result, "now", driver);
	if (is_override(run, vf, driver))
		return 0;
	if (check_driver(run, driver, err) < 0)
		return -1;
	/* A line's end alone clears it; writing nothing reaches no driver. */
	text = str_printf("%s\n", driver ? driver : "");
	if (sysfs_write(run->host, pci_path(vf, "driver_override").text, text, err) < 0)
		return run_refused(err, "DriverRefused", NULL, "%s: set driver_override", vf);
	if (!is_override(run, vf, driver))
		return run_not_as_asked(err, "%s: driver_override is not \"%s\"", vf,
					driver ? driver : "");
	run->changed = true;
	return 0;
}

/* ---- binding --------------------------------------------------------------------------------- */

int run_unbind_driver(struct run *run, struct err *err)
{
	struct sysfs_text driver, pf;
	const char *vf;

	if (run_vf(run, &vf, err) < 0)
		return -1;
	if (!pci_driver(run->host, vf, &driver))
		return 0;
	json_put_str(run->result, "was", driver.text);
	if (!pci_physfn(run->host, vf, &pf))
		return err_set(err, ERR_HOST, "DeviceGone", "%s: its PF is gone", vf);
	if (evidence_check_vf(run->host, vf, err) < 0)
		return -1;
	if (sysfs_write(run->host, pci_path(vf, "driver/unbind").text, vf, err) < 0)
		return run_refused(err, "DriverRefused", NULL, "%s: unbind %s", vf, driver.text);
	if (pci_driver(run->host, vf, &driver))
		return run_not_as_asked(err, "%s: driver %s is still bound", vf, driver.text);
	run->changed = true;
	return 0;
}

/* drivers_probe says "success" when nothing came of it; find out why. */
static int why_no_driver(const struct run *run, const char *vf, struct err *err)
{
	const char *wanted = run_str(run, "driver");
	struct sysfs_text override, pf, vendor = {"?"}, device = {"?"};
	int64_t autoprobe = 1;

	if (read_override(run, vf, &override)) {
		if (str_eq(override.text, "vfio-pci") &&
		    !sysfs_exists(run->host, pci_path(vf, "iommu_group").text))
			return err_set(err, ERR_HOST, "NoIommu",
				       "%s: vfio-pci needs an IOMMU: enable it in the firmware and "
				       "with intel_iommu=on or amd_iommu=on",
				       vf);
		return err_set(err, ERR_HOST, "DriverRefused",
			       "%s: driver %s, which driver_override asks for, does not bind: see "
			       "the kernel log",
			       vf, override.text);
	}
	if (pci_physfn(run->host, vf, &pf))
		(void)sysfs_read_int(run->host, pci_path(pf.text, "sriov_drivers_autoprobe").text,
				     &autoprobe);
	if (!autoprobe)
		return err_set(err, ERR_BUG, "AutoprobeOff",
			       "%s: sriov_drivers_autoprobe of %s is off, so no driver binds", vf,
			       pf.text);
	(void)sysfs_read(run->host, pci_path(vf, "vendor").text, &vendor);
	(void)sysfs_read(run->host, pci_path(vf, "device").text, &device);
	return err_set(err, ERR_HOST, "DriverMissing",
		       "%s: no driver takes PCI device %.8s:%.8s%s%s: load its module, or see the "
		       "kernel log",
		       vf, vendor.text, device.text, wanted ? ", wanted " : "",
		       wanted ? wanted : "");
}

static int probe_driver(struct run *run, const char *vf, struct sysfs_text *ret, struct err *err)
{
	static const struct hint hints[] = {
		{EINVAL, "vfio-pci says so without IOMMU: enable it in the firmware and on the "
			 "kernel's command line"},
		{0, NULL},
	};

	if (sysfs_write(run->host, "sys/bus/pci/drivers_probe", vf, err) < 0)
		return run_refused(err, "DriverRefused", hints, "%s: bind a driver", vf);
	if (!pci_driver(run->host, vf, ret))
		return why_no_driver(run, vf, err);
	run->changed = true;
	return 0;
}

int run_probe_driver(struct run *run, struct err *err)
{
	const char *wanted = run_str(run, "driver"), *vf;
	struct sysfs_text driver;

	if (run_vf(run, &vf, err) < 0)
		return -1;
	if (!pci_driver(run->host, vf, &driver) && probe_driver(run, vf, &driver, err) < 0)
		return -1;
	json_put_str(run->result, "now", driver.text);
	if (!wanted || str_eq(driver.text, wanted))
		return 0;
	return run_not_as_asked(err, "%s: bound to %s, not to %s", vf, driver.text, wanted);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool part_is_there(const struct run *run, const char *vf)
{
	const char *part = run_str(run, "for");
	json_auto_t *names = NULL;
	struct sysfs_text text;

	if (str_eq(part, "driver"))
		return pci_driver(run->host, vf, &text);
	if (str_eq(part, "netdev"))
		return pci_netdev(run->host, vf, &text);
	names = sysfs_list(run->host, pci_path(vf, "infiniband").text);
	return json_array_size(names) > 0;
}

int run_wait_vf(struct run *run, struct err *err)
{
	const char *vf;

	if (run_vf(run, &vf, err) < 0 || evidence_check_attached(run->host, vf, err) < 0)
		return -1;
	if (run_wait(run, part_is_there, vf))
		return 0;
	return err_set(err, ERR_TRANSIENT, "NotYet",
		       "%s: waited for its %s in vain: see the kernel log", vf,
		       run_str(run, "for"));
}

/* ---- modules --------------------------------------------------------------------------------- */

int run_load_module(struct run *run, struct err *err)
{
	const char *module = run_str(run, "module");
	/* The host's modprobe with the host's modules. */
	char *const arguments[] = {"modprobe", "--", (char *)module, NULL};
	char said[200];
	int status;

	if (module_is_there(run->host, module))
		return 0;
	status = program_run(run->host, arguments, said, sizeof(said));
	if (module_is_there(run->host, module)) {
		run->changed = true;
		return 0;
	}
	if (status == 0)
		return run_not_as_asked(
			err,
			"modprobe took module %s, but it is neither in /sys/module nor "
			"built into the kernel: see the kernel log",
			module);
	if (status == PROGRAM_ABSENT)
		return err_set(err, ERR_HOST, "ModuleRefused", "%s: the host has no modprobe",
			       module);
	said[strcspn(said, "\n")] = '\0';
	return err_set(err, ERR_HOST, "ModuleRefused", "%s: modprobe says: %s", module, said);
}
