// SPDX-License-Identifier: Apache-2.0
/*
 * The step for one setting of a PF (nodeagent/model/nic_settings.h): look, check, set, read back.
 */
#include "nodeagent/host/pci.h"
#include "nodeagent/host/pf_settings.h"
#include "nodeagent/model/nic_settings.h"
#include "nodeagent/worker/execute_internal.h"

static const struct hint setting_hints[] = {
	{EOPNOTSUPP, "the driver does not take it"},
	{EINVAL, "the driver does not take this value: see the kernel log"},
	{EBUSY, "the driver does not take it now"},
	{EPERM, "this function does not manage the port, or the kernel is locked down"},
	{0, NULL},
};

/* New; NULL with err. */
static json_t *read_setting(const struct run *run, const char *pf, const char *name,
			    struct err *err)
{
	json_auto_t *values = json_object(), *unsupported = json_object(), *failed = json_object();
	const char *why;

	pf_settings_read(run->host, pf, name, &(struct pf_settings){values, unsupported, failed});
	if (json_at(values, name))
		return json_incref(json_at(values, name));
	why = json_str_at(unsupported, name);
	if (why) {
		(void)err_set(err, ERR_HOST, "SettingUnsupported", "%s: %s: %s", pf, name, why);
		return NULL;
	}
	why = json_str_at(failed, name);
	(void)err_set(err, ERR_HOST, why ? "SettingUnreadable" : "NoInterface", "%s: %s: %s", pf,
		      name,
		      why ? why
			  : "it has no network interface that we see: it needs its network driver, "
			    "or it is in a pod");
	return NULL;
}

/* Values of all settings are short, but that of 64 DSCPs: a message takes the beginning. */
static int not_as_asked(const struct run *run, const char *pf, const char *name, const json_t *now,
			struct err *err)
{
	auto_free char *is = json_text(now), *wanted = json_text(json_at(run->step, "value"));

	return run_not_as_asked(err, "%s: %s is %.160s, not %.160s", pf, name, is, wanted);
}

int run_set_nic_setting(struct run *run, struct err *err)
{
	const json_t *value = json_at(run->step, "value");
	const char *name = run_str(run, "setting"), *pf;
	json_auto_t *was = NULL, *now = NULL;
	struct sysfs_text driver;
	bool has_driver;

	if (run_pf(run, "pf", &pf, err) < 0)
		return -1;
	was = read_setting(run, pf, name, err);
	if (!was)
		return -1;
	json_object_set(run->result, "was", was);
	json_object_set(run->result, "now", (json_t *)value);
	if (nic_setting_is_met(name, value, was))
		return 0;
	if (run_refuse_protected(run, pf, err) < 0)
		return -1;
	has_driver = pci_driver(run->host, pf, &driver);
	if (nic_setting_disturbs(name, has_driver ? driver.text : NULL) &&
	    (evidence_check_vfs(run->host, pf, err) < 0 ||
	     evidence_check_pf(run->host, pf, err) < 0))
		return -1;
	if (pf_settings_write(run->host, pf, name, value, err) < 0)
		return err->class == ERR_INVALID ? err_in(err, "%s: %s", pf, name)
						 : run_refused(err, "SettingRefused", setting_hints,
							       "%s: set %s", pf, name);
	now = read_setting(run, pf, name, err);
	if (!now)
		return -1;
	if (!nic_setting_is_met(name, value, now))
		return not_as_asked(run, pf, name, now, err);
	run->changed = true;
	return 0;
}
