// SPDX-License-Identifier: Apache-2.0
/* Steps for the node as a whole: mode of the RDMA subsystem, udev rules, reboots. */
#include "nodeagent/host/boots.h"
#include "nodeagent/host/nextboot.h"
#include "nodeagent/host/udev.h"
#include "nodeagent/worker/execute_internal.h"

/*
 * A namespace that has just ended is gone only some milliseconds later
 * (drivers/infiniband/core/device.c, rdma_compatdev_set()).
 */
#define BUSY_TRIES   10
#define BUSY_WAIT_MS 100

static int set_mode(struct run *run, enum rdma_mode mode, struct err *err)
{
	static const struct hint hints[] = {
		{EBUSY, "there is another network namespace (a pod, a sandboxed service): it takes "
			"effect at the next boot only"},
		{EPERM, "the agent needs CAP_NET_ADMIN"},
		{0, NULL},
	};
	struct err problem = {0};

	for (int i = 0; i < BUSY_TRIES; i++) {
		if (rdma_set_mode(run->host, mode, &problem) == 0)
			return 0;
		if (problem.sys != EBUSY)
			break;
		run->host->doors->sleep_ms(run->host->doors_ctx, BUSY_WAIT_MS);
	}
	*err = problem;
	return run_refused(err, problem.sys == EBUSY ? "RdmaModeBusy" : "RdmaModeRefused", hints,
			   "set RDMA netns mode %s", rdma_mode_name(mode));
}

int run_set_rdma_netns_mode(struct run *run, struct err *err)
{
	enum rdma_mode mode = rdma_mode_of(run_str(run, "mode")), now;

	if (rdma_get_mode(run->host->netlink, &now, err) < 0) {
		static const struct hint hints[] = {{EPROTONOSUPPORT, "load the module ib_core"},
						    {0, NULL}};

		return run_refused(err, "RdmaUnavailable", hints, "RDMA subsystem");
	}
	json_put_str(run->result, "was", rdma_mode_name(now));
	json_put_str(run->result, "now", rdma_mode_name(mode));
	if (now == mode)
		return 0;
	if (set_mode(run, mode, err) < 0 || rdma_get_mode(run->host->netlink, &now, err) < 0)
		return -1;
	if (now != mode)
		return run_not_as_asked(err, "the RDMA netns mode is not %s", rdma_mode_name(mode));
	run->changed = true;
	return 0;
}

int run_write_rdma_next_boot(struct run *run, struct err *err)
{
	enum rdma_mode mode = rdma_mode_of(run_str(run, "mode"));
	json_auto_t *now = NULL;

	if (next_boot_write(run->host, mode, &run->changed, err) < 0)
		return -1;
	now = next_boot_observe(run->host);
	if (rdma_mode_of(json_str_at(now, "own")) != mode)
		return run_not_as_asked(err, "/%s does not say %s", HOST_NEXT_BOOT_FILE,
					rdma_mode_name(mode));
	json_put_str(run->result, "now", rdma_mode_name(mode));
	if (rdma_mode_of(json_str_at(now, "mode")) == mode)
		return 0;
	return err_set(err, ERR_HOST, "NextBootOverruled", "/%s says %s, but %s says %s: %s",
		       HOST_NEXT_BOOT_FILE, rdma_mode_name(mode), json_str_at(now, "file"),
		       json_str_at(now, "mode"),
		       str_eq(json_str_at(now, "source"), "command-line")
			       ? "remove ib_core.netns_mode from the kernel's command line"
			       : "remove the option from that file");
}

int run_remove_rdma_next_boot(struct run *run, struct err *err)
{
	return next_boot_remove(run->host, &run->changed, err);
}

int run_write_udev_rule(struct run *run, struct err *err)
{
	const char *pf;

	if (run_pf(run, "pf", &pf, err) < 0)
		return -1;
	if (str_eq(run_str(run, "rule"), "pf-name") && !run_str(run, "name"))
		return err_set(err, ERR_BUG, "BadStep", "rule pf-name needs a name");
	return udev_write_rule(run->host, pf, run_str(run, "rule"), run_str(run, "name"),
			       &run->changed, err);
}

/* The PF may be gone for good by now. */
int run_remove_udev_rule(struct run *run, struct err *err)
{
	return udev_remove_rule(run->host, run_str(run, "pf"), run_str(run, "rule"), &run->changed,
				err);
}

int run_record_reboot(struct run *run, struct err *err)
{
	return boots_record(run->host, run_str(run, "cause"), run_str(run, "boot"), &run->changed,
			    err);
}

int run_close_reboot(struct run *run, struct err *err)
{
	return boots_close(run->host, run_str(run, "cause"), &run->changed, err);
}

int run_reboot(struct run *run, struct err *err)
{
	return boots_ask(run->host, run_str(run, "cause"), run_str(run, "boot"), &run->changed,
			 err);
}
