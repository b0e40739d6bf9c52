// SPDX-License-Identifier: Apache-2.0
/*
 * What steps share: their fields, the device that they are about, waiting, and what a refusal of
 * the kernel means. Below the steps of execute_*.c, which execute.c calls by its table.
 */
#include "nodeagent/worker/execute_internal.h"

#include <assert.h>
#include <stdarg.h>

#include "lib/base/clock.h"
#include "nodeagent/host/observe.h"

#define LOOK_EVERY_MS 10
/* So much earlier than the deadline we stop waiting ourselves. */
#define MARGIN_MS 1000

const char *run_str(const struct run *run, const char *name)
{
	return json_str_at(run->step, name);
}

int run_int(const struct run *run, const char *name)
{
	return (int)json_integer_value(json_at(run->step, name));
}

static int must_exist(const struct run *run, const char *address, struct err *err)
{
	if (pci_exists(run->host, address))
		return 0;
	errno = ENODEV;
	return err_sys(err, "DeviceGone", "there is no PCI function %s", address);
}

int run_pf(const struct run *run, const char *name, const char **ret, struct err *err)
{
	const char *pf = run_str(run, name);

	if (must_exist(run, pf, err) < 0)
		return -1;
	if (pci_is_vf(run->host, pf))
		return err_set(err, ERR_BUG, "NotAPf", "%s is a VF", pf);
	if (!pci_is_network(run->host, pf))
		return err_set(err, ERR_BUG, "NotAPf", "%s is no network function", pf);
	*ret = pf;
	return 0;
}

int run_vf(const struct run *run, const char **ret, struct err *err)
{
	const char *vf = run_str(run, "vf");

	if (must_exist(run, vf, err) < 0)
		return -1;
	if (!pci_is_vf(run->host, vf))
		return err_set(err, ERR_BUG, "NotAVf",
			       "%s is no VF, and drivers of other functions are never touched", vf);
	if (!pci_is_network(run->host, vf))
		return err_set(err, ERR_BUG, "NotAVf", "%s is no network function", vf);
	*ret = vf;
	return 0;
}

bool run_is_forced(const struct run *run)
{
	return run->host->may_force && json_is_true(json_at(run->step, "force"));
}

int run_refuse_protected(const struct run *run, const char *pf, struct err *err)
{
	auto_free char *reason = NULL;

	if (run_is_forced(run))
		return 0;
	if (host_why_protected(run->host, pf, &reason, err) < 0)
		return err_in(err, "%s: is it safe to change?", pf);
	if (!reason)
		return 0;
	if (json_is_true(json_at(run->step, "force")))
		return err_set(err, ERR_BUG, "ProtectedPf",
			       "%s %s: it is not touched, though the policy asks for it; start the "
			       "agent with --allow-primary-nic",
			       pf, reason);
	return err_set(err, ERR_BUG, "ProtectedPf", "%s %s: it is not touched", pf, reason);
}

bool run_wait(const struct run *run, bool (*is_so)(const struct run *run, const char *device),
	      const char *device)
{
	int64_t until = clock_ms() + step_deadline_ms(run->step) - MARGIN_MS;

	assert(step_deadline_ms(run->step) > MARGIN_MS);
	while (!is_so(run, device)) {
		if (clock_ms() >= until)
			return false;
		run->host->doors->sleep_ms(run->host->doors_ctx, LOOK_EVERY_MS);
	}
	return true;
}

int run_not_as_asked(struct err *err, const char *fmt, ...)
{
	auto_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	return err_set(err, ERR_HOST, "NotAsAsked", "%s", text);
}

int run_refused(struct err *err, const char *reason, const struct hint *hints, const char *fmt, ...)
{
	assert(err && err->class != ERR_NONE);
	/* Whatever is refused. */
	static const struct hint common[] = {
		{EROFS, "/sys is read-only here: the agent needs the host's root as a volume, with "
			"/sys writable"},
		{EACCES, "the agent has to start as root, and AppArmor and SELinux have to let it "
			 "write /sys"},
		{ENODEV, "the device has just gone"},
		{0, NULL},
	};
	struct err was = *err;
	auto_free char *text = NULL;
	const char *help = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = str_vprintf(fmt, ap);
	va_end(ap);
	for (const struct hint *h = hints; h && h->help && !help; h++)
		help = h->number == was.sys ? h->help : NULL;
	for (const struct hint *h = common; h->help && !help; h++)
		help = h->number == was.sys ? h->help : NULL;
	(void)err_set(err, was.class, reason, "%s: %s%s%s", text, was.text, help ? "; " : "",
		      help ? help : "");
	err->sys = was.sys;
	return -1;
}
